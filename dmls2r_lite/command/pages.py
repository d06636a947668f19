"""Executed notebooks made readable: their results, their HTML, and the index page of all runs."""

from __future__ import annotations

import csv
import itertools
import json
import posixpath
import re
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, PackageLoader
from nbconvert.filters import strip_ansi

from ..teaching.notebook import RESULTS_MIME
from .findings import COMPARED, describe, unit_of, write_values
from .rendering import (
    SCROLLS,
    PageRenderer,
    code_to_html,
    linked_pages,
    markdown_to_html,
    markdown_to_text,
    settle_links,
    table_to_html,
)

CAPTION = "*Figure:*"
FILES = {  # that notebook 05 writes
    "predictions.csv": "every row with its prediction and interval",
    "label_next.csv": "the rows to label next",
    "model.dmls2r": "the model, for dmls2r predict",
}
VERDICT = "04"  # the notebook that says whether unlabeled data helped
GLOSSARY = "GLOSSARY"
INDEX_TITLE = "DML-S2R: results"
GENERATOR = '<meta name="generator" content="dmls2r-lite">'
NO_CAPTION = "No description has been provided for this image"  # nbconvert's


ENVIRONMENT = Environment(loader=PackageLoader(__package__), autoescape=True, trim_blocks=True)
ENVIRONMENT.globals["generator"] = GENERATOR


def collect_results(nb: nbformat.NotebookNode) -> dict[str, Any]:
    """What the notebook's cells have given to `record_results`."""
    results: dict[str, Any] = {}
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            results |= output.get("data", {}).get(RESULTS_MIME, {})
    return results


def format_results(results: dict[str, Any], at_most: int | None = None) -> str:
    """The first ones on one line, numbers with four digits."""
    first = list(results.items())[:at_most]
    return ", ".join(f"{name} {format_value(value)}" for name, value in first)


