"""A student's code in a process of its own: what passes to and fro, and what is out of its reach."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

pytest.importorskip("psutil", reason="needs psutil: pip install -e '.[course]'")

from dmls2r_lite.teaching.remote import Stopped
from dmls2r_lite.teaching.submission import Submission, can_shut_in, unchanged

LIMITS = {"seconds": 20, "memory": 4 * 2**30, "disk": 2**20, "max_stops": 3}

unix = pytest.mark.skipif(os.name == "nt", reason="for Unix")


@pytest.fixture(scope="module")
def submission(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handed_in") / "files"
    folder.mkdir()
    (folder / "torch.py").write_text("raise ImportError('not the real one')")
    (folder / "helper.py").write_text("two = 2")
    submission = Submission(str(folder), str(folder), is_shut_in=False, **LIMITS)
    submission.begin()
    yield submission
    submission.close()


VALUES = [
    *(None, True, 3, -0.5, "text", b"bytes", (1, [2.0, "b"]), {"a": (1,), 2: None}, {1, 2}),
    *(
        np.arange(6).reshape(2, 3),
        np.float32(0.1),
        np.array(["a", "bc"]),
        np.array([None, 1.5], dtype=object),
    ),
    *(torch.randn(2, 3), torch.tensor(2.0, dtype=torch.float64), torch.tensor([True, False])),
    pd.Series([1.0, np.nan], index=[5, 3], name="price"),
    pd.DataFrame(
        {"a": [1, 2], "b": ["u", None], "c": pd.to_datetime(["2020-01-01", "2021-02-03"])}, index=[7, 5]
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_pass_unchanged(submission, value):
    submission.begin()
    submission.run("import copy\ndef same(x):\n    return copy.deepcopy(x)")
    got = submission.answer("same")(value)
    assert type(got) is type(value)
    if isinstance(value, pd.DataFrame):
        pd.testing.assert_frame_equal(got, value)
    elif isinstance(value, pd.Series):
        pd.testing.assert_series_equal(got, value)
    elif isinstance(value, torch.Tensor):
        assert got.dtype == value.dtype
        assert torch.equal(got, value)
    elif isinstance(value, np.ndarray):
        np.testing.assert_array_equal(got, value)
    else:
        assert got == value


def test_calls(submission, capsys):
    submission.begin()
    submission.run(
        "import helper\ndef f(x, power=2):\n    print('here')\n    return (x**power).sum() * helper.two"
    )
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    result = submission.answer("f")(x, power=3)
    (3 * result).backward()
    assert result.item() == 18
    assert x.grad.tolist() == [18.0, 72.0]
    assert capsys.readouterr().out == "here\n"
    submission.run("def g(fit, x):\n    return fit(x)(x)")
    assert submission.answer("g")(lambda x: lambda y: x + y, 4) == 8
    submission.run("class Model:\n    def predict(self, x):\n        return -x\ndef h():\n    return Model()")
    assert submission.answer("h")().predict(3) == -3
    assert submission.answer("g").__code__.co_varnames == ("fit", "x")


def test_side_effects_show(submission):
    submission.begin()
    submission.run("def change(x):\n    x += 1\n    return x\ndef give_back(x):\n    return x")
    submission.run("import torch\ndef draw():\n    return torch.rand(1)")
    x = np.zeros(2)
    with pytest.raises(AssertionError, match="it changes its input x"):
        submission.answer("change")(x)
    assert submission.answer("give_back")(x) is x
    torch.manual_seed(0)
    state = torch.random.get_rng_state()
    first = submission.answer("draw")()
    assert not torch.equal(state, torch.random.get_rng_state())
    torch.manual_seed(0)
    assert torch.equal(torch.rand(1), first)

    submission.run(
        "import numpy as np\ndef seed():\n    np.random.seed(1)\ndef normal():\n    return np.random.randn()"
    )
    submission.answer("seed")()
    drawn = [submission.answer("normal")() for _ in range(3)]
    np.random.seed(1)  # noqa: NPY002
    assert drawn == list(np.random.randn(3))  # noqa: NPY002


def test_errors_keep_their_kind(submission):
    submission.begin()
    submission.run("import sys\ndef wrong():\n    return [][1]\ndef quits():\n    sys.exit()")
    submission.run("def later():\n    raise NotImplementedError")
    with pytest.raises(IndexError, match=r"out of range \(line 3 of wrong: return \[\]\[1\]\)"):
        submission.answer("wrong")()
    with pytest.raises(RuntimeError, match="SystemExit"):
        submission.answer("quits")()
    with pytest.raises(NotImplementedError, match=r"^$"):
        submission.answer("later")()
    with pytest.raises(NameError, match="'nobody'"):
        submission.answer("nobody")()


@unix
def test_what_does_not_end_costs_itself_only(tmp_path, capsys):
    files = tmp_path / "files"
    files.mkdir()
    options = {**LIMITS, "seconds": 1}
    submission = Submission(str(files), str(files), is_shut_in=False, **options)
    try:
        for code in (
            "def first():\n    return 1",
            "while True:\n    pass",
            "def endless():\n    while True: pass",
        ):
            submission.begin()
            submission.run(code)
        assert capsys.readouterr().out == "Stopped: no end within 1 seconds\n"
        submission.begin()
        with pytest.raises(Stopped, match="no end within 1 seconds"):
            submission.answer("endless")()
        assert submission.answer("first")() == 1
        with pytest.raises(Stopped, match="no end within 1 seconds"):  # at once: it is known
            submission.answer("endless")()
    finally:
        submission.close()


REACH = """
import os, pathlib, socket
seen = []
for place in PLACES:
    try:
        os.listdir(place) and seen.append(place)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=2)
    seen.append("network")
