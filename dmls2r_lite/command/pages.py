"""Executed notebooks made readable: their results, their HTML, and the index page of all runs.

Formulas need no script, and no foreign markup comes in.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape, unescape
from pathlib import Path
from typing import Any

import bleach
import nbformat
import pandas as pd
from bs4 import BeautifulSoup
from jinja2 import Environment, PackageLoader
from math_core import LatexError, LatexToMathML
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ..teaching.notebook import RESULTS_MIME, write_number
from .keeping import UNMARKED, is_ours, read_record
from .options import align

PNG = "image/png"
CAPTION = "*Figure:*"
FILES = {  # that notebook 05 writes
    "predictions.csv": "every row with its prediction and interval",
    "label_next.csv": "the rows to label next",
    "model.dmls2r": "the model, for dmls2r predict",
}
VERDICT = "04"  # the notebook that says whether unlabeled data helped
NO_CAPTION = "No description has been provided for this image"  # nbconvert's
LINK = re.compile(r'<a data-page="([^"]*)"(?: href="[^"]*")?')
LET_THROUGH = re.compile(r'(</?(?:details|summary)>|<a id="[a-z0-9-]+">|</a>)')  # folding, and marks of terms
NUMBER = re.compile(r"<td>(?=([-+−–±\d.,e%()▼●▲\s]|of|NaN|nan|None)*</td>)")
LONG_TEXT = re.compile(r"<td>(?=[^<]{40})")  # a column keeps a width in which this can be read
SCROLLS = '<div class="scrolls" tabindex="0" role="group" aria-label="{}">{}</div>\n'
_latex = LatexToMathML(fancy_error=False)


def collect_results(nb: nbformat.NotebookNode) -> dict[str, Any]:
    """What the notebook's cells have given to `record_results`."""
    results: dict[str, Any] = {}
    for _, output in _outputs(nb, RESULTS_MIME):
        results |= output.data[RESULTS_MIME]
    return results


def _outputs(nb: nbformat.NotebookNode, kind: str) -> Iterator[tuple[int, nbformat.NotebookNode]]:
    """The outputs that hold something of a MIME type, each after the place of its cell."""
    for index, cell in enumerate(nb.cells):
        for output in cell.get("outputs", []):
            if kind in output.get("data", {}):
                yield index, output


def format_results(results: dict[str, Any], at_most: int | None = None) -> str:
    """The first values on one line."""
    values = [f"{name} {value}" for name, value in write_values(results).items()]
    return ", ".join(values[:at_most])


def write_values(results: dict[str, Any]) -> dict[str, str]:
    """All but the sentence: a float with three digits or more, anything else as it is."""
    return {
        name: write_number(value) if isinstance(value, float) else str(value)
        for name, value in results.items()
        if name != "finding"
    }


def recommend(folder: Path, results: dict[str, Any]) -> list[str]:
    """What notebook 05 found out about models, and the way on, as lines for a terminal; none without it."""
    if not (folder / str(results.get("models"))).is_file():
        return []
    models = pd.read_csv(folder / results["models"])
    rows = [["", "model", "expected error", "±", f"held by {models['coverage'][0]:.0%} intervals"]]
    for model in models.to_dict("records"):
        sign = "->" if model["method"] == results["recommended"] else ""
        numbers = f"{model['expected']:.4g}", f"{model['plus_minus']:.4g}", f"{model['held']:.0%}"
        rows.append([sign, model["method"], *numbers])
    beyond = models["beyond_labels"][0]
    return [
        results["finding"],
        *align(rows),
        *([f"Estimates beyond the range of the labels: {beyond}; to clip: -p clip true"] if beyond else []),
        "-> is what we recommend",
        f"Estimates of {results['method']}: {folder / 'predictions.csv'}",
        f"The model: dmls2r predict {shlex.quote(str(folder / 'model.dmls2r'))} NEW_ROWS.csv",
        f"Label these next: {folder / 'label_next.csv'}",
    ]


def caption_of(nb: nbformat.NotebookNode, index: int) -> str:
    """What the figures of cell `index` show, in words: the text after *Figure:*, in or below its outputs."""
    texts = [output.get("data", {}).get("text/markdown", "") for output in nb.cells[index].get("outputs", [])]
    below = itertools.takewhile(lambda cell: cell.cell_type == "markdown", nb.cells[index + 1 :])
    for text in [*texts, *(cell.source for cell in below)]:
        if text.strip().startswith(CAPTION):
            return " ".join(text.strip().removeprefix(CAPTION).split("\n\n")[0].split())
    return NO_CAPTION


