"""Make the site: `python docs/build.py build/site`. Nothing is run, and nothing comes from the net."""

import re
import shutil
import sys
from pathlib import Path

import nbformat
from sphinx.cmd.build import main as sphinx

from dmls2r_lite.command.pages import caption_of, markdown_to_text
from dmls2r_lite.study.benchmark import shipped_trials
from dmls2r_lite.study.reproduction import BEATS, LEGEND, format_tables

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ("own_data", "own_code", "results", "scale", "install", "how_it_is_made")
TEXTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "notebooks")  # what the site has from here
TOCTREE = "\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"
TERM = r'^### (?:<a id="(.+?)"></a>)?([^\n]+)'  # its own id, its words
GLOSSARY_LINK = re.compile(r"\[([^\]]+)\]\((?:(?:\.\./)?GLOSSARY\.md)?#([^)\s]+)\)")


def modules() -> list[str]:
    """Names of the modules, as they are imported."""
    paths = sorted((ROOT / "dmls2r_lite").rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return [name for name in names if not name.endswith("__init__")]


def terms_of(glossary: str) -> dict[str, str]:
    """Terms by what links to them name: an id of their own, else their words with hyphens between."""
    return {own or term.replace(" ", "-"): term for own, term in re.findall(TERM, glossary, flags=re.M)}


def adapt(text: str, place: Path, terms: dict[str, str]) -> str:
    """Markdown of the repository as MyST: links to terms and modules, and none to what the site has not."""

    def to_term(link: re.Match[str]) -> str:
        words = markdown_to_text(link[1])
        return f"{{term}}`{words} <{terms[link[2]]}>`" if link[2] in terms else link[0]

    def to_page(link: re.Match[str]) -> str:
        words, url = link[1], link[2]
        if url.startswith(("#", "http")):
            return link[0]
        target = (place.parent / url.partition("#")[0]).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return words
        path = target.relative_to(ROOT)
        if path.suffix == ".py" and path.parts[0] == "dmls2r_lite":
            up = "../" * (len(place.relative_to(ROOT).parts) - 1)
            return f"[{words}]({up}api/{'.'.join(path.with_suffix('').parts)}.md)"
        if path == Path("README.md"):
            return link[0].replace("README.md", "index.md")
        is_page = path.suffix in (".md", ".ipynb") and "source" not in path.parts
        return link[0] if is_page and path.parts[0] in TEXTS else words

    text = GLOSSARY_LINK.sub(to_term, text)
    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^()\s]+)\)", to_page, text)


def make_glossary(text: str, terms: dict[str, str], place: Path) -> str:
    """The terms as a glossary of Sphinx."""

    def entries(section: re.Match[str]) -> str:
        lines = []
        parts = re.findall(TERM + r"\n+(.+?)\s*(?=^### |\Z)", section[0], flags=re.M | re.S)
        for _, term, body in parts:
            lines += [term, *(f"  {line}".rstrip() for line in body.splitlines()), ""]
        return "```{glossary}\n" + "\n".join(lines) + "```\n\n"

    return re.sub(r"^### .+?(?=^## )", entries, adapt(text, place, terms), flags=re.M | re.S)


def copy_notebook(path: Path, target: Path, terms: dict[str, str]) -> None:
    """Alternative texts where myst-nb looks for them, hidden code folded, links adapted."""
    nb = nbformat.read(path, as_version=4)
    for index, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown":
            cell.source = adapt(cell.source, path, terms)
            continue
        if caption := markdown_to_text(caption_of(nb, index)):
            cell.metadata["mystnb"] = {"image": {"alt": caption}}
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                output.data["text/markdown"] = adapt(output.data["text/markdown"], path, terms)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, target)


def make_tables() -> str:
    """The paper's tables beside ours, as a page."""
    parts = ["# The paper's tables", LEGEND]
    for title, table in format_tables(shipped_trials()):
        rows = [[table.index.name, *table], ["---"] * (1 + table.shape[1]), *table.itertuples()]
        parts += [f"## {title}", "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)]
    return "\n\n".join([*parts, BEATS])


def assemble(folder: Path) -> None:
    """Write the sources of the site into a folder, which lies as the repository does."""
    notebooks, exercises = ROOT / "notebooks", ROOT / "notebooks" / "exercises"
    glossary = notebooks / "GLOSSARY.md"
    terms = terms_of(glossary.read_text())
    texts = [ROOT / name for name in TEXTS if name.endswith(".md")]
    lessons, sets = sorted(notebooks.glob("[0-9]*.ipynb")), sorted(exercises.glob("[0-9]*.ipynb"))
    for path in [*texts, *(ROOT / "docs").glob("*.md"), *exercises.glob("*.md")]:
        target = folder / ("index.md" if path == texts[0] else path.relative_to(ROOT))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(adapt(path.read_text(), path, terms))
    for path in lessons + sets:
        copy_notebook(path, folder / path.relative_to(ROOT), terms)
    (folder / "notebooks" / "GLOSSARY.md").write_text(make_glossary(glossary.read_text(), terms, glossary))
    shutil.copytree(notebooks / "images", folder / "notebooks" / "images")
    (folder / "tables.md").write_text(make_tables())
    (folder / "api").mkdir()
    for name in modules():
        directive = f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```\n"
        (folder / "api" / f"{name}.md").write_text(f"# {name.removeprefix('dmls2r_lite.')}\n\n{directive}")
    listed = "\n".join(modules())
    (folder / "api" / "index.md").write_text(f"# Modules\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n")
    sections = {
        "Notebooks": [f"notebooks/{path.stem}" for path in lessons],
        "Exercises": ["README", *(path.stem for path in sets), "TEACHING"],
        "Guides": [f"docs/{name}" for name in GUIDES],
        "Reference": ["notebooks/GLOSSARY", "tables", "api/index", "CONTRIBUTING", "CHANGELOG"],
    }
    sections["Exercises"] = [f"notebooks/exercises/{name}" for name in sections["Exercises"]]
    with (folder / "index.md").open("a") as index:
        for caption, pages in sections.items():
            index.write(TOCTREE.format(caption, "\n".join(pages)))


def main(target: Path) -> int:
    """Make the site anew; not zero if Sphinx had anything to say."""
    source = target.with_name(f"{target.name}-source")
    for folder in (source, target):
        shutil.rmtree(folder, ignore_errors=True)
    assemble(source)
    options = ["-q", "-W", "--keep-going", "-j", "auto", "-c", str(ROOT / "docs")]
    return sphinx([*options, str(source), str(target)])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
