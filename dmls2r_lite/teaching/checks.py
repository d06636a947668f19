"""Feedback for exercises at once: what is wrong with an answer, without showing a solution."""

from __future__ import annotations

import copy
import os
import textwrap
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linear_sum_assignment

_problems: dict[str, str | None] = {}  # of every check so far, None where there is none
_OPEN = "not solved yet"


def check(
    name: str,
    function: Callable[..., Any],
    *arguments: Any,
    expected: Any,
    mistakes: Sequence[tuple[Any, str]] = (),
    tolerance: float = 1e-6,
) -> None:
    """Call a function on copies of some arguments, and say what is wrong with what it returns.

    Prints one line. When nbgrader executes the notebook, a problem is also raised, so that it costs points.

    Parameters
    ----------
    name : str
        The task, a colon, and what is checked, for example ``"2: three labels"``.
    function : callable
        A student's.
    *arguments
        For the function.
    expected : number, str, None, tensor, array, frame, or a tuple, list or dict of these
        What it should return: kind, shape and values are compared.
    mistakes : sequence of (value, str), default=()
        What well-known mistakes return, each with a hint.
    tolerance : float, default=1e-6
        Largest difference of a number, relative to the expected one where that is above 1.

    Raises
    ------
    AssertionError
        Under nbgrader, if there is a problem.
    """
    __tracebackhide__ = True  # under nbgrader students see where their notebook stops, not this module
    try:
        problem = _find_problem(function, arguments, expected, mistakes, tolerance)
    except Exception as error:  # a result may be anything
        problem = f"what it returns cannot be compared: {type(error).__name__}: {error}"
    _report(name, problem)


def check_that(name: str, statement: str, is_true: Callable[[], Any]) -> None:
    """Say whether a statement about an answer is true. As `check` otherwise.

    Parameters
    ----------
    name : str
        The task, a colon, and what is checked.
    statement : str
        What should be true, as a sentence.
    is_true : callable
        Without arguments; finds out whether it is.

    Raises
    ------
    AssertionError
        Under nbgrader, if it is not.
    """
    __tracebackhide__ = True
    value, problem = _call(lambda: bool(is_true()), ())
    _report(name, problem or (None if value else f"this should be true, but is not: {statement}"))


def show_progress(points: Sequence[int]) -> None:
    """Print which tasks are solved and what they are worth, by what was checked in this session.

    Hidden tests may find more, and then a task that is counted here gets no points.

    Parameters
    ----------
    points : sequence of int
        Those of the tasks 1, 2, …
    """
    tasks: dict[str, list[str | None]] = {str(number): [] for number in range(1, len(points) + 1)}
    for name, problem in _problems.items():
        tasks[name.split(":")[0]].append(problem)
    open_ones = [task for task, problems in tasks.items() if not problems or _OPEN in problems]
    wrong = [task for task, problems in tasks.items() if any(problems) and task not in open_ones]
    solved = [task for task in tasks if task not in open_ones + wrong]
    won = sum(points[int(task) - 1] for task in solved)
    print(f"{won} of {sum(points)} points, {len(solved)} of {len(tasks)} tasks solved")
    for text, names in (("not solved yet", open_ones), ("not right yet", wrong)):
        if names:
            print(f"{text}: {', '.join(names)}")


def smallest_mean(sizes: np.ndarray, k: int) -> float:
    """Smallest mean that `k` entries of each row can have, with no two entries in one column.

    Parameters
    ----------
    sizes : array of shape (n, m)
        With ``n * k`` of at most ``m``.
    k : int
        Entries to take from each row.

    Returns
    -------
    float
        In the unit of the sizes.
    """
    places = np.repeat(sizes, k, axis=0)
    return float(places[linear_sum_assignment(places)].mean())


def _report(name: str, problem: str | None) -> None:
    __tracebackhide__ = True
    problem = textwrap.shorten(problem, 300) if problem else None  # one line, whatever a student returns
    _problems[name] = problem
    mark = "✓" if problem is None else "○" if problem == _OPEN else "✗"
    print(f"{mark} Task {name}" + (f" – {problem}" if problem else ""))
    if problem and "NBGRADER_EXECUTION" in os.environ:
        raise AssertionError(problem)


def _call(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, str | None]:
    try:
        return function(*arguments), None
    except AssertionError as error:  # of what a check does with an answer
        return None, str(error) or "an assertion fails"
    except (Exception, SystemExit) as error:  # whatever a student's code may raise
        if isinstance(error, NotImplementedError) and not str(error):  # PyTorch's have a message
            return None, _OPEN
        return None, f"it stops with {type(error).__name__}: {error}{_place_of(error)}"


def _place_of(error: BaseException) -> str:
    """The last line of an answer that an error has passed, in brackets, or nothing."""
    elsewhere = (os.path.dirname(os.__file__), "site-packages", os.path.dirname(__file__))
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.line and not any(place in f.filename for place in elsewhere)]
    return "".join(f" (line {f.lineno} of {f.name}: {f.line})" for f in ours[-1:])


