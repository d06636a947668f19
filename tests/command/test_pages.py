"""Pages of notebooks: what is shown, in which order, where links lead, and that nothing foreign comes in."""

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_runs import PATHS

from dmls2r_lite.command.options import align
from dmls2r_lite.command.pages import (
    NO_CAPTION,
    format_results,
    link_pages,
    markdown_to_html,
    markdown_to_text,
    table_to_html,
    text_to_html,
    to_html,
    to_mathml,
)

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
READ = [*PATHS, *sorted(NOTEBOOKS.glob("exercises/[0-9]*.ipynb")), NOTEBOOKS / "GLOSSARY.md"]
HOSTILE = "<img src=q onerror=alert(1)><script>alert(2)</script>"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def parse(html):
    return BeautifulSoup(html, "html.parser")


@cache
def page_of(path):
    if path not in PATHS:
        return parse(text_to_html(path, path.stem))
    nb = nbformat.read(path, as_version=4)
    return parse(to_html(nb, path.stem, [p.stem for p in PATHS], "On boston.", "a note"))


def display_data(**data):
    return new_output("display_data", {name.replace("_", "/"): value for name, value in data.items()})


def test_formulas():
    assert to_mathml("x_i") == "<math><msub><mi>x</mi><mi>i</mi></msub></math>"
    assert "(2)" in parse(to_mathml(r"a = b \tag{2}", block=True)).text
    assert "<mtable" in to_mathml(r"\begin{aligned} a &= b \\ &= c \end{aligned}", block=True)
    assert to_mathml(r"\frac{<b>") == r"<code>\frac{&lt;b&gt;</code>"  # is none


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_every_page_of_the_course(path):
    """Formulas, figures and marks."""
    page = page_of(path)
    texts = [text for text in page.main.find_all(string=True) if not text.find_parent(["code", "pre"])]
    assert re.findall(r"\\[a-zA-Z]+|\$[^$]+\$", "".join(texts)) == []
    assert not [code for code in page.find_all("code") if re.search(r"\\[a-zA-Z]|^\$", code.text)]
    assert page.find("math") or "$" not in path.read_text()
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert len(page.find_all("h1")) == 1
    if path in PATHS:
        assert all(len(image["alt"]) > 20 and "*" not in image["alt"] for image in page.find_all("img"))
        assert NO_CAPTION not in str(page)
        assert len(page.nav.find_all("li")) >= 4
        assert {link["href"][0] for link in page.nav.select("li a")} == {"#"}
        assert page.find(class_="findings").text.count(".") >= 2


class TestForeign:
    """The text of a table's file, columns and categories may be anything."""

    @pytest.fixture
    def page(self):
        html = f"<div>{HOSTILE}<table onclick='alert(3)'><tr><th></th><th style='color:red'>a</th></tr>"
        html += "<tr><td>1</td><td><!-- x --><a href='javascript:alert(4)'>b</a></td></tr></table>"
        links = f"{HOSTILE} [a](javascript:alert(5)) ![b](http://c.d/e)"
        outputs = [
            display_data(text_markdown=links),
            display_data(text_markdown="<details open onclick=alert(6)>\n\nf\n\n</details>"),
            display_data(text_html=html),
            display_data(image_png=PNG),
            display_data(text_markdown=f'*Figure:* "{HOSTILE}" and $x$'),
            new_output("stream", name="stdout", text=HOSTILE),
            new_output("error", ename="E", evalue="v", traceback=[HOSTILE]),
        ]
        cells = [new_markdown_cell(f"# A\n\n{HOSTILE}"), new_code_cell(f"# {HOSTILE}", outputs=outputs)]
        return parse(to_html(new_notebook(cells=cells), HOSTILE.replace("/", ""), [], HOSTILE, HOSTILE))

    def test_no_element_comes_of_it(self, page):
        assert page.find_all(["script", "iframe", "object", "form", "link", "style"]) == [page.style]
        (image,) = page.find_all("img")
        assert image["src"] == f"data:image/png;base64,{PNG}"
        assert image["alt"] == f'"{HOSTILE}" and x'
        for tag in page.find_all(True):
            assert not [name for name in tag.attrs if name.startswith("on")]
        assert [a["href"] for a in page.find_all("a", href=True)] == ["../index.html"]
        assert page.table.find_all(style=True) == page.table.find_all("a") == []

    def test_it_is_shown_as_it_is(self, page):
        assert page.main.text.count(HOSTILE) == 7  # about, and six places in cells
        assert page.title.text == "A"
        assert page.find(string=re.compile("onclick"))

    def test_policy_of_the_page(self, page):
        policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
        assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@pytest.mark.parametrize(
    ("text", "style"),
    [
        *[(text, "number") for text in ("1", "-2.5e-07", "", "NaN", "12,345", "3 ± 10,000", "± 0.9", "–")],
        *[(text, "number") for text in ("4.8 ± 0.1 (20)", "7 of 12", "0.3 ▼", "88 %")],
        ("cannot tell", None),
        ("a text that nobody reads in a column of one word", "text"),
    ],
)
def test_cells_of_tables(text, style):
    """What the page's style aligns by."""
    html = f"<thead><tr><th></th><th>a</th></tr></thead><tbody><tr><th>r</th><td>{text}</td></tr></tbody>"
    markdown = f"| | a |\n| --- | --- |\n| *r* | {text} |"
    for page in (
        table_to_html(f"<style>p</style><table border='1'>{html}</table>"),
        markdown_to_html(markdown),
    ):
        cell = parse(page).tbody.find_all(["th", "td"])[1]
        assert (cell.text, cell.get("class")) == (text, style and [style])
        assert [heading.text for heading in parse(page).thead.find_all("th")] == ["a"]  # the other is empty


