"""The files around the package say the same thing."""

import ast
import base64
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import claims
import naive
import nbformat
import pandas as pd
import pytest
import torch
import yaml
from course_size import NOTEBOOKS, course_size, measure

from dmls2r_lite.command.pages import key_figure
from dmls2r_lite.study.benchmark import AS_PUBLISHED, read_trials, shipped_trials
from dmls2r_lite.study.reproduction import judge_benchmark, paper_tables

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {  # where conda-forge's differs; -base and -core come without what is not used here
    "torch": "pytorch-cpu",
    "matplotlib": "matplotlib-base",
    "nbconvert": "nbconvert-core",
    "seaborn": "seaborn-base",
}


def parse(requirement):
    name, version = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
    return name, version


def test_environment_asks_for_what_the_project_asks_for():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["name"] == PROJECT["name"]
    *packages, with_pip = environment["dependencies"]
    assert with_pip == {"pip": ["-e .[lab]"]}
    wanted = dict(map(parse, PROJECT["dependencies"] + PROJECT["optional-dependencies"]["lab"]))
    expected = {CONDA_NAMES.get(name, name): version for name, version in wanted.items()}
    del expected["math-core"]  # not on conda-forge: pip brings it
    python = PROJECT["requires-python"].replace(">=", "=")
    assert dict(map(parse, packages)) == {**expected, "python": python, "pip": ""}


def test_constraints_name_every_requirement_and_meet_it():
    lines = (ROOT / "tests" / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    itself = f"{PROJECT['name']}[cluster,excel,metric-learning,site]"  # test needs the other extras too
    assert itself in extras["test"]
    wanted = dict(map(parse, {*PROJECT["dependencies"], *itertools.chain(*extras.values())} - {itself}))
    assert pinned.keys() >= wanted.keys()
    for name, minimum in wanted.items():
        low, high = ([int(part) for part in version.split(".")] for version in (minimum[2:], pinned[name]))
        assert low <= high, name


def test_imports_are_declared():
    """pyproject.toml names whatever the package imports, or something that itself cannot do without it."""
    extras = {"course.py": "course", "grading.py": "course", "controls.py": "lab"}  # which they need
    providers = metadata.packages_distributions()
    for path in (ROOT / "dmls2r_lite").rglob("*.py"):
        further = PROJECT["optional-dependencies"].get(extras.get(path.name), [])
        declared = {parse(requirement)[0] for requirement in PROJECT["dependencies"] + further}
        brought = {
            re.match(r"[\w-]+", requirement)[0].lower().replace("-", "_")
            for name in declared
            for requirement in metadata.requires(name) or ()
            if "extra ==" not in requirement
        }
        known = {name.replace("-", "_") for name in declared} | brought
        imported = set(re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), flags=re.M))
        for module in imported - set(sys.stdlib_module_names) - {"dmls2r_lite"}:
            names = {name.lower().replace("-", "_") for name in providers.get(module, [module])}
            assert names & known, (path.name, module)


def test_citation_is_of_the_installed_version_and_of_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    readme = (ROOT / "README.md").read_text()
    assert metadata.version("dmls2r-lite") == PROJECT["version"] == citation["version"]
    assert citation["license"] == PROJECT["license"]
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["authors"] == [{"name": "The dmls2r-lite authors"}]
    assert citation["title"].startswith(PROJECT["name"])
    paper = citation["preferred-citation"]
    assert paper["type"] == "conference-paper"
    entry = dict(re.findall(r"^  (\w+) += {(.+)},?$", readme, flags=re.M))
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert " and ".join(names) == entry["author"].replace('{\\"u}', "ü")
    assert (paper["title"], paper["collection-title"]) == (entry["title"], entry["booktitle"])
    assert (str(paper["year"]), paper["doi"]) == (entry["year"], entry["doi"])
    assert f"https://doi.org/{paper['doi']}" in readme


def test_changelog_knows_this_version_and_where_everything_is():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (?:(Unreleased)|(\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d)$", changelog, flags=re.M)
    assert len(versions) == changelog.count("\n## ")
    assert PROJECT["version"] in {version for _, version in versions}
    rows = re.findall(r"^\| (`.+`) \| `(\w+)` \| `([\w.]+)` \|$", changelog, flags=re.M)
    assert len(rows) > 20
    for names, _, module in rows:
        for name in re.findall(r"`(\w+)`", names):
            assert hasattr(importlib.import_module(f"dmls2r_lite.{module}"), name), (module, name)


def test_make_has_every_target_that_texts_name():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M)
    named = {target for _, text in texts() for target in re.findall(r"(?:`|^)make (\w+)", text, flags=re.M)}
    assert {"run", "test", "lab", "exercises", "notebooks"} <= named <= set(targets)


