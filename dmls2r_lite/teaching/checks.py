"""Feedback for exercises at once: what is wrong with an answer, without showing a solution."""

from __future__ import annotations

import copy
import os
import pickle
import random
import reprlib
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
_PARTS = torch.Tensor | np.ndarray | pd.DataFrame | pd.Series | list | tuple | dict  # what has entries


def check(
    name: str,
    function: Callable[..., Any],
    *arguments: Any,
    expected: Any,
    mistakes: Sequence[tuple[Any, str]] = (),
    tolerance: float = 1e-6,
    gradients: Sequence[torch.Tensor] = (),
    hint: str = "",
) -> None:
    """Call a function on copies of some arguments, and say what is wrong with what it returns.

    Prints one line. When nbgrader executes the notebook, a problem is also raised, so that it costs points.
    Changed arguments and changed global random states are problems too.

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
    gradients : sequence of tensor, default=()
        For as many of the first arguments, all tensors: those of the sum of what it returns.
    hint : str, default=""
        For whatever else is wrong with what it returns.

    Raises
    ------
    AssertionError
        Under nbgrader, if there is a problem.
    """
    __tracebackhide__ = True  # under nbgrader students see where their notebook stops, not this module
    given = copy.deepcopy(arguments)
    for argument in given[: len(gradients)]:
        argument.requires_grad_()
    got, problem = _call(lambda: function(*given))
    if problem is None:
        try:
            problem = _difference(got, expected, tolerance)
            problem = problem or _gradient_difference(got, given, gradients, tolerance)
            known = (hint for value, hint in mistakes if _difference(got, value, tolerance) is None)
            problem = problem and next(known, f"{problem}; {hint}" if hint else problem)
            problem = _changed_input(function, arguments, given) or problem
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
    value, problem = _call(lambda: bool(is_true()))
    _report(name, problem or (None if value else f"this should be true, but is not: {statement}"))


def show_progress(points: Sequence[int]) -> None:
    """Print which tasks are solved and what they are worth, by what was checked in this session.

    Hidden tests may find more, and then a task that is counted here gets no points.

    Parameters
    ----------
    points : sequence of int
        Those of the tasks 1, 2, …
    """
    found: dict[int, list[str | None]] = {task: [] for task in range(1, len(points) + 1)}
    for name, problem in _problems.items():
        found[int(name.split(":")[0])].append(problem)
    still_open = [task for task, problems in found.items() if not problems or _OPEN in problems]
    wrong = [task for task, problems in found.items() if any(problems) and task not in still_open]
    solved = found.keys() - {*still_open, *wrong}
    won = sum(points[task - 1] for task in solved)
    print(f"{won} of {sum(points)} points, {len(solved)} of {len(points)} tasks solved")
    for text, tasks in ((_OPEN, still_open), ("not right yet", wrong)):
        if tasks:
            print(f"{text}: {', '.join(map(str, tasks))}")


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


def _call(function: Callable[[], Any]) -> tuple[Any, str | None]:
    """What a function returns, or in words why that does not count."""
    before = _random_states()
    random.random(), np.random.random(), torch.rand(1)  # noqa: NPY002 - so that no seed leaves a state as it was
    started = _random_states()
    try:
        value, ended = function(), _random_states()
        changed = [
            library for library in ended if pickle.dumps(ended[library]) != pickle.dumps(started[library])
        ]
        states = f"{' and '.join(changed)}'s global random state"
        return value, f"it changes {states}: use a generator of your own" if changed else None
    except AssertionError as error:  # of what a check does with an answer
        return None, str(error) or "an assertion fails"
    except (Exception, SystemExit) as error:  # whatever a student's code may raise
        if isinstance(error, NotImplementedError) and not str(error):  # PyTorch's have a message
            return None, _OPEN
        return None, f"it stops with {type(error).__name__}: {error}{_place_of(error)}"
    finally:
        random.setstate(before["Python"])
        np.random.set_state(before["NumPy"])  # noqa: NPY002
        torch.set_rng_state(torch.tensor(before["PyTorch"]))


def _random_states() -> dict[str, Any]:
    """The global ones, by library."""
    return {
        "Python": random.getstate(),
        "NumPy": np.random.get_state(),  # noqa: NPY002
        "PyTorch": torch.get_rng_state().numpy(),
    }


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
    for name, old, new in zip(names, before, after, strict=False):
        if isinstance(old, _PARTS) and _difference(new, old, 0.0):
            return f"it changes its input {name}: work on a copy"
    return None


