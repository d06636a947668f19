"""Executed notebooks made readable: their results, their HTML, and the index page of all runs."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, PackageLoader
from nbconvert import HTMLExporter

from ..teaching.notebook import RESULTS_MIME

CAPTION = "*Figure:*"
GLOSSARY = "GLOSSARY"
INDEX_TITLE = "DML-S2R: results"
NO_CAPTION = "No description has been provided for this image"  # nbconvert's


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
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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
    clip = "-p clip true would move them to its ends"
    return [
        *align(rows),
        *([f"{beyond} estimates lie beyond the range of the labels; {clip}"] if beyond else []),
        f"-> is what we recommend. Estimates of {results['method']}: {folder / 'predictions.csv'}",
        f"The model: dmls2r predict {folder / 'model.dmls2r'} NEW_ROWS.csv",
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


def to_html(nb: nbformat.NotebookNode, title: str, source: Path) -> str:
    """The notebook as a page, with links to what lies in the folder `source` that it comes from."""
    captions = describe_figures(nb)
    html, _ = HTMLExporter().from_notebook_node(nb, resources={"metadata": {"name": title}})
    # nbconvert's template does not ask for alternative texts.
    first, *others = html.split(f'alt="{NO_CAPTION}"')
    if len(others) == len(captions):  # else some images come from elsewhere
        html = first + "".join(
            f'alt="{escape(caption)}"{rest}' for caption, rest in zip(captions, others, strict=True)
        )
    html = html.replace(f'href="{GLOSSARY}.md', f'href="../{GLOSSARY}.html')
    return re.sub(r'href="(exercises/[^"]+)"', lambda link: f'href="{(source / link[1]).as_uri()}"', html)


def glossary_to_html(path: Path) -> str:
    """The glossary as a page."""
    cell = nbformat.v4.new_markdown_cell(path.read_text(encoding="utf-8"))
    nb = nbformat.v4.new_notebook(cells=[cell])
    return HTMLExporter().from_notebook_node(nb, resources={"metadata": {"name": "Glossary"}})[0]


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
            figures = {name: key_figure(path.parent / e["path"]) for name, e in record["notebooks"].items()}
            runs.append({**record, "folder": path.parent.name, "figures": figures})
    keys = {(name, key): None for run in runs for name, e in run["notebooks"].items() for key in e["results"]}
    comparison = [
        (name, key, [run["notebooks"].get(name, {}).get("results", {}).get(key, "–") for run in runs])
        for name, key in sorted(keys, key=lambda pair: pair[0])
    ]
    environment = Environment(loader=PackageLoader(__package__, ""), autoescape=True, trim_blocks=True)
    environment.filters |= {"value": format_value, "values": format_results}
    return environment.get_template("index.html.jinja").render(
        title=INDEX_TITLE, runs=runs, comparison=comparison
    )


def is_index(path: Path) -> bool:
    """Whether a file is an index page of ours."""
    return path.is_file() and f"<title>{INDEX_TITLE}</title>" in path.read_text("utf-8", errors="replace")


def key_figure(path: Path) -> tuple[str, str] | None:
    """PNG in base64 and text of the figure that stands for a notebook."""
    try:
        nb = nbformat.read(path, as_version=4)
    except (OSError, ValueError):  # removed or broken since
        return None
    for index, cell in enumerate(nb.cells):
        if "key-figure" in cell.metadata.get("tags", []):
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    png = output.data["image/png"].replace("\n", "")
                    return png, caption_of(nb, index) or f"Key figure of {path.stem}"
    return None
