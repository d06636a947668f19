"""The exercises: their feedback, their form, and what wrong answers lead to."""

import contextlib
import io
import itertools
import random
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


ONES = torch.ones(2)


@pytest.mark.parametrize(
    ("function", "expected", "words"),
    [
        (lambda x: x, ONES, "✓ Task 1: it"),
        (unsolved, ONES, "○ Task 1: it – not solved yet"),
        (lambda x: None, ONES, "returns None: is a return missing?"),
        (lambda x: x[:, None], ONES, "shape (2,) expected, got (2, 1)"),
        (lambda x: x / 0 - x / 0, ONES, "it contains NaN"),
        (lambda x: x.numpy(), ONES, "a tensor of shape (2,) expected, got an array of shape (2,)"),
        (lambda x: x.tolist(), ONES, "a tensor of shape (2,) expected, got a list"),
        (lambda x: x > 0, ONES, "entries of type float32 expected, got bool"),
        (lambda x: x * (1 + 5j), ONES, "entries of type float32 expected, got complex64"),
        (lambda x: x * torch.tensor([1, 2]), ONES, "entry [1]: 1 expected, got 2 (1 of 2 entries"),
        (changing, ONES, "it changes its input x: work on a copy"),
        (lambda x: x @ torch.ones(3), ONES, "it stops with RuntimeError"),
        (lambda x: -x, ONES, "✗ Task 1: it – the sign is wrong"),
        (lambda x: 2.0, 1.0, "1 expected, got 2"),
        (lambda x: 1e9, float("inf"), "inf expected, got 1e+09"),
        (lambda x: float("nan"), 1.0, "it is NaN"),
        (lambda x: x.sum(), 2.0, "a number expected, got a tensor of shape ()"),
        (lambda x: x.to_sparse(), ONES, "what it returns cannot be compared: "),
        (lambda: 1, 1, "takes 0 positional arguments but 1 was given"),
        (3, 1, "'int' object is not callable"),
        (torch.sum, torch.tensor(2.0), "✓"),
        (lambda x: torch.arange(3).softmax(0), ONES, "it stops with NotImplementedError: "),
        (lambda x: sys.exit(), ONES, "it stops with SystemExit"),
        (lambda x: list(range(100_000)), True, "True expected, got [0, 1, 2,"),
        (lambda x: "2", 2, "a number expected, got a str"),
        (lambda x: True, False, "False expected, got True"),
        (lambda x: 0, None, "None expected, got 0"),
        (lambda x: np.array([True, False]), True, "True expected, got array([ True, False])"),
        (lambda x: (x,), (ONES, ONES), "a tuple of 2 expected, got 1"),
        (lambda x: [x, 2 * x], (ONES, ONES), "a tuple expected, got a list"),
        (lambda x: (x, 2 * x), (ONES, ONES), "result [1]: entry [0]: 1 expected, got 2"),
        (lambda x: {"b": 1}, {"a": 1}, "keys ['a'] expected, got ['b']"),
        (lambda x: np.array([1, np.nan]), np.array([1, np.nan]), "✓"),
        (lambda x: pd.Series([1, 2]), pd.Series([1, 2], index=[3, 4]), "index [3, 4] expected, got [0, 1]"),
        (lambda x: pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), "columns ['b'] expected, got ['a']"),
        (lambda x: x, ONES.double(), "entries of type float64 expected, got float32"),
        (
            lambda x: x + 2e-6,
            ONES,
            "1.0 expected, got 1.0000020265579224, as if rounded or computed in float32",
        ),
        (lambda x: torch.manual_seed(0) and x, ONES, "it changes PyTorch's global random state"),
        (lambda x: random.seed(0) or x, ONES, "it changes Python's global random state"),
        (lambda x: pd.DataFrame({"a": ["u"]}), pd.DataFrame({"a": ["v"]}), "'v' expected, got 'u'"),
    ],
)
def test_feedback_says_what_is_wrong(function, expected, words, capsys):
    torch.manual_seed(0)  # the state that one of them sets
    line = feedback(capsys, function, ONES, expected=expected, mistakes=[(-ONES, "the sign is wrong")])
    assert words in line
    assert len(line) < 350
    assert torch.equal(torch.get_rng_state(), torch.Generator().manual_seed(0).get_state())


def test_gradients_and_hints(capsys):
    right = {"expected": 4 * ONES, "gradients": [2 * ONES, 2 * ONES], "hint": "add"}
    for function, words in [
        (lambda x, y: 2 * (x + y), "✓"),
        (lambda x, y: 2 * (x + y).detach(), "no gradient flows"),
        (lambda x, y: 2 * (x + y.detach()), "not the gradient: argument [1]: entry [0]: 2 expected, got 0"),
        (lambda x, y: x + y, "entry [0]: 4 expected, got 2 (2 of 2 entries differ); add"),
    ]:
        assert words in feedback(capsys, function, ONES, ONES.clone(), **right)


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
    choices = [sizes[[0, 0, 1, 1], columns].sum() for columns in itertools.permutations(range(5), 4)]
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


@pytest.fixture(scope="module", params=SOURCES, ids=lambda path: path.stem)
def source_and_release(request):
    """A set, and what students are given of it."""
    return read(request.param), read(FOLDER / request.param.name)


@pytest.fixture(scope="module")
def source(source_and_release):
    return source_and_release[0]