def format_value(value: Any) -> str:
    """A float with four digits, anything else as it is."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: each column as wide as its widest entry, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_number = [
        all(entry.replace(".", "").isdigit() for entry in column[1:]) for column in zip(*rows, strict=True)
    ]
    lines = []
    for row in rows:
        entries = [
            entry.rjust(width) if right else entry.ljust(width)
            for entry, width, right in zip(row, widths, is_number, strict=True)
        ]
        lines.append("  ".join(entries).rstrip())
    return lines


def recommend(folder: Path, results: dict[str, Any]) -> list[str]:
    """What notebook 05 found out about models, and the way on, as lines for a terminal; none without it."""
    if not (folder / str(results.get("models"))).is_file():
        return []
    with (folder / results["models"]).open(encoding="utf-8", newline="") as file:
        models = list(csv.DictReader(file))
    rows = [("", "model", "expected error", "±", f"held by {float(models[0]['coverage']):.0%} intervals")]
    for model in models:
        sign = "->" if model["method"] == results["recommended"] else ""
        error, margin = (f"{float(model[name]):.4g}" for name in ("expected", "plus_minus"))
        rows.append((sign, model["method"], error, margin, f"{float(model['held']):.0%}"))
    beyond = int(models[0].get("beyond_labels") or 0)
    far = results.get("far_targets")
    clip = "-p clip true would move them to its ends"
    return [
        *([f"Look first at {far}: so far beyond the others, are they right?"] if far else []),
        *align(rows),
        *([f"{beyond} estimates lie beyond the range of the labels; {clip}"] if beyond else []),
        "-> is what we recommend: it needs no choice of a model",
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
    return ""


def describe_figures(nb: nbformat.NotebookNode) -> list[str]:
    """Store the line below each figure as its alternative text; return these texts."""
    captions = []
    for index, cell in enumerate(nb.cells):
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                captions.append(caption_of(nb, index) or NO_CAPTION)
                output.metadata["image/png"] = {"alt": captions[-1]}
    return captions


def to_html(
    nb: nbformat.NotebookNode,
    name: str,
    pages: Sequence[str] = (),
    about: str = "",
    note: str = "",
    unit: str = "",
) -> str:
    """A notebook as a page, without scripts or other files.

    Parameters
    ----------
    nb : nbformat.NotebookNode
    name : str
        Without an ending.
    pages : sequence of str
        Names of all notebooks of the course in order: its bar leads to those before and after.
    about : str
        The dataset and its target, or what else a reader must know.
    note : str
        What was done to the table.
    unit : str
        Of the target.

    Returns
    -------
    str
        HTML. Links within the course are marked: `settle_links` makes them lead somewhere.
    """
    results = collect_results(nb)
    is_report = (
        "recommended" in results
    )  # for somebody who wants predictions: code and pictures change places
    anchors: set[str] = set()
    sections: list[tuple[str, str]] = []
    parts: list[str] = []
    pictures: list[str] = []
    summary: list[str] = []
    for index, cell in enumerate(nb.cells):
        comes_first = is_report and any(_has_tag(cell, "summary") for cell in nb.cells[index : index + 2])
        texts = summary if comes_first else parts
        if cell.cell_type == "markdown":
            if is_report and cell.source.startswith(CAPTION):
                continue
            renderer = PageRenderer(anchors=anchors)
            texts.append(markdown_to_html(cell.source, renderer))
            sections += renderer.sections
        elif cell.cell_type == "code":
            is_open = _has_tag(cell, "hand-built") and not is_report
            parts.append(_code(cell.source, is_open))
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    caption = markdown_to_text(caption_of(nb, index))
                    (pictures if is_report else parts).append(_figure(output, caption, is_report))
                else:
                    texts.append(_output(output, anchors))
    body = "\n".join(parts)
    before, heading, after = body.partition("</h1>\n")
    if not heading:
        before, after = f"<h1>{escape(name)}</h1>\n", body
    place = list(pages).index(name) if name in pages else None
    up = "../" * name.count("/")
    return ENVIRONMENT.get_template("notebook.html.jinja").render(
        title=title_of(nb) or name,
        heading=before + heading,
        body=after,
        summary="\n".join(summary),
        pictures="\n".join(pictures),
        files=FILES if is_report else {},
        finding=describe(name, results, unit),
        about=about,
        note=note if is_report else "",
        sections=sections,
        index=f"../{up}index.html",
        glossary=f"{up}{GLOSSARY}.html",
        previous=pages[place - 1] if place else None,
        next=pages[place + 1] if place is not None and place + 1 < len(pages) else None,
    )


def _has_tag(cell: nbformat.NotebookNode, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def _code(source: str, is_open: bool) -> str:
    functions = re.findall(r"^(?:def|class) (\w+)", source, flags=re.M)
    n_lines = len(source.splitlines())
    what = f": {', '.join(functions)}" if functions else f", {n_lines} line{'s' * (n_lines != 1)}"
    opened = " open" if is_open else ""
    summary = f"<summary>Code{escape(what)}</summary>"
    return f'<details class="folded"{opened}>{summary}{code_to_html(source)}</details>'


def _figure(output: nbformat.NotebookNode, caption: str, with_caption: bool) -> str:
    below = f"<figcaption>Figure: {escape(caption)}</figcaption>" if with_caption and caption else ""
    png = output.data["image/png"].replace("\n", "")
    alt = escape(caption or NO_CAPTION)
    image = SCROLLS.format("Figure", f'<img src="data:image/png;base64,{png}" alt="{alt}">')
    return f"<figure>{image}{below}</figure>"


def _output(output: nbformat.NotebookNode, anchors: set[str]) -> str:
    data = output.get("data", {})
    if "text/markdown" in data:
        return markdown_to_html(data["text/markdown"], PageRenderer(trusted=False, anchors=anchors))
    if "<table" in data.get("text/html", ""):
        return table_to_html(data["text/html"])
    if output.output_type == "error":
        text, style = "\n".join(output.traceback), ' class="failed"'
    else:
        text, style = output.get("text", data.get("text/plain", "")), ""
    return f'<pre{style} tabindex="0">{escape(strip_ansi(text))}</pre>' if text.strip() else ""


def text_to_html(path: Path, name: str) -> str:
    """A notebook that is not run, or a text such as the glossary, as a page."""
    if path.suffix == ".ipynb":
        about = f"To solve these tasks open {name}.ipynb in JupyterLab, next to the notebooks."
        return to_html(nbformat.read(path, as_version=4), name, about=about)
    cell = nbformat.v4.new_markdown_cell(path.read_text(encoding="utf-8"))
    return to_html(nbformat.v4.new_notebook(cells=[cell]), name)


def link_pages(folder: Path, record: dict[str, Any], course: Path) -> dict[str, str]:
    """Let the pages of a folder lead to each other, and add those of the course that they lead to.

    Parameters
    ----------
    folder : Path
        Of a dataset.
    record : dict
        Its results.json.
    course : Path
        Folder of the notebooks, the glossary and the exercises.

    Returns
    -------
    dict of str to str
        HTML by path in the folder.
    """
    pages = [entry["html"] for entry in record["notebooks"].values() if (folder / entry["html"]).is_file()]
    texts = {page: (folder / page).read_text(encoding="utf-8") for page in pages}
    wanted = set().union(*map(linked_pages, texts.values()))
    for source in [course / f"{GLOSSARY}.md", *course.glob("exercises/[0-9]*.ipynb")]:
        page = source.relative_to(course).with_suffix(".html").as_posix()
        if page in wanted and source.is_file():
            texts[page] = text_to_html(source, page.removesuffix(".html"))
    there = [*texts, *(name for name in FILES if (folder / name).is_file())]
    return {
        page: settle_links(text, {posixpath.relpath(name, posixpath.dirname(page)) for name in there})
        for page, text in texts.items()
    }


def title_of(nb: nbformat.NotebookNode) -> str:
    """The first heading."""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and (found := re.match(r"# (.+)", cell.source)):
            return markdown_to_text(found[1])
    return ""


def read_record(path: Path) -> dict[str, Any] | None:
    """A results.json, or None if there is none that `dmls2r run` has written."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        keys = {"dataset", "source", "target", "complete", "versions", "notebooks"}
        in_entry = {"status", "path", "html", "seconds", "given", "parameters", "fingerprint", "results"}
        fits = keys <= record.keys() and all(in_entry <= e.keys() for e in record["notebooks"].values())
        return record if fits else None
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def make_index(output_dir: Path) -> str:
    """One page, without scripts or other files, about all datasets in a folder of runs.

    Parameters
    ----------
    output_dir : Path
        With a results.json in a folder per dataset.

    Returns
    -------
    str
        HTML.
    """
    runs = []
    for path in sorted(output_dir.glob("*/results.json")):
        record = read_record(path)
        if record is not None:
            runs.append(record | _seen(record, path.parent))
    found = [
        {
            (name[:2], key): value
            for name, entry in run["notebooks"].items()
            for key, value in write_values(entry["results"]).items()
        }
        for run in runs
    ]
    comparison = [
        (number, words, [values.get((number, key), "–") for values in found])
        for (number, key), words in COMPARED.items()
        if any((number, key) in values for values in found)
    ]
    return ENVIRONMENT.get_template("index.html.jinja").render(
        title=INDEX_TITLE, runs=runs, comparison=comparison
    )


