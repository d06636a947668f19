"""Files are whole or not there, whatever happens; workers end with whom they work for."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from dmls2r_lite.foundation.files import leftovers, replacing, write_whole

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
    def test_whoever_looks_sees_the_old_file_or_the_new_one(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with replacing(path) as unfinished:
            unfinished.write_text("new")
            assert path.read_text() == "old"
        assert path.read_text() == "new"
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
    def test_an_error_leaves_the_old_file(self, error, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with pytest.raises(error), replacing(path) as unfinished:  # noqa: PT012
            unfinished.write_text("half")
            raise error
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_folder_that_vanishes(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        with (
            pytest.raises(
                FileNotFoundError, match=r"a\.txt could not be written: No such file.*no such file now"
            ),
            replacing(folder / "a.txt"),
        ):
            folder.rmdir()

    @posix
    def test_a_full_disk(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        done = limited(f"write_whole(Path({str(path)!r}), 'new' * 1000)", n_bytes=1000)
        assert "a.txt could not be written: File too large; what was there before is kept" in done.stderr
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    @posix
    @pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="the superuser may write anywhere")
    def test_a_folder_that_is_read_only(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(PermissionError, match="Permission denied; what was there before is kept"):
                write_whole(path, "new")
        finally:
            tmp_path.chmod(0o700)
        assert path.read_text() == "old"

    def test_leftovers_of_programs_that_were_killed(self, tmp_path):
        ours = [".unfinished-12-a.txt", ".unfinished-345-a.txt"]
        others = [".unfinished-12-b.txt", ".unfinished-mine-a.txt", ".unfinished-a.txt", "a.txt"]
        for name in ours + others:
            (tmp_path / name).touch()
        assert sorted(path.name for path in leftovers(tmp_path / "a.txt")) == ours


WORK = """
import os, sys, time
from pathlib import Path
from joblib import Parallel, delayed
from dmls2r_lite.foundation.files import ending_with

def work(folder, number):
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)

if __name__ == "__main__":
    Parallel(n_jobs=2)(delayed(ending_with)(os.getpid(), work, sys.argv[1], n) for n in range(2))
"""


def is_alive(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@posix
@pytest.mark.slow
def test_no_worker_outlives_its_parent(tmp_path):
    script, folder = tmp_path / "work.py", tmp_path / "pids"
    script.write_text(WORK)
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, script, folder], start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = [int(path.name) for path in folder.iterdir()]
        assert len(workers) == 2
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 10
        while any(map(is_alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(map(is_alive, workers))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
