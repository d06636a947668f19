"""The exercises: their feedback, their form, and what wrong answers lead to."""

import contextlib
import io
import itertools
import re
import sys
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from exercise_mistakes import MISTAKES

from dmls2r_lite.teaching import checks
from dmls2r_lite.teaching.checks import check, check_that, show_progress, smallest_mean

FOLDER = Path(__file__).parents[2] / "notebooks" / "exercises"
SOURCES = sorted((FOLDER / "source").glob("*/*.ipynb"))
RELEASES = sorted(FOLDER.glob("*.ipynb"))

each_source = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
each_release = pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)


@pytest.fixture(autouse=True)
def no_earlier_checks(monkeypatch):
    monkeypatch.setattr(checks, "_problems", {})
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def feedback(capsys, function, *arguments, **options):
    check("1: it", function, *arguments, **options)
    (line,) = capsys.readouterr().out.splitlines()
    return line


def unsolved(x):
    raise NotImplementedError


def changing(x):
    x += 1
    return x - 1


@pytest.mark.parametrize(
    ("function", "expected", "words"),
    [
        (lambda x: x, torch.ones(2), "✓ Task 1: it"),
        (unsolved, torch.ones(2), "○ Task 1: it – not solved yet"),
        (lambda x: None, torch.ones(2), "returns None: is a return missing?"),
        (lambda x: x[:, None], torch.ones(2), "shape (2,) expected, got (2, 1)"),
        (lambda x: x / 0 - x / 0, torch.ones(2), "it contains NaN"),
        (lambda x: x.numpy(), torch.ones(2), "a tensor of shape (2,) expected, got an array of shape (2,)"),
        (lambda x: x.tolist(), torch.ones(2), "a tensor of shape (2,) expected, got a list"),
        (lambda x: x > 0, torch.ones(2), "entries of type float32 expected, got bool"),
        (lambda x: x * torch.tensor([1, 2]), torch.ones(2), "entry [1]: 1 expected, got 2 (1 of 2 entries"),
        (changing, torch.ones(2), "it changes its input x: work on a copy"),
        (lambda x: x @ torch.ones(3), torch.ones(2), "it stops with RuntimeError"),
        (lambda x: -x, torch.ones(2), "✗ Task 1: it – the sign is wrong"),
        (lambda x: 2.0, 1.0, "1 expected, got 2"),
        (lambda x: 1e9, float("inf"), "inf expected, got 1e+09"),
        (lambda x: float("nan"), 1.0, "it is NaN"),
        (lambda x: x.sum(), 2.0, "a number expected, got a tensor of shape ()"),
        (
            lambda x: torch.tensor([1 + 5j, 1]),
            torch.ones(2),
            "entries of type float32 expected, got complex64",
        ),
        (lambda x: x.to_sparse(), torch.ones(2), "what it returns cannot be compared: "),
        (lambda: 1, 1, "takes 0 positional arguments but 1 was given"),
        (3, 1, "'int' object is not callable"),
        (torch.sum, torch.tensor(2.0), "✓"),
        (lambda x: torch.arange(3).softmax(0), torch.ones(2), "it stops with NotImplementedError: "),
        (lambda x: sys.exit(), torch.ones(2), "it stops with SystemExit"),
        (lambda x: list(range(100_000)), True, "True expected, got [0, 1, 2,"),
        (lambda x: "2", 2, "a number expected, got a str"),
        (lambda x: True, False, "False expected, got True"),
        (lambda x: 0, None, "None expected, got 0"),
        (lambda x: np.array([True, False]), True, "True expected, got array([ True, False])"),
        (lambda x: (x,), (torch.ones(2), torch.ones(2)), "a tuple of 2 expected, got 1"),
        (lambda x: [x, 2 * x], (x := torch.ones(2), x), "a tuple expected, got a list"),
        (lambda x: (x, 2 * x), (torch.ones(2), torch.ones(2)), "result [1]: entry [0]: 1 expected, got 2"),
        (lambda x: {"b": 1}, {"a": 1}, "keys ['a'] expected, got ['b']"),
        (lambda x: np.array([1, np.nan]), np.array([1, np.nan]), "✓"),
        (lambda x: pd.Series([1, 2]), pd.Series([1, 2], index=[3, 4]), "index [3, 4] expected, got [0, 1]"),
        (lambda x: pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), "columns ['b'] expected, got ['a']"),
        (lambda x: pd.DataFrame({"a": ["u"]}), pd.DataFrame({"a": ["v"]}), "'v' expected, got 'u'"),
    ],
)
def test_feedback_says_what_is_wrong(function, expected, words, capsys):
    mistakes = [(-torch.ones(2), "the sign is wrong")]
    line = feedback(capsys, function, torch.ones(2), expected=expected, mistakes=mistakes)
    assert words in line
    assert len(line) < 350


