"""Pages as a reader sees them: offline, in light and dark, on a phone. Screenshots go to results/browser/."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import nbformat
import numpy as np
import pandas as pd
import pytest
from browsers import AXE, open_browser
from bs4 import BeautifulSoup
from click.testing import CliRunner
from notebook_runs import PATHS

from dmls2r_lite.command import cli
from dmls2r_lite.command.pages import collect_results, link_pages, make_index, to_html
from dmls2r_lite.command.tables import tables_to_html
from dmls2r_lite.study.benchmark import shipped_trials

ROOT = Path(__file__).parents[2]
SEEN = ROOT / "results" / "browser"
LOOKS = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
OF_TEXTS = """() => {
  const main = document.querySelector("main").cloneNode(true);
  main.querySelectorAll("pre, code").forEach(part => part.remove());
  return main.textContent;
}"""

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser():
    SEEN.mkdir(parents=True, exist_ok=True)
    with open_browser() as opened:
        yield opened


@pytest.fixture
def look(browser):
    """A function that opens a page, and notices what must not be."""
    contexts, wrong = [], []

    def open_page(path, scheme="light", width=1280):
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 900}, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append("a dialog"), dialog.dismiss()))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The pages of a run whose notebooks have the outputs that are committed."""
    folder = tmp_path_factory.mktemp("runs") / "boston"
    folder.mkdir()
    entries = {}
    for path in PATHS:
        nb = nbformat.read(path, as_version=4)
        shutil.copy(path, folder)
        page = to_html(nb, path.stem, [path.stem for path in PATHS], "On boston.", "", "1000 USD")
        (folder / f"{path.stem}.html").write_text(page)
        entries[path.stem] = {
            "status": "ok", "path": path.name, "html": f"{path.stem}.html", "seconds": 1.0, "given": {},
            "parameters": {}, "fingerprint": "", "results": collect_results(nb),
        }  # fmt: skip
    record = {"dataset": "boston", "source": "boston", "target": "MEDV [1000 USD]", "complete": True,
              "versions": {}, "notebooks": entries}  # fmt: skip
    (folder / "results.json").write_text(json.dumps(record))
    for name, page in link_pages(folder, record, ROOT / "notebooks").items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(page)
    (folder.parent / "index.html").write_text(make_index(folder.parent))
    (folder.parent / "tables.html").write_text(tables_to_html(shipped_trials()))
    return folder.parent


def test_no_raw_formula_and_no_wide_page(course, look):
    for path in course.rglob("*.html"):
        page = look(path, width=390)
        assert re.findall(r"\\[a-zA-Z]+|\$[^$]+\$", page.evaluate(OF_TEXTS)) == [], path.name
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path.name
        page.context.close()


def test_on_a_phone(course, look):
    page = look(course / "boston" / "02_triplet_mining.html", width=390)
    figure = page.locator("figure").first
    assert round(figure.locator("img").bounding_box()["width"]) == 640  # its text can be read
    assert figure.locator(".scrolls").bounding_box()["width"] <= 390
    page = look(course / "boston" / "GLOSSARY.html", width=390)
    meaning = page.locator("th", has_text="meaning").bounding_box()
    assert meaning["width"] > 200
    assert meaning["x"] + meaning["width"] < 390
    page = look(course / "index.html", width=390)
    assert page.locator(".bar").bounding_box()["height"] < 60  # one line, however many datasets
    page = look(course / "boston" / "01_pairwise_modeling.html")
    with_formula = "[...document.querySelectorAll('li:has(math)')].map(li => getComputedStyle(li).overflowX)"
    assert set(page.evaluate(with_formula)) == {"visible"}  # else it loses its number


def test_links_within(course, look):
    ids = {}
    for path in course.rglob("*.html"):
        soup = BeautifulSoup(path.read_text(), "html.parser")
        ids[path] = (
            {tag["id"] for tag in soup.find_all(id=True)},
            [a["href"] for a in soup.find_all("a", href=True)],
        )
    n_links = 0
    for path, (_, links) in ids.items():
        for link in links:
            if not link.startswith("http"):
                file, _, anchor = unquote(link).partition("#")
                target = (path.parent / file).resolve() if file else path
                n_links += 1
                assert target in ids, (path.name, link)
                assert not anchor or anchor in ids[target][0], (path.name, link)
    assert n_links > 400


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
@pytest.mark.parametrize(
    "name", ["index", "tables", "boston/02_triplet_mining", "boston/05_your_own_data", "boston/GLOSSARY"]
)
def test_accessible(name, scheme, width, course, look):
    page = look(course / f"{name}.html", scheme, width)
    page.screenshot(path=SEEN / f"page_{Path(name).name}_{scheme}_{width}.png")
    if width == 1280:
        page.evaluate(AXE)
        found = page.evaluate("axe.run()")
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []
        assert len(found["passes"]) > 15


HOSTILE = "<img src=q onerror=alert(1)>"


def test_hostile_table(tmp_path, look):
    """Markup in the name of a file, of columns and of categories."""
    rng = np.random.default_rng(0)
    n = 40
    table = pd.DataFrame({
        "<script>alert(2)</script>": rng.random(n),
        "[a](javascript:alert(3))": rng.choice(["<svg onload=alert(4)>", "**b**", "c | d"], n),
        "![e](http://f.g)": rng.random(n).round(3),
        "<b>y</b>": np.where(np.arange(n) < 20, rng.random(n).round(3), np.nan),
    })  # fmt: skip
    path = tmp_path / f"x{HOSTILE}.csv"
    table.to_csv(path, index=False)
    command = ["run", str(path), "--only", "05", "-p", "target", "<b>y</b>"]
    result = CliRunner().invoke(cli.main, [*command, "--output-dir", str(tmp_path / "runs")])
    assert result.exit_code == 0, result.output
    for page_path in [tmp_path / "runs" / "index.html", *(tmp_path / "runs").glob("*/05*.html")]:
        page = look(page_path)
        assert page.locator("script, iframe, svg, b, img:not([src^='data:image/png'])").count() == 0
        assert HOSTILE in page.inner_text("body")
    assert {a.get_attribute("href") for a in page.locator("main a[href^=http]").all()} == set()
