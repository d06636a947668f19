"""Pages of notebooks: what is shown, in which order, where links lead, and that nothing foreign comes in."""

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_runs import PATHS, each_notebook

from dmls2r_lite.command.findings import describe, unit_of
from dmls2r_lite.command.pages import (
    NO_CAPTION,
    collect_results,
    format_value,
    link_pages,
    text_to_html,
    to_html,
)
from dmls2r_lite.command.rendering import (
    linked_pages,
    markdown_to_html,
    markdown_to_text,
    settle_links,
    table_to_html,
    to_mathml,
)

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
READ = [*PATHS, *sorted(NOTEBOOKS.glob("exercises/[0-9]*.ipynb")), NOTEBOOKS / "GLOSSARY.md"]
HOSTILE = "<img src=q onerror=alert(1)><script>alert(2)</script>"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def parse(html):
    return BeautifulSoup(html, "html.parser")


@cache
def html_of(path):
    if path not in PATHS:
        return text_to_html(path, path.stem)
    nb = nbformat.read(path, as_version=4)
    return to_html(nb, path.stem, [p.stem for p in PATHS], "On boston.", "a note", "1000 USD")


def page_of(path):
    return parse(html_of(path))


class TestFormulas:
    def test_by_hand(self):
        assert to_mathml("x_i") == "<math><msub><mi>x</mi><mi>i</mi></msub></math>"
        assert "(2)" in parse(to_mathml(r"a = b \tag{2}", block=True)).text
        assert "<mtable" in to_mathml(r"\begin{aligned} a &= b \\ &= c \end{aligned}", block=True)

    def test_what_is_no_formula_is_code(self):
        assert to_mathml(r"\frac{<b>") == r"<code>\frac{&lt;b&gt;</code>"

    @pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
    def test_every_formula_of_the_course(self, path):
        page = page_of(path)
        assert not [code for code in page.find_all("code") if re.search(r"\\[a-zA-Z]|^\$", code.text)]
        for part in page.find_all(["code", "pre", "style"]):
            part.extract()
        assert re.findall(r"\\[a-zA-Z]+|\$[^$]+\$", page.text) == []
        assert page.find("math") or "$" not in path.read_text()


class TestForeign:
    """The text of a table's file, columns and categories may be anything."""

    @pytest.fixture
    def page(self):
        html = f"<div>{HOSTILE}<table onclick='alert(3)'><tr><th></th><th style='color:red'>a</th></tr>"
        html += (
            "<tr><td colspan='2'>1</td><td><!-- x --><a href='javascript:alert(4)'>b</a></td></tr></table>"
        )
        outputs = [
            new_output(
                "display_data", {"text/markdown": f"{HOSTILE} [a](javascript:alert(5)) ![b](http://c.d/e)"}
            ),
            new_output(
                "display_data", {"text/markdown": "<details open onclick=alert(6)>\n\nf\n\n</details>"}
            ),
            new_output("display_data", {"text/html": html}),
            new_output("display_data", {"image/png": PNG}),
            new_output("display_data", {"text/markdown": f'*Figure:* "{HOSTILE}" and $x$'}),
            new_output("stream", name="stdout", text=HOSTILE),
            new_output("error", ename="E", evalue="v", traceback=[HOSTILE]),
        ]
        cells = [new_markdown_cell(f"# A\n\n{HOSTILE}"), new_code_cell(f"# {HOSTILE}", outputs=outputs)]
        return parse(
            to_html(new_notebook(cells=cells), HOSTILE.replace("/", ""), [], HOSTILE, HOSTILE, HOSTILE)
        )

    def test_no_element_comes_of_it(self, page):
        assert page.find_all(["script", "iframe", "object", "form", "link", "style"]) == [page.style]
        (image,) = page.find_all("img")
        assert image["src"] == f"data:image/png;base64,{PNG}"
        assert image["alt"] == f'"{HOSTILE}" and x'
        for tag in page.find_all(True):
            assert not [name for name in tag.attrs if name.startswith("on")]
        assert [a["href"] for a in page.find_all("a", href=True)] == ["../index.html"]

    def test_it_is_shown_as_it_is(self, page):
        assert page.main.text.count(HOSTILE) == 7  # about, and six places in cells
        assert page.title.text == "A"
        assert page.find(string=re.compile("onclick"))

    def test_policy_of_the_page(self, page):
        policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
        assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

    def test_tables(self, page):
        html = (
            "<style>p{}</style><table border='1'><thead><tr><th></th><th>a</th></tr></thead>"
            "<tbody><tr><th>b</th><td>-1.5</td></tr></tbody></table>"
        )
        assert (
            parse(table_to_html(html)).table
            == parse(
                "<table><thead><tr><td></td><th scope='col'>a</th></tr></thead>"
                "<tbody><tr><th scope='row'>b</th><td class='number'>-1.5</td></tr></tbody></table>"
            ).table
        )