except OSError:
    pass
for place in ("/", "/dev", "/usr", COURSE, os.path.dirname(os.__file__)):
    try:
        open(f"{place}/written", "w").close()
        seen.append(f"write {place}")
    except OSError:
        pass
try:
    for number in range(100):
        open(f"/tmp/{number}", "wb").write(bytes(2**18))
    seen.append("disk")
except OSError:
    pass
seen += [pid for pid in os.listdir("/proc") if pid == str(OUTSIDE)]
print(seen, sorted(os.environ))
"""


def test_bubblewrap_leaves_nothing_in_reach(tmp_path, capsys, monkeypatch):
    if not can_shut_in():
        pytest.skip("needs bubblewrap")
    monkeypatch.setenv("A_TOKEN", "secret")
    course, files = tmp_path / "course", tmp_path / "files"
    for folder in (course, files):
        folder.mkdir()
        (folder / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = [str(course), str(course / "source"), "/var", str(Path(__file__).parent)]
        code = REACH.replace("PLACES", str(places)).replace("PORT", str(server.getsockname()[1]))
        code = code.replace("COURSE", repr(str(course))).replace("OUTSIDE", str(os.getpid()))
        submission = Submission(str(files), str(course), is_shut_in=True, **LIMITS)
        try:
            submission.begin()
            submission.run(code)
        finally:
            submission.close()
    printed = capsys.readouterr().out
    assert printed.startswith("[] [")
    assert "A_TOKEN" not in printed


@unix
def test_files_are_put_back(tmp_path):
    course, elsewhere = tmp_path / "course", tmp_path / "elsewhere"
    (course / "source").mkdir(parents=True)
    elsewhere.mkdir()
    for name in ("a", "source/b", "source/c", "log"):
        (course / name).write_text(name)
    changed: list[Path] = []
    with unchanged(course, changed, but=[course / "log"]):
        (course / "a").write_text("hacked")
        (course / "log").write_text("more")
        (course / "source" / "b").unlink()
        (course / "source" / "b").mkdir()
        (course / "source" / "b" / "inside").touch()
        (course / "source" / "c").unlink()
        (course / "source").rename(course / "moved")
        (course / "source").symlink_to(elsewhere)
        (course / "new").symlink_to("/etc/passwd")
        (course / "of_a_ghost" / "empty").mkdir(parents=True)
        course.chmod(0o500)
    found = {str(path.relative_to(course)): path for path in course.rglob("*") if not path.is_dir()}
    assert {name: path.read_text() for name, path in found.items()} == {
        **{name: name for name in ("a", "source/b", "source/c")},
        "log": "more",
    }
    assert list(elsewhere.iterdir()) == []
    assert sorted(path.name for path in course.iterdir()) == ["a", "log", "source"]
    assert course / "a" in changed


@pytest.mark.skipif(sys.platform != "linux", reason="for Linux")
def test_no_process_is_left(tmp_path):
    """Not even one that has left its parent, its session and its signals behind."""
    code = f"""
import os, signal, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
time.sleep(0.5)
"""
    script = f"""
import subprocess, sys
from dmls2r_lite.teaching.submission import nothing_left
with nothing_left():
    subprocess.run([sys.executable, "-c", {code!r}])
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    pid = int((tmp_path / "pid").read_text())
    time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()