def describe_figures(nb: nbformat.NotebookNode) -> None:
    """Store the line below each figure as its alternative text."""
    for index, output in _outputs(nb, PNG):
        output.metadata[PNG] = {"alt": caption_of(nb, index)}


def key_figure(nb: nbformat.NotebookNode) -> tuple[str, str] | None:
    """PNG in base64 and text of the figure that stands for a notebook."""
    for index, output in _outputs(nb, PNG):
        if "key-figure" in nb.cells[index].metadata.get("tags", []):
            return output.data[PNG].replace("\n", ""), markdown_to_text(caption_of(nb, index))
    return None


def title_of(nb: nbformat.NotebookNode) -> str:
    """The first heading."""
    found = re.search(r"^# (.+)", _markdown_of(nb), flags=re.MULTILINE)
    return markdown_to_text(found[1]) if found else ""


def _markdown_of(nb: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def to_html(
    nb: nbformat.NotebookNode, name: str, pages: Sequence[str] = (), about: str = "", note: str = ""
) -> str:
    """A notebook as a page, without scripts or other files; `link_pages` makes its links lead somewhere.

    Its bar leads to the notebooks before and after it among `pages`. Its first lines say what it is `about`,
    what it has found, and, where that is a report on somebody's table, `note`: what was done to that.
    """
    describe_figures(nb)
    results = collect_results(nb)
    is_report = "recommended" in results  # for somebody who wants predictions: code comes last
    tags = [cell.metadata.get("tags", []) for cell in nb.cells]
    summaries = [index for index, its_tags in enumerate(tags) if is_report and "summary" in its_tags]
    headings = map(markdown_to_text, re.findall(r"^## (.+)", _markdown_of(nb), flags=re.MULTILINE))
    return ENVIRONMENT.get_template("notebook.html.jinja").render(
        name=name,
        title=title_of(nb) or name,
        cells=nb.cells,
        results=results,
        is_report=is_report,
        first={index + step for index in summaries for step in (-1, 0)},  # what it says, and its heading
        about=about,
        note=note,
        pages=pages,
        sections=[(text.replace(" ", "-"), text) for text in headings],
    )


def link_pages(folder: Path, record: dict[str, Any], course: Path) -> dict[str, str]:
    """Let the pages of a dataset's folder lead to each other, and add those of the course they lead to.

    Returns HTML by path in the folder, of which `record` is the results.json.
    """
    pages = [entry["html"] for entry in record["notebooks"].values() if (folder / entry["html"]).is_file()]
    texts = {page: (folder / page).read_text(encoding="utf-8") for page in pages}
    wanted = {unescape(link).partition("#")[0] for text in texts.values() for link in LINK.findall(text)}
    for source in [course / "GLOSSARY.md", *course.glob("exercises/[0-9]*.ipynb")]:
        page = source.relative_to(course).with_suffix(".html").as_posix()
        if page in wanted and source.is_file():
            texts[page] = text_to_html(source, page.removesuffix(".html"))
    there = [*texts, *(name for name in FILES if (folder / name).is_file())]

    def settle(page: str, link: re.Match[str]) -> str:
        target = posixpath.join(posixpath.dirname(page), unescape(link[1]).partition("#")[0])
        href = f' href="{link[1]}"' if posixpath.normpath(target) in there else ""
        return f'<a data-page="{link[1]}"{href}'

    return {page: LINK.sub(partial(settle, page), text) for page, text in texts.items()}


def text_to_html(path: Path, name: str) -> str:
    """A notebook that is not run, or a text such as the glossary, as a page."""
    if path.suffix == ".ipynb":
        about = f"To solve these tasks open {name}.ipynb in JupyterLab, next to the notebooks."
        return to_html(nbformat.read(path, as_version=4), name, about=about)
    cell = nbformat.v4.new_markdown_cell(path.read_text(encoding="utf-8"))
    return to_html(nbformat.v4.new_notebook(cells=[cell]), name)


def make_index(output_dir: Path) -> str:
    """One page, without scripts or other files, about all datasets that have a results.json in a folder."""
    runs = []
    compared = {}
    for path in sorted(output_dir.glob("*/results.json")):
        if not (run := read_record(path)):
            continue
        verdict_first = sorted(run["notebooks"], key=lambda name: (name[:2] != VERDICT, name))
        values = compared[run["dataset"]] = {"target": run["target"]}
        for name in verdict_first:
            entry = run["notebooks"][name]
            written = path.parent / entry["path"]
            nb = nbformat.read(written, 4) if is_ours(written) else nbformat.v4.new_notebook()
            entry |= {"title": title_of(nb), "figure": key_figure(nb)}
            for result, value in write_values(entry["results"]).items():
                values[f"{name[:2]}: {result.replace('_', ' ')}"] = value
        files = {file: what for file, what in FILES.items() if (path.parent / file).is_file()}
        runs.append(run | {"folder": path.parent.name, "order": verdict_first, "files": files})
    table = pd.DataFrame(compared).to_html(na_rep="–") if len(runs) > 1 else ""
    template = ENVIRONMENT.get_template("index.html.jinja")
    return template.render(title="DML-S2R: results", runs=runs, table=table)


def to_mathml(latex: str, block: bool = False) -> str:
    """A formula as MathML; as code if it cannot be read."""
    if r"\tag" in latex:
        latex = rf"\begin{{equation}}{latex}\end{{equation}}"
    try:
        return _latex.convert_with_local_state(latex, displaystyle=block)
    except LatexError:
        return f"<code>{escape(latex)}</code>"


class PageRenderer(IPythonRenderer):
    """From Markdown to HTML. Any tag but those of folding is shown as it is written."""

    def inline_math(self, body: str) -> str:
        """Within a line."""
        return to_mathml(body)

    def block_math(self, body: str) -> str:
        """On lines of its own."""
        return SCROLLS.format("Formula", to_mathml(body, block=True))

    def latex_environment(self, name: str, body: str) -> str:
        """On lines of its own, as in LaTeX."""
        return self.block_math(rf"\begin{{{name}}}{body}\end{{{name}}}")

    def inline_html(self, html: str) -> str:
        """Escape what is not let through."""
        return "".join(p if LET_THROUGH.fullmatch(p) else escape(p) for p in LET_THROUGH.split(html))

    block_html = inline_html

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Give each the id that JupyterLab makes of its words, unless it has a mark."""
        words = unescape(re.sub("<[^>]+>", "", text))
        anchor = "" if "<a id=" in text else f' id="{escape(words.replace(" ", "-"))}"'
        return f"<h{level}{anchor}>{text}</h{level}>\n"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Lead to pages in place of notebooks and texts; `link_pages` decides whether there is one."""
        if url.startswith(("https://", "http://", "#")):
            return super().link(text, url, title)
        page = re.sub(r"\.(ipynb|md)(?=#|$)", ".html", posixpath.normpath(url))
        return text if ":" in url or url.startswith("//") else f'<a data-page="{escape(page)}">{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Show its words: the pictures of a page are outputs."""
        return text

    def table(self, text: str) -> str:
        """Let a wide one be scrolled."""
        return _finish(f"<table>{text}</table>", "Table")


# Markdown with formulas as HTML
markdown_to_html = MarkdownWithMath(
    PageRenderer(escape=False, allow_harmful_protocols=False, exclude_anchor_links=True)
).render


def markdown_to_text(text: str) -> str:
    """Markdown as the words that a reader sees, on one line."""
    return " ".join(BeautifulSoup(markdown_to_html(text), "html.parser").get_text().split())


def table_to_html(html: str, label: str = "Table") -> str:
    """The tables of an output with their words only: no style, no script, no link."""
    tags = {"table", "thead", "tbody", "tr", "th", "td"}
    clean = bleach.clean(html, tags, ["colspan", "rowspan"], strip=True)
    return "".join(
        _finish(table, label) for table in re.findall("<table>.*?</table>", clean, flags=re.DOTALL)
    )


def _finish(table: str, label: str) -> str:
    """Let a wide one be scrolled, mark numbers and long texts; an empty heading is none."""
    table = re.sub(r"<th([^>]*)>\s*</th>", r"<td\1></td>", table)
    table = NUMBER.sub('<td class="number">', LONG_TEXT.sub('<td class="text">', table))
    return SCROLLS.format(escape(label), table)


ENVIRONMENT = Environment(loader=PackageLoader(__package__), autoescape=True, trim_blocks=True)
ENVIRONMENT.globals |= {"generator": UNMARKED, "files": FILES}
ENVIRONMENT.filters |= {
    "markdown": markdown_to_html,
    "table": table_to_html,
    "code": partial(highlight, lexer=PythonLexer(), formatter=HtmlFormatter(nowrap=True)),
    "functions": re.compile(r"^(?:def|class) (\w+)", flags=re.MULTILINE).findall,
    "plain": strip_ansi,
    "text": markdown_to_text,
    "values": format_results,
}
