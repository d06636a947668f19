"""The site of `make site`, built once: links, figures, formulas, search, and what axe says."""

import contextlib
import functools
import http.server
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from browsers import follow_links, open_browser, violations
from bs4 import BeautifulSoup
from course_size import course_size
from notebook_runs import PATHS
from playwright.sync_api import expect

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, str(ROOT / "docs" / "build.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # a warning is an error
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: BeautifulSoup(path.read_text(), "html.parser") for path in site.rglob("*.html")}


def test_everything_is_there(site):
    names = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    assert {f"notebooks/{path.stem}" for path in PATHS} <= names
    assert {"index", "tables", "search", "notebooks/GLOSSARY", "notebooks/exercises/TEACHING"} <= names
    assert {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")} <= names
    assert {"api/dmls2r_lite.model", "api/dmls2r_lite.estimators"} <= names


def test_no_dead_link_inside(pages):
    n_links, dead = follow_links(pages)
    assert dead == set()
    assert n_links > 5000  # notebooks, exercises, glossary, guides and modules


def test_figures_have_alternative_texts(pages):
    n_figures = 0
    for path, page in pages.items():
        for image in page.article.find_all("img") if page.article else []:
            assert len(image.get("alt", "")) > 20, (path.name, image.get("src"))
            n_figures += 1
    assert n_figures >= course_size().loc["all", "figures"]


def test_nothing_comes_from_the_net(pages):
    for path, page in pages.items():
        for tag in page.find_all(["script", "img", "link", "iframe"]):
            address = tag.get("src") or (tag.get("href") if tag.get("rel") != ["canonical"] else "") or ""
            assert not address.startswith(("http:", "https:", "//")), (path.name, address)


def test_formulas_are_mathml(pages):
    for path, page in pages.items():
        if path.parent.name in ("notebooks", "exercises"):
            for part in page.article.find_all(["code", "pre"]):
                part.extract()
            assert re.findall(r"\\[a-zA-Z]+|\$[^$]+\$", page.article.text) == [], path.name
    (mining,) = (page for path, page in pages.items() if path.stem == "02_triplet_mining")
    assert len(mining.find_all("math")) > 30


def test_glossary_is_linked_both_ways(pages):
    (glossary,) = (page for path, page in pages.items() if path.stem == "GLOSSARY")
    terms = glossary.select("dl.glossary dt")
    assert len(terms) > 80
    assert len([a for a in glossary.select("dl.glossary a") if "_" in a.get("href", "")]) > 80
    (mining,) = (page for path, page in pages.items() if path.stem == "02_triplet_mining")
    assert mining.select("a[href='GLOSSARY.html#term-ranked-list-loss']")
    assert {"CV+", "DML-S2R", "k-means"} <= {term.contents[0].strip() for term in terms}


@contextlib.contextmanager
def serve(folder):
    """Give the address at which a folder is served."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.browser
def test_search_and_accessibility(site):
    with open_browser() as browser, serve(site) as address:
        page = browser.new_page()
        page.goto(f"{address}/search.html?q=ranked+list+loss")
        found = page.locator("#search-results li a")
        expect(found.filter(has_text="Triplet mining").first).to_be_visible(timeout=60_000)
        for scheme in ("light", "dark"):
            page = browser.new_page(color_scheme=scheme, reduced_motion="reduce")  # no color on its way
            page.goto(f"{address}/index.html")
            assert violations(page) == [], scheme