@pytest.mark.skipif(os.name == "nt", reason="needs make")
def test_makefile_refuses_an_old_python(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")  # what the check of the version does on an old one
    old.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "tests/constraints.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    made = subprocess.run(["make", f"PYTHON={old}", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode != 0
    assert "Python 3.11 or newer" in made.stdout
    assert not (tmp_path / ".venv").exists()


def test_ci_runs_what_a_developer_runs():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    job = workflow["jobs"]["test"]
    assert job["steps"][-1] == {"run": ".ci/run"}
    assert f">={job['strategy']['matrix']['python'][0]}" == PROJECT["requires-python"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_template_is_part_of_the_package():
    """The wheel holds every file in the package's folder, but git holds only what is not ignored."""
    data = ROOT / "dmls2r_lite" / "data" / "files"
    files = [*(ROOT / "dmls2r_lite" / "command" / "templates").iterdir(), *data.iterdir()]
    ignored = subprocess.run(["git", "check-ignore", *files], cwd=ROOT, capture_output=True, text=True)
    assert ignored.stdout == ""


def test_pictures_in_readme():
    pattern = r"!\[[^\]]{20,}\]\((.+?)\)"
    (of_notebook,) = re.findall(pattern, (ROOT / "README.md").read_text())
    (of_benchmark,) = re.findall(pattern, (ROOT / "docs" / "scale.md").read_text())
    nb = nbformat.read(ROOT / "notebooks" / f"{Path(of_notebook).stem}.ipynb", as_version=4)
    png, _ = key_figure(nb)
    assert (ROOT / of_notebook).read_bytes() == base64.b64decode(png)
    assert (ROOT / "docs" / of_benchmark).read_bytes().startswith(b"\x89PNG")


def texts():
    """Path and Markdown of everything that people read."""
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / "notebooks").rglob("*.md")):
        yield path, path.read_text()
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        if ".ipynb_checkpoints" not in path.parts:
            cells = nbformat.read(path, as_version=4).cells
            yield path, "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def anchors(path):
    """What a link into a Markdown file may name: its headings, as GitHub and JupyterLab do, or their ids."""
    headings = re.findall(r'^#+ (?:<a id="(.+)"></a>)?(.+)$', path.read_text(), flags=re.M)
    return {own or heading.replace(" ", "-") for own, heading in headings}


def test_links_lead_somewhere():
    n_links, dead = 0, []
    for path, text in texts():
        if "source" in path.parts:  # made into notebooks that lie two folders up
            continue
        for link in re.findall(r"\]\((?!https?://)([^()\s]+?)\)", text):
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            n_links += 1
            if not target.exists() or (anchor and anchor not in anchors(target)):
                dead.append((path.name, link))
    assert dead == []
    assert n_links > 200


def test_terms_of_the_glossary_are_linked_where_they_first_appear():
    glossary = (ROOT / "notebooks" / "GLOSSARY.md").read_text()
    headings = re.findall(r'^### (?:<a id="(.+)"></a>)?(.+)$', glossary, flags=re.M)
    terms = [term.casefold() for _, term in headings]
    assert terms == sorted(terms)
    assert len(terms) > 80
    assert [term for own, term in headings if not own and re.search("[^a-z -]", term)] == []
    linked = [
        anchor
        for path, text in texts()
        if re.match(r"\d\d_", path.name)
        for anchor in re.findall(r"\(GLOSSARY\.md#(\S+?)\)", text)
    ]
    assert len(linked) == len(set(linked))  # once in the course
    assert len({own or term.replace(" ", "-") for own, term in headings} - set(linked)) <= 2


def test_headings_of_texts_are_in_order():
    for path, text in texts():
        lines = re.sub(r"```.*?```", "", text, flags=re.S).splitlines()
        levels = [len(line) - len(line.lstrip("#")) for line in lines if re.match(r"#+ ", line)]
        assert levels[0] == 1, path.name
        assert levels.count(1) == 1, path.name
        assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels)), path.name


def test_numbers_in_texts_are_those_of_the_shipped_trials():
    """If this fails: python docs/claims/claims.py"""
    texts = [text for path in claims.FILES for text in claims.texts_of(path)]
    found = [block for text in texts for block in claims.BLOCK.findall(text)]
    assert [(name, said) for _, name, said, _ in found] == [
        (name, f"{claims.blocks()[name]}\n") for _, name, *_ in found
    ]
    assert {name for _, name, *_ in found} == set(claims.blocks())


def test_rows_by_hand():
    """What the rows are made of, computed another way."""
    paper = paper_tables().query("method == 'DML-S2R'").groupby(["dataset", "n_labeled"])["mae"].first()
    text = (ROOT / "docs" / "results.md").read_text()
    in_text = {
        "boston": ("Boston Housing [1000 USD]", "boston"),
        "superconductivity": ("Superconductivity [K]", "superconductivity"),
        AS_PUBLISHED: ("Air Quality as published [µg/m³]", "air_quality"),
        "air_quality": ("Air Quality [µg/m³]", "not there"),
    }
    means = shipped_trials().pivot_table("mae", ["dataset", "n_labeled"], "method")
    verdicts = judge_benchmark(shipped_trials(), "DML-S2R", "step 1")["verdict"]
    for dataset, n in itertools.product(in_text, (10, 20, 50)):
        name, in_paper = in_text[dataset]
        arms = ["step 1", "step 1, half the epochs", "DML-S2R"]
        errors = " | ".join(map("{:.2f}".format, means.loc[(dataset, n), arms]))
        printed = paper.get((in_paper, n), "–")
        assert f"| {name} | {n} | {errors} | {verdicts[(dataset, n)]} | {printed} |" in text
    listed = [claim for of_row in claims.CLAIMS.values() for claim in of_row]
    assert len(listed) == len(set(listed)) == 23


