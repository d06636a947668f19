"""What the notebooks share besides figures: a check of parameters, folded answers, a record of results."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from IPython.display import Markdown, display

from ..data.datasets import Dataset, load_dataset
from ..data.splits import check_split_sizes
from ..parameters import RULES, check_not_above, check_rules

RESULTS_MIME = "application/vnd.dmls2r.results+json"


def check_parameters(
    *,
    dataset: str,
    target: str = "",
    drop_columns: str = "",
    groups: str = "",
    missing: Literal["drop", "as_published"] = "drop",
    output_dir: str = "",
    needs_targets: bool = False,
    load: Callable[..., Dataset] = load_dataset,
    **parameters: Any,
) -> Dataset:
    """Check the parameters of a notebook before anything is computed, and load its dataset.

    Parameters
    ----------
    dataset : str
        A name or path that `load_dataset` knows.
    target : str, default=""
        The column to estimate, if it is not the dataset's own.
    drop_columns : str, default=""
        Columns to leave out, separated by commas; also patterns like ``lab_*``.
    groups : str, default=""
        A column that says which rows belong together. It is no feature of the dataset that is returned.
    missing : {"drop", "as_published"}, default="drop"
        See `load_dataset`.
    output_dir : str, default=""
        Folder for files that the notebook writes; it need not exist.
    needs_targets : bool, default=False
        Whether to leave out samples whose target is not known: for lessons that compare what they
        do with the truth.
    load : callable, default=load_dataset
        In its place: for whoever checks many notebooks, and has loaded the dataset before.
    **parameters
        Any of `n_labeled`, `n_unlabeled`, `seed`, `n_seeds`, `n_repeats`, `k`, `n_epochs`,
        `boundary`, `margin`, `temperature`, `mining_mode`, `method`, `coverage`, `chosen`. With
        `n_unlabeled` 0 the dataset's own number is checked.

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
    strings = {
        "dataset": dataset, "target": target, "drop_columns": drop_columns, "groups": groups,
        "output_dir": output_dir,
    }  # fmt: skip
    for name, value in strings.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, got {value!r}")
    if output_dir and Path(output_dir).exists() and not Path(output_dir).is_dir():
        raise ValueError(f"output_dir must name a folder, got the file {output_dir}")
    check_values(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they are in the dataset's note too
        data = load(dataset, drop_columns, target=target or None, missing=missing)
    data = data.with_known_targets() if needs_targets else data
    if groups:
        if groups not in data.features:
            names = ", ".join(map(str, data.features))
            raise ValueError(f"groups must name a column of {data.name} ({names}), got {groups!r}")
        columns = None if data.columns is None else data.columns.drop(groups)
        data = replace(data, features=data.features.drop(columns=groups), columns=columns)
    if "n_unlabeled" in parameters:
        n_unlabeled = parameters["n_unlabeled"] or data.n_unlabeled
        check_split_sizes(data, parameters.get("n_labeled", 2), n_unlabeled)
        check_not_above("k", parameters.get("k", 1), n_unlabeled, "n_unlabeled")
    elif data.target.notna().all():  # else the unlabeled samples are those without a target
        check_split_sizes(data, parameters.get("n_labeled", 2), 0)
    return data


def check_values(**parameters: Any) -> None:
    """Check the parameters of a notebook that has no dataset to choose: `check_parameters` without one.

    Raises
    ------
    TypeError, ValueError
        As there.
    """
    for name in parameters:
        if name not in RULES:
            raise TypeError(f"unknown parameter {name!r}")
    check_rules(parameters)


def answer(text: str) -> Markdown:
    """The answer to a *Predict* question, folded until the reader opens it.

    Parameters
    ----------
    text : str
        In Markdown.
    """
    return Markdown(f"<details><summary>Answer</summary>\n\n{text.strip()}\n\n</details>")


def record_results(**results: float | int | str) -> None:
    """Show a notebook's results and store them in its output, where `dmls2r run` collects them.

    Parameters
    ----------
    **results : float, int or str
        By name, for example ``test_mae=4.2``.
    """
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in results.items()}
    text = "\n".join(f"{name} = {value}" for name, value in plain.items())
    display({RESULTS_MIME: json.loads(json.dumps(plain)), "text/plain": text}, raw=True)


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