def test_tolerance_is_relative_for_large_numbers(capsys):
    assert "✓" in feedback(capsys, lambda: 1e6 + 0.5, expected=1e6)
    assert "✗" in feedback(capsys, lambda: 1e6 + 2, expected=1e6)
    assert "✓" in feedback(capsys, lambda: 1.01, expected=1.0, tolerance=0.02)


def test_says_where_in_the_answer_an_error_happens(capsys):
    def multiply(x):
        return pd.DataFrame(x) @ np.ones(7)

    line = feedback(capsys, multiply, np.ones((2, 2)), expected=0)
    assert "it stops with ValueError" in line
    assert line.endswith("of multiply: return pd.DataFrame(x) @ np.ones(7))")


def test_statements(capsys):
    check_that("2: sign", "it is positive", lambda: 1 > 0)
    check_that("2: size", "it is small", lambda: False)
    check_that("3: later", "it exists", lambda: unsolved(1))
    check_that("3: all", "they are", lambda: np.ones(2) == 1)
    assert capsys.readouterr().out.splitlines() == [
        "✓ Task 2: sign",
        "✗ Task 2: size – this should be true, but is not: it is small",
        "○ Task 3: later – not solved yet",
        "✗ Task 3: all – it stops with ValueError: The truth value of an array with more than one element is "
        "ambiguous. Use a.any() or a.all()",
    ]
    check_that("1: a", "it is so", lambda: True)
    show_progress([1, 2, 2, 3])
    assert capsys.readouterr().out.splitlines()[1:] == [
        "1 of 8 points, 1 of 4 tasks solved",
        "not solved yet: 3, 4",
        "not right yet: 2",
    ]
    check_that("2: size", "it is small", lambda: True)  # repaired: the last result counts
    show_progress([1, 2, 2, 3])
    assert "3 of 8 points, 2 of 4 tasks solved" in capsys.readouterr().out


def test_smallest_mean_is_that_of_all_choices():
    sizes = np.random.default_rng(0).uniform(size=(2, 5))
    choices = [
        sizes[0, list(columns[:2])].sum() + sizes[1, list(columns[2:])].sum()
        for columns in itertools.permutations(range(5), 4)
    ]
    assert smallest_mean(sizes, 2) == pytest.approx(min(choices) / 4)
    assert smallest_mean(sizes[:1], 3) == pytest.approx(np.sort(sizes[0])[:3].mean())