def _changed_input(function: Callable[..., Any], before: Sequence[Any], after: Sequence[Any]) -> str | None:
    """A sentence on the first argument of a call that is no longer what it was, or None."""
    code = getattr(function, "__code__", None)  # of a function, not of what only behaves like one
    names = code.co_varnames if code else [f"number {number}" for number in range(1, len(after) + 1)]
    kinds = torch.Tensor | np.ndarray | pd.DataFrame | pd.Series | list | tuple | dict
    for name, old, new in zip(names, before, after, strict=False):
        if isinstance(old, kinds) and _difference(new, old, 0.0):
            return f"it changes its input {name}: work on a copy"
    return None


def _find_problem(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    expected: Any,
    mistakes: Sequence[tuple[Any, str]],
    tolerance: float,
) -> str | None:
    given = copy.deepcopy(arguments)
    got, problem = _call(function, given)
    if problem:
        return problem
    problem = _changed_input(function, arguments, given) or _difference(got, expected, tolerance)
    if problem:
        for value, hint in mistakes:
            if _difference(got, value, tolerance) is None:
                return hint
    return problem


def _difference(got: Any, expected: Any, tolerance: float) -> str | None:
    """What is different, in words, or None."""
    if got is None and expected is not None:
        return "it returns None: is a return missing?"
    if isinstance(expected, tuple | list | dict):
        if type(got) is not type(expected):
            return f"{_kind(expected)} expected, got {_kind(got)}"
        if len(got) != len(expected):
            return f"{_kind(expected)} of {len(expected)} expected, got {len(got)}"
        if isinstance(expected, dict) and set(got) != set(expected):
            return f"keys {sorted(map(str, expected))} expected, got {sorted(map(str, got))}"
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            problem = _difference(got[key], expected[key], tolerance)
            if problem:
                return f"result [{key!r}]: {problem}"
        return None
    if isinstance(expected, pd.DataFrame | pd.Series):
        if type(got) is not type(expected):
            return f"{_kind(expected)} expected, got {_kind(got)}"
        labels = ["index", "columns"] if isinstance(expected, pd.DataFrame) else ["index"]
        for name in labels:
            wanted, found = list(getattr(expected, name)), list(getattr(got, name))
            if wanted != found:
                return f"{name} {_short(wanted)} expected, got {_short(found)}"
        return _array_difference(np.asarray(got), np.asarray(expected), tolerance)
    if isinstance(expected, torch.Tensor | np.ndarray):
        if not isinstance(got, type(expected)):
            return f"{_kind(expected)} expected, got {_kind(got)}"
        return _array_difference(_as_array(got), _as_array(expected), tolerance)
    if isinstance(expected, bool | str) or expected is None:
        same = isinstance(got, bool | np.bool_ | str | None) and got == expected
        return None if same else f"{expected!r} expected, got {got!r}"
    if isinstance(got, torch.Tensor | np.ndarray) or not np.isscalar(got) or isinstance(got, str | bool):
        return f"a number expected, got {_kind(got)}"
    return _array_difference(np.asarray(got), np.asarray(expected), tolerance)


def _as_array(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value


def _array_difference(got: np.ndarray, expected: np.ndarray, tolerance: float) -> str | None:
    if got.shape != expected.shape:
        return f"shape {expected.shape} expected, got {got.shape}"
    if (got.dtype == bool) != (expected.dtype == bool) or (got.dtype.kind == "c" != expected.dtype.kind):
        return f"entries of type {expected.dtype} expected, got {got.dtype}"
    if expected.dtype.kind not in "biufc" or got.dtype.kind not in "biufc":
        wrong = ~((got == expected) | (pd.isna(got) & pd.isna(expected)))
    else:
        numbers, wanted = got.astype(float), expected.astype(float)
        if np.isnan(numbers).any() and not np.isnan(wanted).any():
            return "it contains NaN" if numbers.ndim else "it is NaN"
        near = np.isfinite(wanted) & (np.abs(numbers - wanted) <= tolerance * np.maximum(1, np.abs(wanted)))
        wrong = ~(near | (numbers == wanted) | (np.isnan(numbers) & np.isnan(wanted)))
    if not wrong.any():
        return None
    if not got.ndim:
        return f"{_number(expected)} expected, got {_number(got)}"
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    at = ", ".join(map(str, place))
    count = f" ({wrong.sum()} of {wrong.size} entries differ)" if wrong.size > 1 else ""
    return f"entry [{at}]: {_number(expected[place])} expected, got {_number(got[place])}{count}"


def _number(value: Any) -> str:
    value = value.item() if isinstance(value, np.ndarray | np.generic) else value
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _short(labels: list) -> str:
    return f"{labels[:5]}".replace("]", ", …]") if len(labels) > 5 else f"{labels}"


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor | np.ndarray):
        name = "a tensor" if isinstance(value, torch.Tensor) else "an array"
        return f"{name} of shape {tuple(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"
