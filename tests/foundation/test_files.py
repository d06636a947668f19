"""Files are whole or not there, whatever happens; workers end with whom they work for."""

import contextlib
import os
import signal
import stat
import subprocess
import sys

import psutil
import pytest
from waiting import wait_for

from dmls2r_lite.foundation.files import replacing, write_whole

posix = pytest.mark.skipif(os.name == "nt", reason="asks for what Windows does not have")


def limited(code, n_bytes=None, umask=0o022):
    """Run Python code in a process that can write so many bytes into a file, as on a full disk."""
    import resource

    def prepare():
        os.umask(umask)
        if n_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    code = f"from pathlib import Path\nfrom dmls2r_lite.foundation.files import *\n{code}"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, preexec_fn=prepare, capture_output=True, text=True)


@posix
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_get_the_usual_permissions(umask, mode, tmp_path):
    done = limited(f"write_whole(Path({str(tmp_path)!r}, 'a.txt'), 'a')", umask=umask)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == mode


class TestReplacing:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        yield path
        assert list(tmp_path.iterdir()) == [path]  # nothing unfinished is left

    def test_whoever_looks_sees_the_old_file_or_the_new_one(self, path):
        with replacing(path) as unfinished:
            unfinished.write_text("new")
            assert path.read_text() == "old"
        assert path.read_text() == "new"

    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
    def test_an_error_leaves_the_old_file(self, error, path):
        with pytest.raises(error), replacing(path) as unfinished:  # noqa: PT012
            unfinished.write_text("half")
            raise error
        assert path.read_text() == "old"

    def test_a_folder_that_vanishes(self, tmp_path):
        (tmp_path / "folder").mkdir()
        message = r"a\.txt could not be written: No such file.*no such file now"
        with pytest.raises(FileNotFoundError, match=message), replacing(tmp_path / "folder" / "a.txt"):
            (tmp_path / "folder").rmdir()

    @posix
    def test_a_full_disk(self, path):
        done = limited(f"write_whole(Path({str(path)!r}), 'new' * 1000)", n_bytes=1000)
        assert "a.txt could not be written: File too large; what was there before is kept" in done.stderr
        assert path.read_text() == "old"

    @posix
    @pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="the superuser may write anywhere")
    def test_a_folder_that_is_read_only(self, path):
        path.parent.chmod(0o500)
        try:
            with pytest.raises(PermissionError, match="Permission denied; what was there before is kept"):
                write_whole(path, "new")
        finally:
            path.parent.chmod(0o700)
        assert path.read_text() == "old"


WORK = """
import sys, time
from pathlib import Path
from joblib import Parallel, delayed
from dmls2r_lite.foundation.files import ending_with_us

def work(folder, number):
    Path(folder, str(number)).touch()
    time.sleep(60)

if __name__ == "__main__":
    Parallel(n_jobs=2, **ending_with_us())(delayed(work)(sys.argv[1], n) for n in range(2))
"""


@posix
@pytest.mark.slow
@pytest.mark.parametrize("n_begun", [0, 1, 2])
def test_no_worker_outlives_its_parent(n_begun, tmp_path):
    """Killed when so many of its workers have begun a task, or just when the first has been started."""
    script, folder = tmp_path / "work.py", tmp_path / "begun"
    script.write_text(WORK)
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "JOBLIB_MULTIPROCESSING"}
    parent = psutil.Popen([sys.executable, script, folder], start_new_session=True, env=environment)
    try:
        wait_for(lambda: has_worker(parent) and len(os.listdir(folder)) >= n_begun, 60)
        parent.kill()
        parent.wait()
        wait_for(lambda: not is_any_left(parent.pid), 10)
        assert n_begun or not os.listdir(folder)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)


def has_worker(parent):
    return any("LokyProcess" in str(child.cmdline()) for child in parent.children())


def is_any_left(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
