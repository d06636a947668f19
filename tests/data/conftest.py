"""What tests of tables share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a file into an empty folder."""

    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
