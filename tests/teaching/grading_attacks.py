"""Cells that attack what is not theirs. They know where the COURSE is, and at what PORT somebody listens."""

ON_THE_COURSE = {
    "gradebook": """
import sqlite3

book = sqlite3.connect("COURSE/gradebook.db")
book.execute("update grade set auto_score = 0, manual_score = 99")
book.execute("update grade_cells set max_score = 100")
book.commit()
book.execute("begin exclusive")  # nobody else can open it
""",
    "daemon": """
import os
import pathlib
import signal
import time

if os.fork() == 0:
    os.setsid()
    for number in {*range(1, 32)} - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        for _ in range(3000):
            for name in ("gradebook.db", "submitted/zoe/SET/SET.ipynb"):
                try:
                    pathlib.Path("COURSE", name).write_text("hacked")
                except OSError:
                    pass
            time.sleep(0.02)
    os._exit(0)
""",
    "files": """
import os
import pathlib
import shutil

course = pathlib.Path("COURSE")
for path in [*course.rglob("*")]:
    if path.is_file():
        path.chmod(0o666)
        path.write_text("hacked")
for attack in (
    lambda: (course / "hacked.txt").write_text("hacked"),
    lambda: shutil.rmtree(course / "release"),
    lambda: shutil.copytree(course / "submitted/ada", course / "submitted/of_a_ghost"),
    lambda: (course / "submitted/zoe").rename(course / "submitted/yannick"),
    lambda: (course / "submitted/zoe").symlink_to("/etc"),
    lambda: os.mkfifo(course / "submitted/pipe"),
    lambda: course.chmod(0),
):
    try:
        attack()
    except OSError:
        pass
""",
}

ON_THE_MACHINE = {  # only bubblewrap keeps these in their place
    "reach": """
import os
import socket

seen = []
for place in ("COURSE/source", "COURSE/submitted", "COURSE/../mine.txt", "/home", "/var", "/etc/passwd"):
    if os.path.exists(place):
        seen.append(place)
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=2)
    seen.append("network")
except OSError:
    pass
for place in ("/", "/dev", "/usr", "COURSE", os.path.dirname(os.__file__)):
    try:
        open(f"{place}/written", "w").close()
        seen.append(f"write {place}")
    except OSError:
        pass
seen += [f"process {pid}" for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 1000]
seen += {"A_TOKEN", "JPY_PARENT_PID"} & {*os.environ}
print("reached", seen)
""",
    "disk": """
import os

places = [line.split()[1] for line in open("/proc/self/mounts") if not line.split()[2] in ("proc", "sysfs")]
written = 0
for place in {*places, "/tmp", "/dev/shm", os.path.expanduser("~")}:
    try:
        for number in range(40):
            with open(f"{place}/{number}.filled", "wb") as file:
                written += file.write(bytes(2**20))
    except OSError:
        pass
print("written", written >> 20)
""",
    "memory": """
much = [bytearray(2**28) for _ in range(64)]
""",
    "flood": """
from IPython.display import HTML, display

for _ in range(20):
    display(HTML("x" * 2**21))
""",
}

HEAVY = """
from IPython import get_ipython

kernel = get_ipython().kernel
slow_to_read = b"[" + b"[]," * 5_000_000 + b"0]"
for _ in range(200):
    kernel.session.send(kernel.iopub_socket, "display_data", slow_to_read, parent=kernel.get_parent("shell"))
"""


def forge_marks(nb):
    """Tests that are skipped, worth more or to be graded by hand, and marks that nobody can read."""
    for number, cell in enumerate(nb.cells):
        mark = cell.metadata.get("nbgrader")
        cell.metadata["tags"] = ["skip-execution", "raises-exception", "remove_cell"]
        if mark and mark["grade"]:
            changes = [{"points": 1000}, {"solution": True}, {"locked": False}, {"schema_version": 0}]
            mark.update(changes[number % 4])
        elif mark:
            mark.update(grade=True, points=500)
    nb.cells[0].metadata["nbgrader"] = {"grade_id": ["?"], "schema_version": 99}
