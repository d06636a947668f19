"""The browser that is there, what axe says of a page, and dead links, for tests that look at pages."""

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import axe_playwright_python
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page, sync_playwright

SEEN = Path(__file__).parents[1] / "results" / "browser"  # gets screenshots and times
NAMES = ("chromium", "chromium-browser", "google-chrome")
AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text()


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """Start it; skip the test where there is none."""
    SEEN.mkdir(parents=True, exist_ok=True)
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip(f"needs a browser: {', '.join(NAMES)}")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()


def violations(page: Page, part: str = "html") -> list[tuple[str, str]]:
    """Rules of accessibility that a part of a page breaks, each with an element."""
    found = page.evaluate(f"async part => {{ {AXE}; return await axe.run(part) }}", part)
    assert found["passes"]
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]]


def follow_links(pages: dict[Path, BeautifulSoup]) -> tuple[int, set[tuple[str, str]]]:
    """Count links within the folder of these pages, and find those that lead nowhere."""
    ids = {path: {tag["id"] for tag in page.find_all(id=True)} for path, page in pages.items()}
    n_links, dead = 0, set()
    for path, page in pages.items():
        for link in page.find_all("a", href=True):
            file, _, anchor = unquote(link["href"]).partition("#")
            if re.match(r"[a-z]+:", file) or link["href"] == "#":
                continue
            target = (path.parent / file).resolve() if file else path
            n_links += 1
            if not target.exists() or (anchor and target in ids and anchor not in ids[target]):
                dead.add((path.name, link["href"]))
    return n_links, dead