def _gradient_difference(
    got: Any, arguments: Sequence[Any], gradients: Sequence[torch.Tensor], tolerance: float
) -> str | None:
    if not gradients:
        return None
    total = sum(part.sum() for part in (got if isinstance(got, tuple) else [got]))
    if not total.requires_grad:
        return "no gradient flows through it: .item(), .detach(), torch.tensor() and NumPy cut it off"
    found = torch.autograd.grad(total, arguments[: len(gradients)], materialize_grads=True)
    problem = _difference(found, tuple(gradients), tolerance)
    return problem and f"the value is right, but not the gradient: {problem.replace('result', 'argument')}"


def _difference(got: Any, expected: Any, tolerance: float) -> str | None:
    """What is different, in words, or None."""
    if got is None and expected is not None:
        return "it returns None: is a return missing?"
    if isinstance(expected, bool | str) or expected is None:
        same = isinstance(got, bool | np.bool_ | str | None) and got == expected
        return None if same else f"{expected!r} expected, got {got!r}"
    if not isinstance(expected, _PARTS):
        if not np.isscalar(got) or isinstance(got, str | bool):
            return f"a number expected, got {_kind(got)}"
    elif not isinstance(got, type(expected)):
        return f"{_kind(expected)} expected, got {_kind(got)}"
    if isinstance(expected, tuple | list | dict):
        if len(got) != len(expected):
            return f"{_kind(expected)} of {len(expected)} expected, got {len(got)}"
        if isinstance(expected, dict) and set(got) != set(expected):
            return f"keys {sorted(map(str, expected))} expected, got {sorted(map(str, got))}"
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            if problem := _difference(got[key], expected[key], tolerance):
                return f"result [{key!r}]: {problem}"
        return None
    for labels in ("index", "columns") if isinstance(expected, pd.DataFrame | pd.Series) else ():
        wanted, found = (list(getattr(value, labels, ())) for value in (expected, got))
        if wanted != found:
            return f"{labels} {reprlib.repr(wanted)} expected, got {reprlib.repr(found)}"
    return _array_difference(_as_array(got), _as_array(expected), tolerance)


def _as_array(value: Any) -> np.ndarray:
    return np.asarray(value.detach() if isinstance(value, torch.Tensor) else value)


def _array_difference(got: np.ndarray, expected: np.ndarray, tolerance: float) -> str | None:
    if got.shape != expected.shape:
        return f"shape {expected.shape} expected, got {got.shape}"
    kinds = got.dtype.kind, expected.dtype.kind
    is_narrower = kinds == ("f", "f") and got.itemsize < expected.itemsize
    if is_narrower or (kinds[0] != kinds[1] and ("b" in kinds or kinds[0] == "c")):
        return f"entries of type {expected.dtype} expected, got {got.dtype}"
    if expected.dtype.kind not in "biufc" or got.dtype.kind not in "biufc":
        wrong = ~((got == expected) | (pd.isna(got) & pd.isna(expected)))
    else:
        numbers, wanted = got.astype(float), expected.astype(float)
        if np.isnan(numbers).any() and not np.isnan(wanted).any():
            return "it contains NaN" if numbers.ndim else "it is NaN"
        off = tolerance * np.maximum(1, np.abs(np.nan_to_num(wanted)))
        wrong = ~np.isclose(numbers, wanted, rtol=0, atol=off, equal_nan=True)
    if not wrong.any():
        return None
    place = tuple(map(int, np.argwhere(wrong)[0]))
    values = expected.item(*place), got.item(*place)
    texts = [f"{value:.6g}" if isinstance(value, float) else repr(value) for value in values]
    if texts[0] == texts[1]:
        texts = [repr(values[0]), f"{values[1]!r}, as if rounded or computed in float32"]
    where = f"entry [{', '.join(map(str, place))}]: " if place else ""
    count = f" ({wrong.sum()} of {wrong.size} entries differ)" if wrong.size > 1 else ""
    return f"{where}{texts[0]} expected, got {texts[1]}{count}"


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor | np.ndarray):
        name = "a tensor" if isinstance(value, torch.Tensor) else "an array"
        return f"{name} of shape {tuple(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"