@pytest.mark.slow
def test_code_in_texts_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    both = "".join((ROOT / "docs" / name).read_text() for name in ("own_code.md", "scale.md"))
    blocks = re.findall(r"```python\n(.+?)```", both, flags=re.S)
    assert len(blocks) == 8
    for code in blocks:
        exec(code, names)
    assert names["model"].predict(names["X_new"]).shape == names["y_new"].shape
    assert (names["model"].n_labeled_, names["model"].n_unlabeled_) == (30, 270)
    assert names["search"].best_params_["k"] in (3, 5)
    holding = names["stacked"].named_estimators_["DML-S2R"].estimator_
    assert (holding.n_labeled_, holding.n_unlabeled_) == (30, 270)
    shapes = ((6, 4), (6, 3, 4), (6, 3, 4))
    batch = naive.batch_of(*(torch.nn.functional.normalize(torch.randn(shape), dim=-1) for shape in shapes))
    parts = []
    for members, cost in ((batch.positives, lambda d: d - 0.3), (batch.negatives, lambda d: 1.1 - d)):
        costs = [cost((a - m).norm()) for a, row in zip(batch.anchors, members, strict=True) for m in row]
        above = [c for c in costs if c > 0]  # that library averages over the pairs that cost something
        parts.append(sum(above) / len(above))
    assert names["metric_loss"](batch).item() == pytest.approx(sum(parts).item())
    assert names["contrasted"].history_["loss"].notna().all()
    exported = torch.export.load("model.pt2").module()(names["rows"])
    assert exported.tolist() == pytest.approx(names["model"].predict(names["X_new"]).tolist(), rel=1e-9)
    truth = names["u"].sum(dim=1)
    assert (names["estimates"] - truth).abs().mean() < (truth - truth.median()).abs().mean() / 2
    assert len(read_trials(tmp_path / "results")) == 4


def test_scale_in_text_is_the_benchmark():
    scale = pd.read_csv(ROOT / "tests" / "benchmarks" / "scale.csv")
    text = (ROOT / "docs" / "scale.md").read_text()
    for (task, size), part in scale.groupby(["task", "size"]):
        seconds = part.set_index("way")["seconds"]
        ways = ("package", "floor", "outer sum", "concatenated pairs")
        cells = [f"{seconds[way]:.3g}" if way in seconds else "–" for way in ways]
        assert f"| {task} | 10^{len(str(size)) - 1} | {' | '.join(cells)} |" in text


def test_readme_is_short_and_has_the_reading_times_of_the_notebooks():
    text = (ROOT / "README.md").read_text()
    assert 800 < len(text.split()) < 1200
    rows = re.findall(r"\(notebooks/(\S+?)\)[^|]*\|[^|]*\| (\d+) \|", text)
    assert len(rows) >= 5
    for name, minutes in rows:
        assert f"{minutes} minutes to read" in (ROOT / "notebooks" / name).read_text(), name
        assert int(minutes) == measure(ROOT / "notebooks" / name)["minutes"], name


def test_the_course_stays_as_small_as_it_is():
    """If this fails: python tests/course_size.py. Cut; the limits are what a reader has time for."""
    size = course_size()
    assert size.drop("all")["minutes"].max() <= 30
    assert size.drop("all")["figures"].max() <= 6
    assert size.loc["all", "folded lines"] <= 2150
    assert size.loc["all", "words"] <= 22_000
    assert size.loc["all", "minutes"] <= 300
    for path in NOTEBOOKS:  # pages need not be scrolled sideways
        for cell in nbformat.read(path, as_version=4).cells:
            is_folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            is_parameters = "parameters" in cell.metadata.get("tags", [])
            if cell.cell_type == "code" and not is_folded and not is_parameters:
                assert max(map(len, cell.source.splitlines())) <= 88, path.stem


def test_sentences_do_not_adapt():
    """What `say` and `answer` show is one fixed sentence with numbers in it: no branch chooses its words."""
    for path in NOTEBOOKS:
        for source in (code for code in nbformat.read(path, as_version=4).cells if code.cell_type == "code"):
            lines = source.source.replace("%pip", "pass  # ")
            for call in (node for node in ast.walk(ast.parse(lines)) if isinstance(node, ast.Call)):
                if getattr(call.func, "id", "") in ("say", "answer"):
                    assert isinstance(call.args[0], ast.Constant | ast.JoinedStr), (path.stem, lines)
                    assert not any(isinstance(part, ast.IfExp) for part in ast.walk(call.args[0])), path.stem
