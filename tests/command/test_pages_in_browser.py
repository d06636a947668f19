"""Pages as a reader sees them: offline, in light and dark, on a phone. Screenshots go to results/browser/."""

import pytest
from browsers import SEEN, follow_links, open_browser, violations
from bs4 import BeautifulSoup
from fake_notebooks import run, without_kernels
from nbformat.v4 import new_markdown_cell, new_notebook
from notebook_runs import PATHS

from dmls2r_lite.command.pages import to_html

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture
def look(browser):
    """A function that opens a page, and notices what must not be."""
    contexts, wrong = [], []

    def open_page(path, scheme="light", width=1280):
        size = {"width": width, "height": 900}
        contexts.append(browser.new_context(color_scheme=scheme, viewport=size, offline=True))
        page = contexts[-1].new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append("a dialog"), dialog.dismiss()))
        page.goto(path.as_uri())
        page.screenshot(path=SEEN / f"page_{path.stem}_{scheme}_{width}.png")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The pages of a run whose notebooks have the outputs that are committed."""
    output = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        without_kernels(patch)
        result = run(PATHS[0].parent, "boston", output=output)
    assert result.exit_code == 0, result.output
    return output


def test_no_link_within_is_dead(course):
    pages = {path: BeautifulSoup(path.read_text(), "html.parser") for path in course.rglob("*.html")}
    n_links, dead = follow_links(pages)
    assert dead == set()
    assert n_links > 400


@pytest.mark.parametrize("name", ["index", "boston/05_your_own_data"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_accessible(name, scheme, width, course, look):
    assert violations(look(course / f"{name}.html", scheme, width)) == []


def test_on_a_phone(course, look):
    figure = look(course / "boston" / "02_triplet_mining.html", width=390).locator("figure").first
    assert round(figure.locator("img").bounding_box()["width"]) == 640  # its text can be read
    assert figure.locator(".scrolls").bounding_box()["width"] <= 390
    glossary = look(course / "boston" / "GLOSSARY.html", "dark", 390)
    meaning = glossary.locator("th", has_text="meaning").bounding_box()
    assert meaning["width"] > 200
    assert meaning["x"] + meaning["width"] < 390
    bar = look(course / "index.html", width=390).locator(".bar")
    assert bar.bounding_box()["height"] < 60  # one line, however many datasets


def test_looks(course, look):
    page = look(course / "boston" / "01_pairwise_modeling.html")
    with_formula = "[...document.querySelectorAll('li:has(math)')].map(li => getComputedStyle(li).overflowX)"
    assert set(page.evaluate(with_formula)) == {"visible"}  # else it loses its number
    cell = new_markdown_cell("# Numbers\n\n| | a |\n| --- | --- |\n| x | 1.5 |\n| y | 2 |")
    (course / "boston" / "numbers.html").write_text(to_html(new_notebook(cells=[cell]), "numbers"))
    numbers, texts = (look(course / "boston" / f"{name}.html") for name in ("numbers", "05_your_own_data"))
    aligned = "[...document.querySelectorAll('table')[0].querySelectorAll('tr > :nth-child(2)')]"
    aligned += ".map(cell => getComputedStyle(cell).textAlign)"
    assert set(numbers.evaluate(aligned)) == {"right"}  # with their heading
    assert "right" not in texts.evaluate(aligned)  # in a column of a few numbers among texts