def test_headings_have_ids():
    html = markdown_to_html('# My *A*\n\n## <a id="cv-plus"></a>CV+\n\n## <a id="x" href="y"></a>B')
    my, plus, foreign = parse(html).find_all(["h1", "h2"])
    assert (my["id"], plus.a["id"], plus.text) == ("My-A", "cv-plus", "CV+")
    assert foreign.text.startswith("<a id")  # any other HTML is shown as it is
    glossary = page_of(NOTEBOOKS / "GLOSSARY.md")
    assert glossary.find(id="dml-s2r").parent.text == "DML-S2R"


class TestPage:
    def test_bar(self):
        first, second, last = (page_of(path).nav for path in (PATHS[0], PATHS[1], PATHS[-1]))
        pages = [f"{PATHS[0].stem}.html", f"{PATHS[2].stem}.html", "GLOSSARY.html"]
        assert [a.get("data-page") for a in second.find_all("a")[:4]] == [None, *pages]
        assert "←" not in first.text
        assert "→" not in last.text

    def test_code_is_folded_unless_it_is_the_lesson(self):
        page = page_of(PATHS[1])
        opened = [fold.summary.text for fold in page.find_all("details", class_="folded", open=True)]
        assert len(opened) == PATHS[1].read_text().count('"hand-built"') > 0
        assert all(text.startswith("Code: ") for text in opened)
        cells = [new_code_cell("a"), new_code_cell("a\nb")]
        folds = parse(to_html(new_notebook(cells=cells), "x")).find_all("summary")
        assert [fold.text for fold in folds] == ["Code, 1 line", "Code, 2 lines"]

    def test_report_begins_with_findings_and_pictures(self):
        page = page_of(PATHS[5])
        assert not page.find_all("details", class_="folded", open=True)
        first_fold = page.find("details", class_="folded")
        for part in [page.find(class_="findings"), *page.find_all("figure")]:
            assert first_fold in part.find_all_next("details")
        assert len(page.find_all("figcaption")) == len(page.find_all("img")) == 4
        before, after = page.main.text.split("Code", 1)
        for text in ("Is this worth it for my table", "how to read it", "a note"):
            assert text in before
        assert "Figure:" not in after


def test_links_within_a_folder(tmp_path):
    course, folder = tmp_path / "course", tmp_path / "runs"
    (course / "exercises").mkdir(parents=True)
    (course / "GLOSSARY.md").write_text("# Glossary\n\n### code\n\n[01](01_a.ipynb), [02](02_b.ipynb)")
    exercise = new_markdown_cell("# E\n\n[01](../01_a.ipynb#x-y) [c](../GLOSSARY.md#code)")
    for number in "12":
        nbformat.write(new_notebook(cells=[exercise]), course / "exercises" / f"{number}_a.ipynb")
    folder.mkdir()
    text = "# A\n\n[c](GLOSSARY.md#code), [1](exercises/1_a.ipynb) [i](../j) [h](#g) [f](https://g.h)"
    (folder / "01_a.html").write_text(
        to_html(new_notebook(cells=[new_markdown_cell(text)]), "01_a", ["01_a", "02_b"])
    )
    record = {"notebooks": {"01_a": {"html": "01_a.html"}, "02_b": {"html": "02_b.html"}}}
    for _ in range(2):  # links that have been settled are settled anew
        pages = link_pages(folder, record, course)
        hrefs = {
            name: [a["href"] for a in parse(page).find_all("a", href=True)] for name, page in pages.items()
        }
        index, glossary = ["../index.html", "GLOSSARY.html"], "../GLOSSARY.html"
        assert hrefs == {
            "01_a.html": [*index, "GLOSSARY.html#code", "exercises/1_a.html", "#g", "https://g.h"],
            "GLOSSARY.html": [*index, "01_a.html"],
            "exercises/1_a.html": ["../../index.html", glossary, "../01_a.html#x-y", f"{glossary}#code"],
        }  # nothing leads to the other exercise
        (folder / "01_a.html").write_text(pages["01_a.html"])


def test_words_of_a_caption():
    assert markdown_to_text("a *new* row's `x`, $y^2$\nand [b](c)") == "a new row's x, y2 and b"


def test_values_for_a_terminal():
    results = {"finding": "It helped.", "large": 4381.23, "small": -1.5e-7, "n": 30000, "model": "ridge"}
    assert format_results(results) == "large 4,380, small -1.5e-07, n 30000, model ridge"
    assert format_results(results, at_most=1) == "large 4,380"
    assert align([["a", "b"], ["x", "9.5"], ["long", "10"]]) == ["a       b", "x     9.5", "long   10"]
