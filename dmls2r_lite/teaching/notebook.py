"""What the notebooks share besides figures: how they begin, sentences with numbers, a record of results."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor, isfinite, log10
from typing import Any

from IPython.display import Markdown, display

from ..data.catalog import DATASETS
from ..data.datasets import MIN_LABELS, Dataset, check_column, check_split_sizes, load_dataset
from ..data.noticing import shorten
from ..foundation.parameters import RULES, check_not_above, check_rules, demand
from ..practice.folds import deal_folds, hide_targets
from ..practice.intervals import rank_of_bound

RESULTS_MIME = "application/vnd.dmls2r.results+json"
TO_LOAD = ("target", "drop_columns", "column_types", "missing_values", "missing")  # for `load_dataset`


def begin(namespace: Mapping[str, Any], **more: Any) -> Dataset:
    """What every notebook begins with: the style of figures, one thread, and `check_parameters`.

    Parameters
    ----------
    namespace : mapping of str to value
        ``globals()``: its parameters are those that `check_parameters` knows.
    **more
        Others for it, for example ``needs_targets=True``.
    """
    import torch

    from .plotting import set_style

    set_style()
    torch.set_num_threads(1)  # the networks are small: a second thread would only cost time
    known = ("dataset", "groups", *TO_LOAD, *RULES)
    return check_parameters(**{name: namespace[name] for name in known if name in namespace} | more)


def check_parameters(
    *,
    dataset: str,
    needs_targets: bool = False,
    load: Callable[..., Dataset] = load_dataset,
    **parameters: Any,
) -> Dataset:
    """Check the parameters of a notebook before anything is computed, and load its dataset.

    Parameters
    ----------
    dataset : str
        A name or path that `load_dataset` knows.
    needs_targets : bool, default=False
        Whether to leave out samples whose target is not known: for lessons that compare what they
        do with the truth. Those that say how many unlabeled samples they take leave them out of datasets
        that have a name: too few there lack a target.
    load : callable, default=load_dataset
        In its place: for whoever checks many notebooks, and has loaded the dataset before.
    **parameters
        What `load_dataset` takes: `target`, if it is not the dataset's own, `drop_columns`, `column_types`,
        `missing_values`, `missing`. Then `groups`, a column that says which rows belong together: it is no
        feature of the dataset that is returned, which has it as `groups`. Then whatever `check_values` knows,
        for example `n_labeled`; with `n_unlabeled` 0 the dataset's own number is checked, and with `coverage`
        whether there are labels and groups enough for the folds and intervals of notebook 05.

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError
        If a value has the wrong type or a parameter is unknown.
    ValueError
        If a value is out of range, alone or together with others.
    OSError
        If a file is missing, may not be read or cannot be downloaded.
    """
    check_values(dataset=dataset, **parameters)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the dataset's note says them too
        data = load(dataset, **{name: parameters[name] for name in TO_LOAD if name in parameters})
    n_known, wanted = int(data.target.notna().sum()), f"a value in {MIN_LABELS} rows or more"
    got = f"{shorten(data.target.name)} has {n_known}; dmls2r choose says which rows to label"
    demand(n_known >= MIN_LABELS, f"target must have {wanted}, but {got}")
    if parameters.get("groups"):
        data = _with_groups(data, parameters["groups"])
    if needs_targets or ("n_unlabeled" in parameters and dataset in DATASETS):
        data = data.with_known_targets()
    n_unlabeled = 0  # unless it is asked for, the unlabeled samples are those without a target
    if "n_unlabeled" in parameters:
        n_unlabeled = parameters["n_unlabeled"] or data.n_unlabeled
        check_not_above("k", parameters.get("k", 1), n_unlabeled, "n_unlabeled")
    if n_unlabeled or data.target.notna().all():
        check_split_sizes(data, parameters.get("n_labeled", 2), n_unlabeled)
    if "coverage" in parameters and parameters.get("n_labeled", 0) >= MIN_LABELS:  # else 05 refuses it
        y, seed = data.target, parameters.get("seed", 0)
        if y.notna().all() or dataset in DATASETS:  # as in that notebook
            y = hide_targets(y, parameters["n_labeled"], seed)
        n_groups = int(y.notna().sum()) if data.groups is None else data.groups[y.notna()].nunique()
        folds = sorted(deal_folds(y, min(5, max(2, n_groups)), seed, data.groups), key=len)
        rank_of_bound(sum(map(len, folds[:-1])), parameters["coverage"], "labels besides a fold")
    return data


def check_values(**parameters: Any) -> None:
    """Check the parameters of a notebook that has no dataset to choose, each by the table of rules.

    Raises
    ------
    TypeError, ValueError
        As `check_parameters`.
    """
    for name in parameters:
        demand(name in RULES, f"unknown parameter {name!r}")
    check_rules(parameters, at_least={"n_epochs": 2})  # an epoch of each step


def _with_groups(data: Dataset, groups: str) -> Dataset:
    """A dataset with a column in the place of a feature that says which rows belong together."""
    table = data.features if data.reading is None else data.reading.table.drop(columns=str(data.target.name))
    check_column("groups", groups, data.name, table)
    features = data.features.drop(columns=groups, errors="ignore")
    columns = None if data.columns is None else data.columns.drop(groups)
    notices = tuple(notice for notice in data.notices if notice.topic != "groups")
    return replace(data, features=features, columns=columns, notices=notices, groups=table[groups])


def say(text: str, **numbers: Any) -> None:
    """Show a sentence that is true whatever its numbers are, for example ``say("{n} cells", n=3)``.

    Parameters
    ----------
    text : str
        In Markdown, with the numbers' names and formats in braces.
    **numbers
        By name.
    """
    display(Markdown(text.format(**numbers)))


def answer(text: str, **numbers: Any) -> Markdown:
    """The answer to a *Predict* question, folded until the reader opens it.

    Parameters
    ----------
    text : str
        In Markdown: a look, a number or a verdict. With numbers, as for `say`.
    **numbers
        By name.
    """
    text = text.format(**numbers) if numbers else text
    return Markdown(f"<details><summary>Answer</summary>\n\n{text.strip()}\n\n</details>")


def write_number(value: float, margin: float | None = None, sign: bool = False) -> str:
    """A number to be read: 4,380 ± 350 rather than 4.38e+03 ± 3.5e+02.

    Parameters
    ----------
    value : float
        With three digits, or all before the point rounded to three.
    margin : float, optional
        How far off the value may be: both get the places of its second digit.
    sign : bool, default=False
        Write a plus, too.
    """
    plus = "+" if sign else ""
    size = abs(margin or value)
    if not (isfinite(value) and 1e-4 <= size < 1e9 and abs(value) < 1e9):
        texts = [f"{value:{plus}.3g}"] + ([] if margin is None else [f"{margin:.2g}"])
    else:
        places = (1 if margin else 2) - floor(log10(size))
        numbers = [(value, plus)] + ([] if margin is None else [(margin, "")])
        texts = [f"{round(number, places):{mark},.{max(places, 0)}f}" for number, mark in numbers]
    return " ± ".join(texts)


def record_results(finding: str = "", unit: str = "", **results: float | int | str) -> None:
    """Show a notebook's results and store them in its output, where `dmls2r run` collects them.

    Parameters
    ----------
    finding : str, default=""
        What they say, in a sentence or three, with their names in braces, and {unit}.
    unit : str, default=""
        Of the target.
    **results : float, int or str
        By name, for example ``test_mae=4.2``. In the sentence a ``coverage`` and what ends in ``percent`` are
        written as percentages, what ends in ``difference`` has its sign.
    """
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in results.items()}
    if finding:
        written = {name: _write_result(name, value) for name, value in plain.items()}
        plain = {"finding": finding.format(unit=unit, **written)} | plain
    text = "\n".join(f"{name} = {value}" for name, value in plain.items())
    display({RESULTS_MIME: json.loads(json.dumps(plain)), "text/plain": text}, raw=True)


def _write_result(name: str, value: float | int | str) -> str:
    if not isinstance(value, float):
        return str(value)
    if name.startswith("coverage"):
        return f"{100 * value:.0f} %"
    if name.endswith("percent"):
        return f"{value:g} %"
    return write_number(value, sign=name.endswith("difference"))


_MARKUP = re.compile(r"[\\`*\[\]<>&|~$\n\r]|(?<!\w)_|_(?!\w)|://|^\s*(?:[-+=#]|\d+[.)])")


def escape_markdown(text: object) -> str:
    """Text of a table, such as a column's name, for a place within Markdown, where it is shown as it is.

    Parameters
    ----------
    text : object
        What `str` makes of it is taken.

    Returns
    -------
    str
        With an entity in place of each character that would be markup.
    """
    return _MARKUP.sub(lambda found: "".join(f"&#{ord(c)};" for c in found[0]), str(text))


def introduce(data: Dataset) -> str:
    """Name, note and source of a dataset, in Markdown."""
    return f"**{escape_markdown(data.name)}**: {escape_markdown(f'{data.note} Source: {data.source}.')}"