class TestPage:
    @each_notebook
    def test_figures_and_ids(self, path):
        page = page_of(path)
        images = page.find_all("img")
        assert all(len(image["alt"]) > 20 and "*" not in image["alt"] for image in images)
        assert NO_CAPTION not in str(page)
        ids = [tag["id"] for tag in page.find_all(id=True)]
        assert len(ids) == len(set(ids))
        sections = page.nav.find_all("li")
        assert len(sections) >= 4
        for link in page.nav.select("li a"):
            assert link["href"].startswith("#")
        assert len(page.find_all("h1")) == 1
        assert page.find(class_="findings").text.count(".") >= 2

    def test_bar(self):
        first, second, last = (page_of(path).nav for path in (PATHS[0], PATHS[1], PATHS[-1]))
        assert [a.get("data-page") for a in second.find_all("a")[:4]] == [
            None, f"{PATHS[0].stem}.html", f"{PATHS[2].stem}.html", "GLOSSARY.html",
        ]  # fmt: skip
        assert "←" not in first.text
        assert "→" not in last.text

    def test_code_is_folded_unless_it_is_the_lesson(self):
        page = page_of(PATHS[1])
        opened = [fold.summary.text for fold in page.find_all("details", class_="folded", open=True)]
        n_built = PATHS[1].read_text().count('"hand-built"')
        assert len(opened) == n_built > 0
        assert all(text.startswith("Code: ") for text in opened)

    def test_report_begins_with_findings_and_pictures(self):
        page = page_of(PATHS[5])
        assert not page.find_all("details", class_="folded", open=True)
        first_fold = page.find("details", class_="folded")
        for part in [page.find(class_="findings"), *page.find_all("figure")]:
            assert first_fold in part.find_all_next("details")
        assert len(page.find_all("figcaption")) == len(page.find_all("img")) == 4
        worth = page.find(string=re.compile("Is this worth it for my table"))
        assert first_fold in worth.find_all_next("details")
        assert "what follows" in page.main.text.split("Code")[0]
        assert "a note" in page.main.text.split("Code")[0]
        assert "Figure:" not in page.main.text.split("Code", 1)[1]


class TestLinks:
    def test_lead_to_pages(self):
        text = "[a](GLOSSARY.md#code) [b](exercises/1_a.ipynb) [c](01_b.ipynb#x-y) [d](#e) [f](https://g.h)"
        html = markdown_to_html(f"{text} [i](../j)")
        assert linked_pages(html) == {"GLOSSARY.html", "exercises/1_a.html", "01_b.html", "../j"}
        settled = settle_links(html, {"GLOSSARY.html", "01_b.html"})
        links = {a.text: a.get("href") for a in parse(settled).find_all("a")}
        assert links == {
            "a": "GLOSSARY.html#code", "b": None, "c": "01_b.html#x-y", "d": "#e", "f": "https://g.h",
            "i": None,
        }  # fmt: skip
        assert settle_links(settled, set()) == settle_links(html, set())  # what has gone is no link any more

    def test_within_a_folder(self, tmp_path):
        course, folder = tmp_path / "course", tmp_path / "runs"
        (course / "exercises").mkdir(parents=True)
        (course / "GLOSSARY.md").write_text("# Glossary\n\n### code\n\n[01](01_a.ipynb), [02](02_b.ipynb)")
        exercise = new_notebook(
            cells=[new_markdown_cell("# E\n\n[01](../01_a.ipynb) [c](../GLOSSARY.md#code)")]
        )
        for number in "12":
            nbformat.write(exercise, course / "exercises" / f"{number}_a.ipynb")
        folder.mkdir()
        nb = new_notebook(cells=[new_markdown_cell("# A\n\n[c](GLOSSARY.md#code), [1](exercises/1_a.ipynb)")])
        (folder / "01_a.html").write_text(to_html(nb, "01_a", ["01_a", "02_b"]))
        (folder / "predictions.csv").touch()
        record = {"notebooks": {"01_a": {"html": "01_a.html"}, "02_b": {"html": "02_b.html"}}}
        pages = link_pages(folder, record, course)
        assert set(pages) == {
            "01_a.html",
            "GLOSSARY.html",
            "exercises/1_a.html",
        }  # nothing leads to the other
        hrefs = {
            name: [a["href"] for a in parse(page).find_all("a", href=True)] for name, page in pages.items()
        }
        assert hrefs == {
            "01_a.html": ["../index.html", "GLOSSARY.html", "GLOSSARY.html#code", "exercises/1_a.html"],
            "GLOSSARY.html": ["../index.html", "GLOSSARY.html", "01_a.html"],
            "exercises/1_a.html": [
                "../../index.html",
                "../GLOSSARY.html",
                "../01_a.html",
                "../GLOSSARY.html#code",
            ],
        }


class TestFindings:
    @each_notebook
    def test_each_notebook_has_some(self, path):
        """If this fails: the notebook's results have other names than the sentence."""
        results = collect_results(nbformat.read(path, as_version=4))
        text = describe(path.stem, results, "1000 USD")
        assert text.endswith(".")
        assert "{" not in text
        if not path.stem.startswith(("07", "08", "10", "11")):  # whose findings have no unit
            assert "(in 1000 USD)" in text

    def test_by_hand(self):
        results = {"coreg_difference": 0.03456, "mssr_difference": -12.3}
        assert describe("06_baselines", results, "K") == (
            "With unlabeled samples the error changes by +0.0346 for COREG and by -12.3 for MSSR (in K)."
        )
        assert describe("06_baselines", {"coreg_difference": 1.0}, "K") == ""
        assert describe("my_own", results, "K") == ""

    def test_large_numbers_are_rounded(self):
        text = describe("06_baselines", {"coreg_difference": 4381.2, "mssr_difference": -123456.7}, "EUR")
        assert "+4,380 for COREG and by -123,000 for MSSR (in EUR)" in text

    @pytest.mark.parametrize(
        ("value", "text"),
        [(4381.23, "4381"), (123456.7, "123457"), (4.83214, "4.832"), (-1.5e-7, "-1.5e-07"), (0.0, "0"),
         (3, "3"), ("ridge", "ridge"), (float("nan"), "nan")],
    )  # fmt: skip
    def test_values_among_the_variables(self, value, text):
        assert format_value(value) == text

    def test_units(self):
        assert unit_of("MEDV [1000 USD]") == "1000 USD"
        assert unit_of("price") == "units of price"
        assert unit_of("") == "units of the target"


def test_words_of_a_caption():
    assert markdown_to_text("a *new* row's `x`, $y^2$\nand [b](c)") == "a new row's x, y2 and b"
