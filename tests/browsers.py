"""The browser that is there and the script of axe, for tests that look at pages."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text()


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """Start it; skip the test where there is none."""
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip(f"needs a browser: {', '.join(NAMES)}")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()
