"""What tests of the command share."""

import pytest


@pytest.fixture
def notebooks(tmp_path):
    """Where a test may write notebooks: results go beside it, into runs."""
    return tmp_path / "notebooks"


@pytest.fixture
def flats(tmp_path):
    """The path of a table of 30 rows, 15 of them without a price."""
    path = tmp_path / "flats.csv"
    rows = [f"{i},{'north' if i % 3 else 'south'},{i * 2 if i % 2 else ''}" for i in range(30)]
    path.write_text("\n".join(["size,where,price", *rows]))
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
