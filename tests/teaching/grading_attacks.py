"""Submissions that attack their grading. COURSE is where the course is: they know it, the worst case."""

ON_OTHERS = ("gradebook", "files", "another_student", "daemon")  # that aim at what is not theirs
NEEDS_BUBBLEWRAP = ("solutions", "disk_and_memory")  # without, these succeed
ATTACKS = {
    "gradebook": """
import sqlite3

book = sqlite3.connect("COURSE/gradebook.db")
book.execute("update grade set auto_score = 0")
book.execute("update grade set manual_score = 99")
book.execute("update grade_cells set max_score = 100")
book.commit()
book.execute("begin exclusive")  # nobody else can open it
""",
    "solutions": """
import json
import pathlib

for path in pathlib.Path("COURSE/source").glob("*/1_*.ipynb"):
    for cell in json.loads(path.read_text())["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            exec("".join(cell["source"]))
""",
    "files": """
import os
import pathlib
import shutil

for path in pathlib.Path("COURSE").rglob("*"):
    try:
        path.is_file() and path.write_text("hacked")
    except OSError:
        pass
for place in ("COURSE", "COURSE/source", "COURSE/submitted/zoe", os.path.expanduser("~")):
    try:
        pathlib.Path(place, "hacked.txt").write_text("hacked")
    except OSError:
        pass
shutil.rmtree("COURSE/release", ignore_errors=True)
os.rename("COURSE/submitted/zoe", "COURSE/submitted/yannick")
os.symlink("/etc", "COURSE/submitted/zoe")
""",
    "faked_checks": """
import builtins
import gc
import sys
import types

import numpy
import torch

import dmls2r_lite.teaching.checks as checks


class Anything:
    def __getattr__(self, name):
        return self

    def __call__(self, *arguments, **named):
        return self

    def __eq__(self, other):
        return True

    def __lt__(self, other):
        return True

    def __abs__(self):
        return self

    def __sub__(self, other):
        return self

    def __bool__(self):
        return True


def fine(*arguments, **named):
    return None


for module in list(sys.modules.values()):
    for name in ("check", "check_that", "_report", "_difference", "assert_close", "assert_allclose"):
        if hasattr(module, name):
            setattr(module, name, fine)
torch.equal = numpy.array_equal = lambda *_: True
check = check_that = fine
builtins.AssertionError = type("AssertionError", (Exception,), {})
recover_targets = asymmetry = loop_inconsistency = Anything()
huber_pairwise_loss = weighted_estimate = robust_estimate = lambda *_: Anything()
""",
    "kernel": """
import atexit
import builtins
import gc
import os
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

done = type("Done", (), {"success": True, "result": None, "error_in_exec": None, "error_before_exec": None})()
InteractiveShell.run_cell = InteractiveShell.run_code = lambda *_, **__: done
InteractiveShell.showtraceback = DisplayHook.__call__ = lambda *_, **__: None
sys.excepthook = builtins.compile = lambda *_, **__: None
for thing in gc.get_objects():
    if type(thing).__name__ in ("Worker", "Peer"):  # what talks to the tests
        type(thing).handle = lambda *_: (("tensor", ("array", (), "<f4", bytes(4))), None, None)
        type(thing).pack = lambda *_: None
atexit.register(os._exit, 0)
""",
    "another_student": """
import pathlib
import shutil

for folder in ("submitted", "autograded", "feedback"):
    for student in ("ada", "zoe"):
        for path in pathlib.Path("COURSE", folder, student).rglob("*.ipynb"):
            path.chmod(0o666)
            path.write_text(path.read_text().replace("return", "return 0 *"))
shutil.copytree("COURSE/submitted/ada", "COURSE/submitted/of_a_ghost")
""",
    "daemon": """
import os
import pathlib
import signal
import time

if os.fork() == 0:
    os.setsid()
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        for _ in range(3000):
            for name in ("gradebook.db", "submitted/zoe/1_pairwise_modeling/1_pairwise_modeling.ipynb"):
                try:
                    pathlib.Path("COURSE", name).write_text("hacked")
                except OSError:
                    pass
            time.sleep(0.02)
    os._exit(0)
""",
    "disk_and_memory": """
import itertools
import socket

for number in itertools.count():
    try:
        with open(f"/tmp/{number}", "wb") as file:
            for _ in range(100):
                file.write(bytes(10**7))
    except OSError:
        break
    if number > 20:
        break
try:
    socket.create_connection(("1.1.1.1", 53), timeout=5)
except OSError:
    pass
much = [bytearray(10**9) for _ in range(200)]
""",
    "messages": """
import os
import pickle


class Evil:
    def __reduce__(self):
        return os.system, ("touch COURSE/hacked.txt",)


for descriptor in range(3, 30):
    try:
        os.write(descriptor, pickle.dumps(("value", Evil())))
        os.write(descriptor, pickle.dumps(("value", (("yours", 0), None, None))) * 50)
    except OSError:
        pass
""",
}


def attack_marks(nb):
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


def attack_modules(folder, course):
    """Modules beside the notebook, with the names of those that the tests import."""
    for name in ("torch", "numpy", "dmls2r_lite", "sitecustomize", "psutil", "pickle"):
        code = f"import os\n\nopen('{course}/hacked.txt', 'w').close()\nos._exit(0)\n"
        (folder / f"{name}.py").write_text(code)