def test_under_nbgrader_a_problem_is_an_error(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    check("1: right", lambda: 1, expected=1)
    with pytest.raises(AssertionError, match="1 expected, got 2"):
        check("1: wrong", lambda: 2, expected=1)
    with pytest.raises(AssertionError, match="not solved yet"):
        check("1: open", unsolved, 1, expected=1)


def read(path):
    return nbformat.read(path, as_version=4)


def grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def run(nb, answers=None):
    """Execute a notebook's cells in this process; return the cells that fail, and all lines printed."""
    failed, printed, names = [], io.StringIO(), {}
    for cell in nb.cells:
        if cell.cell_type == "code":
            source = (answers or {}).get(grade_id(cell), cell.source)
            try:
                with contextlib.redirect_stdout(printed):
                    exec(compile(source.replace("%pip", "pass  #"), "cell", "exec"), names)
            except Exception:
                failed.append(grade_id(cell))
    return failed, printed.getvalue().splitlines()


def test_a_set_for_each_chapter():
    assert [path.stem for path in SOURCES] == [path.stem for path in RELEASES] == list(MISTAKES)
    assert len(SOURCES) == 9
    assert all(path.stem == path.parent.name for path in SOURCES)


def points_of(nb):
    """Those of nbgrader, task by task."""
    marks = [cell.metadata.get("nbgrader", {}) for cell in nb.cells]
    return [mark["points"] for mark in marks if mark.get("grade")]


@each_source
def test_form(path):
    nb = read(path)
    nbformat.validate(nb)
    cells = {grade_id(cell): cell for cell in nb.cells if grade_id(cell)}
    assert len(cells) == sum(grade_id(cell) is not None for cell in nb.cells)
    texts = [cell.source for cell in nb.cells if cell.cell_type == "markdown"]
    headings = [line for text in texts for line in text.splitlines() if re.match(r"#+ ", line)]
    n_tasks = len(headings) - 1
    assert headings[0].startswith(f"# Exercises {path.stem[0]} · ")
    assert all(h.startswith(f"## Task {number} · ") for number, h in enumerate(headings[1:], start=1))
    assert 4 <= n_tasks <= 8

    tests = [cell for cell in cells.values() if cell.metadata.nbgrader.grade]
    answers = [cell for cell in cells.values() if cell.metadata.nbgrader.solution]
    assert len(tests) == len(answers) == n_tasks
    words = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")
    points = points_of(nb)
    assert f"{words[n_tasks]} tasks, {sum(points)} points, about " in " ".join(texts[0].split())
    assert "**Trains** " in texts[0]
    minutes = len(" ".join(texts).split()) / 200 + sum({1: 5, 2: 7}.get(n, 8) for n in points)
    assert abs(minutes - int(re.search(r"about (\d+) minutes", texts[0])[1])) <= 3
    for cell in nb.cells[1:]:  # what to expect, and mistakes with their hints, are in no plain sight
        is_check = cell.cell_type == "code" and re.search(r"^ *check(_that)?\(", cell.source, flags=re.M)
        assert cell.metadata.get("jupyter") == ({"source_hidden": True} if is_check else None)
    folded = re.sub(r"<details>.*?</details>", "", "\n".join(texts), flags=re.S)
    assert not re.search(r"\bHint\b|The prediction", folded)
    for answer, test in zip(answers, tests, strict=True):
        assert grade_id(test) == f"test-{grade_id(answer)}"
        assert answer.source.count("### BEGIN SOLUTION") == answer.source.count("### END SOLUTION") == 1
        assert test.source.count("### BEGIN HIDDEN TESTS") == 1
        assert test.source.endswith("### END HIDDEN TESTS")
        assert test.metadata.nbgrader.locked
        assert re.search(r"\b(check|check_that)\(", test.source.split("### BEGIN HIDDEN")[0])
        assert re.match(r"(def|@)", answer.source)
    first = next(cell for cell in nb.cells if cell.cell_type == "code")
    assert grade_id(first) == "setup"
    assert 'if "google.colab" in sys.modules:\n    %pip install --quiet dmls2r-lite' in first.source
    assert nb.cells[-1].source == f"show_progress({points})"
    assert all(not cell.get("outputs") for cell in nb.cells)


@each_source
def test_solutions_solve(path):
    failed, lines = run(read(path))
    assert failed == []
    assert not [line for line in lines if line.startswith(("✗", "○"))]
    points = points_of(read(path))
    of_all = f"{sum(points)} of {sum(points)} points, {len(points)} of {len(points)} tasks solved"
    assert lines[-1] == of_all


@each_source
def test_points_shown_are_those_of_nbgrader(path, monkeypatch, capsys):
    """Task by task, from the last cell's own line."""
    nb = read(path)
    points = points_of(nb)
    for number, n in enumerate(points, start=1):
        monkeypatch.setattr(checks, "_problems", {f"{number}: it": None})
        exec(nb.cells[-1].source, {"show_progress": show_progress})
        first = capsys.readouterr().out.splitlines()[0]
        assert first == f"{n} of {sum(points)} points, 1 of {len(points)} tasks solved"


@each_release
def test_release_runs_to_its_end_and_says_what_is_open(path):
    nb = read(path)
    text = "\n".join(cell.source for cell in nb.cells)
    assert not re.search("SOLUTION|HIDDEN", text)
    n_tasks = sum(cell.metadata.get("nbgrader", {}).get("solution", False) for cell in nb.cells)
    assert text.count("raise NotImplementedError  # your code here") == n_tasks
    failed, lines = run(nb)
    assert failed == []
    assert [line for line in lines if line.startswith("✓")] == []
    numbers = ", ".join(str(number) for number in range(1, n_tasks + 1))
    nothing = f"0 of {sum(points_of(nb))} points, 0 of {n_tasks} tasks solved"
    assert lines[-2:] == [nothing, f"not solved yet: {numbers}"]


@each_release
def test_release_holds_no_line_of_a_solution(path):
    released = {line.strip() for cell in read(path).cells for line in cell.source.splitlines()}
    source = read(FOLDER / "source" / path.stem / path.name)
    solution_lines = {
        line.strip()
        for cell in source.cells
        for part in re.findall(r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.+?)### END", cell.source, flags=re.S)
        for line in part.splitlines()
        if len(line.strip()) > 25
    }
    assert len(solution_lines) > 10
    assert len(solution_lines & released) <= 2  # a line of setting up an example may occur twice


def is_needed(cell, answer):
    """Whether it is an answer, its test, or a cell of ours without points, such as the first."""
    mark = cell.metadata.get("nbgrader", {})
    return grade_id(cell) in (answer, f"test-{answer}") or (mark.get("locked") and not mark.grade)


# Each trains as many networks as the one that is left for `make test`.
LIKE_ANOTHER = {"a good idea with too small a factor", "the verdict is *cannot tell*", "the verdict is *"}


@pytest.mark.parametrize(
    ("name", "answer", "code", "words"),
    [
        pytest.param(name, *mistake, marks=pytest.mark.exhaustive if mistake[2] in LIKE_ANOTHER else ())
        for name, mistakes in MISTAKES.items()
        for mistake in mistakes
    ],
    ids=lambda value: value if re.fullmatch(r"[\w-]+", str(value)) else "",
)
def test_mistakes_are_noticed(name, answer, code, words, monkeypatch):
    nb = read(FOLDER / "source" / name / f"{name}.ipynb")
    nb.cells = [cell for cell in nb.cells if is_needed(cell, answer)]
    _, lines = run(nb, {answer: code})
    complaints = [line for line in lines if line.startswith(("✗", "○"))]
    assert any(words in line for line in complaints) if words else not complaints
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    failed, _ = run(nb, {answer: code})
    assert failed == [f"test-{answer}"]


@pytest.mark.parametrize("file", ["README.md", "TEACHING.md"])
def test_tables_of_sets_say_what_the_sets_say(file):
    text = (FOLDER / file).read_text()
    for path in RELEASES:
        intro = " ".join(read(path).cells[0].source.split())
        title = re.match(r"# Exercises (\d · .+?) For notebook", intro)[1]
        minutes = re.search(r"about (\d+) minutes", intro)[1]
        row = re.search(rf"\| \[{re.escape(title)}\]\({path.name}\) \|.*\| {minutes} \|\n", text)
        assert row, (file, title, minutes)
        if file == "README.md":
            marks = [cell.metadata.get("nbgrader", {}) for cell in read(path).cells]
            points = [mark["points"] for mark in marks if mark.get("grade")]
            assert f"| {len(points)} | {sum(points)} | {minutes} |" in row[0]