def _seen(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the index says about a dataset beside its record."""
    notebooks = {name: _read(folder / entry["path"]) for name, entry in record["notebooks"].items()}
    unit = unit_of(record["target"])
    found = {name: describe(name, entry["results"], unit) for name, entry in record["notebooks"].items()}
    names = sorted(notebooks, key=lambda name: (name[:2] != VERDICT, name))  # the verdict comes first
    return {
        "folder": folder.name,
        "titles": {name: (title_of(nb) if nb else "") or name for name, nb in notebooks.items()},
        "findings": {name: found[name] for name in names if found[name]},
        "figures": {name: key_figure(nb) for name in names if (nb := notebooks[name])},
        "files": {file: what for file, what in FILES.items() if (folder / file).is_file()},
    }


def _read(path: Path) -> nbformat.NotebookNode | None:
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError):  # removed or broken since
        return None


def is_ours(path: Path) -> bool:
    """Whether a file is a page that was made here."""
    return path.is_file() and GENERATOR in path.read_text("utf-8", errors="replace")


def key_figure(nb: nbformat.NotebookNode) -> tuple[str, str] | None:
    """PNG in base64 and text of the figure that stands for a notebook."""
    for index, cell in enumerate(nb.cells):
        if _has_tag(cell, "key-figure"):
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    png = output.data["image/png"].replace("\n", "")
                    return png, markdown_to_text(caption_of(nb, index)) or f"Key figure of {title_of(nb)}"
    return None


ENVIRONMENT.filters["values"] = format_results