def mark_of(cell):
    return cell.metadata.get("nbgrader", {})


def grade_id(cell):
    return mark_of(cell).get("grade_id")


def points_of(nb):
    """Those of nbgrader, task by task."""
    return [mark_of(cell)["points"] for cell in nb.cells if mark_of(cell).get("grade")]


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


def test_form(source):
    nbformat.validate(source)
    ids = [grade_id(cell) for cell in source.cells if grade_id(cell)]
    assert len(set(ids)) == len(ids)
    texts = [cell.source for cell in source.cells if cell.cell_type == "markdown"]
    title, *tasks = re.findall(r"^#+ .+", "\n".join(texts), flags=re.M)
    n_tasks, points = len(tasks), points_of(source)
    assert re.match(r"# Exercises \d · ", title)
    assert all(task.startswith(f"## Task {number} · ") for number, task in enumerate(tasks, start=1))
    words = ("Four", "Five", "Six", "Seven", "Eight")
    assert f"{words[n_tasks - 4]} tasks, {sum(points)} points, about " in " ".join(texts[0].split())
    assert "**Trains** " in texts[0]
    minutes = len(" ".join(texts).split()) / 200 + sum({1: 5, 2: 7}.get(n, 8) for n in points)
    assert abs(minutes - int(re.search(r"about (\d+) minutes", texts[0])[1])) <= 3
    for cell in source.cells[1:]:  # what to expect, and mistakes with their hints, are in no plain sight
        is_check = cell.cell_type == "code" and re.search(r"^ *check(_that)?\(", cell.source, flags=re.M)
        assert cell.metadata.get("jupyter") == ({"source_hidden": True} if is_check else None)
    folded = re.sub(r"<details>.*?</details>", "", "\n".join(texts), flags=re.S)
    assert not re.search(r"\bHint\b|The prediction", folded)

    answers = [cell for cell in source.cells if mark_of(cell).get("solution")]
    tests = [cell for cell in source.cells if mark_of(cell).get("grade")]
    assert len(answers) == len(tests) == n_tasks
    for answer, test in zip(answers, tests, strict=True):
        assert grade_id(test) == f"test-{grade_id(answer)}"
        assert re.fullmatch(r"(def|@).*### BEGIN SOLUTION\n.*### END SOLUTION.*", answer.source, flags=re.S)
        shown, _ = test.source.split("### BEGIN HIDDEN TESTS")
        assert re.search(r"\b(check|check_that)\(", shown)
        assert test.source.endswith("### END HIDDEN TESTS")
        assert test.metadata.nbgrader.locked
    first = next(cell for cell in source.cells if cell.cell_type == "code")
    assert grade_id(first) == "setup"
    assert 'if "google.colab" in sys.modules:\n    %pip install --quiet dmls2r-lite' in first.source
    assert source.cells[-1].source == f"show_progress({points})"
    assert all(not cell.get("outputs") for cell in source.cells)


def test_solutions_solve(source):
    failed, lines = run(source)
    assert failed == []
    assert not [line for line in lines if line.startswith(("✗", "○"))]
    points = points_of(source)
    of_all = f"{sum(points)} of {sum(points)} points, {len(points)} of {len(points)} tasks solved"
    assert lines[-1] == of_all


def test_release_runs_to_its_end_and_holds_no_line_of_a_solution(source_and_release):
    source, release = source_and_release
    text = "\n".join(cell.source for cell in release.cells)
    assert not re.search("SOLUTION|HIDDEN", text)
    points = points_of(release)
    assert text.count("raise NotImplementedError  # your code here") == len(points)
    failed, lines = run(release)
    assert failed == []
    assert [line for line in lines if line.startswith("✓")] == []
    numbers = ", ".join(str(number) for number in range(1, len(points) + 1))
    nothing = f"0 of {sum(points)} points, 0 of {len(points)} tasks solved"
    assert lines[-2:] == [nothing, f"not solved yet: {numbers}"]

    everything = "\n".join(cell.source for cell in source.cells)
    hidden = re.findall(r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.+?)### END", everything, flags=re.S)
    hidden_lines = {line.strip() for line in "\n".join(hidden).splitlines() if len(line.strip()) > 25}
    assert len(hidden_lines) > 10
    released = {line.strip() for line in text.splitlines()}
    assert len(hidden_lines & released) <= 2  # a line of setting up an example may occur twice


def is_needed(cell, answer):
    """Whether it is an answer, its test, or a cell of ours without points, such as the first."""
    is_ours = mark_of(cell).get("locked") and not mark_of(cell)["grade"]
    return grade_id(cell) in (answer, f"test-{answer}") or is_ours


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


def test_tables_of_sets_say_what_the_sets_say():
    readme, teaching = ((FOLDER / name).read_text() for name in ("README.md", "TEACHING.md"))
    for path in RELEASES:
        nb = read(path)
        intro, points = " ".join(nb.cells[0].source.split()), points_of(nb)
        title = re.match(r"# Exercises (\d · .+?) For notebook", intro)[1]
        minutes = re.search(r"about (\d+) minutes", intro)[1]
        row = rf"\| \[{re.escape(title)}\]\({path.name}\) \|.*\| "
        assert re.search(rf"{row}{len(points)} \| {sum(points)} \| {minutes} \|\n", readme), title
        assert re.search(rf"{row}{minutes} \|\n", teaching), title
