"""What somebody should know of a table before its numbers are believed: nothing here changes one."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types
from scipy.stats import f as f_distribution
from scipy.stats import fisher_exact

MAX_NAMES, MAX_LETTERS = 4, 40  # in a sentence
MAX_CLASSES = 5  # more different targets than these are taken for numbers
_CODE = re.compile(  # nines, powers of ten, numbers of 1e30 or more, ends of integers, dates
    r"-?(99+(\.99?)?|10{10,}|1e\+\d+|[\d.]+e\+([3-9]\d|\d{3}))|-9|-200|-999\.25|-32768|-?32767|65535"
    r"|-2147483648|2147483647|1899-12-3[01]|19[07]0-01-01|(20|29|99)99-12-31"
)
_SIGN = re.compile("'?[<>=~≤≥≈]{1,2}'?")
_SUMMARY = re.compile(
    r"(grand |sub)?(total|sum|summe|gesamt\w*|insgesamt|somme|suma|totale|mean|average|avg|mittel\w*|"
    r"durchschnitt|moyenne|media)s?\W*",
    re.IGNORECASE,
)
_TOGETHER = (
    "If rows with the same value belong together (a patient, a batch), the expected error is too low without "
    "-p groups COLUMN"
)
_APART = f"labeled rows share values, none of which an unlabeled row has. {_TOGETHER}"
_REPEATED = f"many values, which repeat. {_TOGETHER}"
_RARE = (
    "hardly a text that labeled rows share, so it says little of others. Name it in groups, if rows with the "
    "same one belong together, or in drop_columns"
)


class Notice(NamedTuple):
    """A sentence on a table, and its topic: bounds, codes, total, classes, repeats, groups or sides."""

    topic: str
    text: str


def find_notices(features: pd.DataFrame, target: pd.Series, described: pd.DataFrame) -> list[Notice]:
    """What in a table may not be what it seems.

    Parameters
    ----------
    features : pandas.DataFrame of shape (n_samples, n_features)
        All columns, those that are left out too.
    target : pandas.Series of shape (n_samples,)
        NaN where it is not known.
    described : pandas.DataFrame of shape (n_features, 5)
        From `describe_columns`.

    Returns
    -------
    list of Notice

    Notes
    -----
    - *Bounds.* A column of signs (<, >, =, ~, perhaps in quotes), one of < and > among them.
    - *Codes* for a missing value: see `find_codes`.
    - *Total.* The last row, or the first, if a word such as total or mean is in it and in no other; or if
      its cells are the sums or means of their columns: two cells or more and the most of those that could
      be; one is enough if nothing else is in the row. And the first row, if it has no number, but texts that
      no other has.
    - *Classes.* Two different targets of four or more; or three to five that are whole numbers in a row, each
      in four labeled rows or more on average.
    - *Repeats.* Labeled rows that are equal in all columns, with or without the target, where a column tells
      most rows apart, so that this is no chance. Identifiers do not count.
    - *Groups.* A column whose values repeat among labeled rows, and none of which an unlabeled row has; of
      numbers and dates, unless this may be chance. If no row lacks its target: ten texts or five whole
      numbers that repeat twice and more, and one for every twentieth row; numbers only if rows with the same
      one have like targets, and those with neighbouring ones have not. And a category with more values than
      half the labels.
    - *Sides.* A column with one value, or two numbers, in all unlabeled rows, and others in labeled ones,
      unless this may be chance. What is *known* on one side only, `describe_columns` leaves out.
    """
    is_labeled = target.notna().to_numpy()
    is_identifier = (described["treatment"] + described["warning"]).str.contains("left out: text|identifier")
    telling = features.loc[is_labeled, ~is_identifier.to_numpy()]
    found = {
        "bounds": _bounds(features),
        "codes": _codes(features, target),
        "total": [*_totals(features, target), *_units(features, target, described)],
        "classes": _classes(target[is_labeled]),
        "repeats": _repeats(telling, target[is_labeled]),
        "groups": _groups(features, target, described),
        "sides": _sides(features, is_labeled),
    }
    return [Notice(topic, text) for topic, texts in found.items() for text in texts]


def shorten(name: object) -> str:
    """A name or value for a sentence: on one line, and not longer than `MAX_LETTERS`."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(name))
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 3]}..."


def enumerate_names(names: Iterable[object]) -> str:
    """Names for a sentence: the first ones, if they are many."""
    names = list(names)
    more = f" and {len(names) - MAX_NAMES} others" if len(names) > MAX_NAMES + 1 else ""
    return ", ".join(map(shorten, names[:MAX_NAMES] if more else names)) + more


def count_distinct(frame: pd.DataFrame) -> pd.Series:
    """How many different values each column has: as `nunique`, but fast where there are many of numbers."""
    numbers = frame.select_dtypes("float")
    ordered = np.sort(numbers.to_numpy(dtype=float, na_value=np.nan), axis=0)  # NaN comes last
    counts = (np.diff(ordered, axis=0) > 0).sum(axis=0) + (~np.isnan(ordered[:1])).sum(axis=0)
    others = frame.drop(columns=numbers.columns).nunique()
    return pd.concat([pd.Series(counts, numbers.columns), others])[frame.columns].astype(int)


@cache
def _p_value(a: int, b: int, c: int, d: int, alternative: Any = "two-sided") -> float:
    """Of Fisher's exact test of the counts a, b and c, d: many columns have the same ones."""
    return fisher_exact(np.array([[a, b], [c, d]]), alternative=alternative).pvalue


def one_sided(column: pd.Series, is_labeled: np.ndarray) -> tuple[str, bool]:
    """Whether a column is known for labeled rows only, or for the others only, in words; and if so, whether
    it is of no use.

    It is if no labeled row has a value; and if the shares of rows with a value differ by half or more, with
    p < 0.01 in Fisher's exact test and three rows or more on both sides. From a fifth on it is only said, and
    so is that no unlabeled row has one.
    """
    known = column.notna().to_numpy()
    counts = np.array([[(known & side).sum(), (side & ~known).sum()] for side in (is_labeled, ~is_labeled)])
    if 0 in counts.sum(axis=1) or not known.any():
        return "", False
    labeled, others = counts[:, 0] / counts.sum(axis=1)
    difference = abs(labeled - others)
    is_chance = counts.sum(axis=1).min() < 3 or _p_value(*counts.ravel()) >= 0.01
    if 0 in (labeled, others):
        is_of_no_use = labeled == 0 or (difference >= 0.5 and not is_chance)
        return f"no value in any row with{'' if labeled == 0 else 'out'} a target", is_of_no_use
    if difference < 0.2 or is_chance:
        return "", False
    return f"known in {labeled:.0%} of the rows with a target, {others:.0%} of the others", difference >= 0.5


def find_codes(column: pd.Series) -> dict[str, int]:
    """Values in a column that may stand for a missing one, and how often they occur.

    At an end of a column of numbers, that is at most two values which all repeat and are farther from the
    others than these are wide, if the others are four or more without such a gap among them; half as far is
    enough for zero or a negative value which occurs three times while the others are above zero. Once is
    enough for a number written with nines only (99, -999, 9999.9), of 1e30 or more, a power of ten from 1e10
    on, -9, -200, -999.25 or an end of a computer's range of integers; a negative one of them may also be near
    if no other is negative, it occurs twice and there are ten others. Of dates likewise once: 1 January 1900
    or 1970, 31 December 9999, ...
    """
    is_date = types.is_datetime64_any_dtype(column)
    if not is_date and not types.is_any_real_numeric_dtype(column):
        return {}
    known = column.to_numpy()
    found, times = np.unique(known[pd.notna(known)], return_counts=True)
    values, n = found.astype("datetime64[s]" if is_date else float).astype(float), len(found)
    n_times = np.zeros(n) if is_date else times
    ends = [*range(n)[:8], *range(n)[8:][-8:]]
    written = {place: str(found[place])[:10] if is_date else f"{found[place]:.12g}" for place in ends}
    codes = {place for place, text in written.items() if _CODE.fullmatch(text)}
    may_be_one = [place for place in ends if n_times[place] > 1 or place in codes]
    lows = list(itertools.takewhile(may_be_one.__contains__, range(n)[:4]))
    highs = list(itertools.takewhile(may_be_one.__contains__, range(n)[::-1][:4]))
    sizes = itertools.product(range(len(lows) + 1), range(len(highs) + 1))
    for low, high in sorted(sizes, key=sum, reverse=True):
        outer, inner = lows[:low] + highs[:high], range(low, n - high)
        if not outer or len(set(outer) - codes) > 2 or len(set(inner[:4]) - codes) < 2:
            continue
        far_ones, n_far, rest = values[outer], n_times[outer], values[low : n - high]
        gaps, width = np.maximum(rest[0] - far_ones, far_ones - rest[-1]), rest[-1] - rest[0]
        enough = np.where((far_ones <= 0) & (rest[0] > 0) & (n_far > 2), width / 2, width)
        is_code = np.array([place in codes for place in outer])
        is_dense = len(rest) > 3 and np.diff(rest).max() <= width / 2
        nearby = is_code & (far_ones < 0) & (rest[0] >= 0) & (n_far > 1) & (len(rest) >= 10)
        if ((gaps > enough) & (is_code | is_dense) | nearby).all():
            return {written[place]: int(times[place]) for place in sorted(outer)}
    return {}


def _bounds(features: pd.DataFrame) -> Iterator[str]:
    for name, column in features.select_dtypes(exclude=["number", "datetime", "timedelta"]).items():
        signs = column.dropna().astype(str).unique()
        if any(re.search("[<>≤≥]", sign) for sign in signs) and all(map(_SIGN.fullmatch, signs)):
            yield (
                f"{shorten(name)}: signs ({enumerate_names(signs)}). Where one says that the number beside "
                "it is a bound, empty that number: it counts as a value, or as a label"
            )


def _codes(features: pd.DataFrame, target: pd.Series) -> Iterator[str]:
    where: dict[str, dict[str, int]] = {}
    for name, column in itertools.chain([(target.name, target)], features.items()):
        if found := find_codes(column):
            where.setdefault(",".join(found), {})[str(name)] = sum(found.values())
    for values, columns in where.items():
        times = [f"{shorten(name)} ({n} time{'s' if n > 1 else ''})" for name, n in columns.items()]
        in_target = f"; a row with it in {shorten(target.name)} counts as labeled" * (target.name in columns)
        how = "; ".join(f"{name}={values}" for name in columns) if len(columns) <= MAX_NAMES else values
        yield (
            f"{values.replace(',', ' and ')} {'are' if ',' in values else 'is'} far from all other values of "
            f"{enumerate_names(times)}{in_target}. If this stands for a missing value: "
            f"-p missing_values {json.dumps(how, ensure_ascii=False)}"
        )


def _totals(features: pd.DataFrame, target: pd.Series) -> Iterator[str]:
    table = features.assign(**{str(target.name): target})
    numbers = table.select_dtypes("float")
    for place, which in ((len(target) - 1, "last"), (0, "first")):
        row, others = numbers.iloc[place], numbers.iloc[1:] if place == 0 else numbers.iloc[:-1]
        is_frequent = (others.count() - (others == 0).sum()).ge(3)
        span = others.max() - others.min()
        can_be_one = row.notna() & is_frequent & (span > 0)
        beside = table.iloc[place].drop(row.index[can_be_one]).dropna()
        words = [word for word in map(str, beside) if _SUMMARY.fullmatch(word)]
        words = [word for word in words if table.isin([word]).to_numpy().sum() == 1]
        near = [np.isclose(row, others.sum(), rtol=1e-6, atol=0), (row - others.mean()).abs() < span / 1000]
        n_true = max(int((is_near & can_be_one).sum()) for is_near in near)
        if words or (n_true > can_be_one.sum() / 2 and (n_true > 1 or beside.empty)):
            counts_as = "labeled" if pd.notna(target.iloc[place]) else "further"
            yield (
                f"the {which} row{f' ({shorten(words[0])})' if words else ''} looks like a total or mean of "
                f"the others. If so, take it out of the file: it counts as a {counts_as} row"
            )


def _units(features: pd.DataFrame, target: pd.Series, described: pd.DataFrame) -> Iterator[str]:
    first = features.iloc[0].dropna()
    if first.empty or pd.notna(target.iloc[0]) or (described["kind"][first.index] != "category").any():
        return
    below = features[first.index].iloc[1:]
    in_brackets = first.astype(str).str.fullmatch(r"[\[(<].*[\])>]").all()
    repeat = len(first) > 1 and (below.nunique() <= below.count() / 2).all()
    if not (below == first).any(axis=None) and (in_brackets or repeat):
        yield (
            f"the first row ({enumerate_names(first)}) holds no number, and texts that no other row has: if "
            "it belongs to the names, or holds units, delete its line"
        )


def _classes(known: pd.Series) -> Iterator[str]:
    values = np.setdiff1d(known, [float(code) for code in find_codes(known)])
    in_a_row = bool((values % 1 == 0).all() and (np.diff(values) == 1).all())
    are_few = 2 < len(values) <= MAX_CLASSES and in_a_row and len(known) >= 4 * len(values)
    if are_few or (len(values) == 2 and len(known) > 3):
        listed = ", ".join(f"{value:.6g}" for value in values)
        yield (
            f"the target has {len(values)} different values ({listed}): classes? This is for numbers, and "
            "estimates will lie between them"
        )


def _repeats(features: pd.DataFrame, target: pd.Series) -> Iterator[str]:
    features = features[features.notna().mean(axis=1) > 0.5]
    if features.size == 0:
        return
    may_repeat = features.select_dtypes("float").sum(axis=1).duplicated(keep=False)  # faster than all columns
    with_target = features.assign(**{"": target.loc[features.index]})
    for table, but in ((with_target, ""), (features, " but the target")):
        n_repeated = int(table[may_repeat].duplicated(keep=False).sum())
        if not n_repeated:
            continue
        n = len(table) - int(table[may_repeat].duplicated().sum())
        distinct = (count_distinct(table) + table.isna().any()).to_numpy(dtype=float)
        # Of n different rows, drawn from v possible ones, n^2 / 2v pairs are equal by chance; and so many of
        # a column where few are. Columns of few values may depend on each other: one must tell most apart.
        possible = np.where(distinct > n / 2, n**2 / np.maximum(2 * (n - distinct), 1), distinct)
        if distinct.max() > n / 2 and np.log(possible).sum() > np.log(5 * n**2):
            yield (
                f"{n_repeated} labeled rows are equal to another one in all columns{but}: a held-out row is "
                "then known from its twin, and the expected error is too low. Leave the repeats out, or say "
                "which rows belong together by -p groups COLUMN"
            )
            return


def _groups(features: pd.DataFrame, target: pd.Series, described: pd.DataFrame) -> Iterator[str]:
    is_labeled = target.notna().to_numpy()
    share, n_labels = is_labeled.mean(), int(is_labeled.sum())
    numbers = features[is_labeled].select_dtypes("number", exclude="timedelta")
    no_names = {*numbers.columns[(numbers % 1 > 0).any()], *features.select_dtypes("bool")}
    found: dict[str, list[object]] = {}
    parts = zip(features.items(), described["kind"], described["treatment"], strict=True)
    for (name, column), kind, treatment in parts:
        if name in no_names:
            continue
        values, is_text = column.to_numpy(), kind == "category"
        labeled, others = (values[side & pd.notna(values)].tolist() for side in (is_labeled, ~is_labeled))
        if (n_values := len(set(labeled))) < 2:
            continue
        per_value = len(labeled) / n_values
        if others and per_value >= 1.5 and set(labeled).isdisjoint(others):
            sizes = column.value_counts().to_numpy()
            # by chance all rows with the same value are labeled, or none
            p_value = np.exp(np.log(share**sizes + (1 - share) ** sizes).sum())
            said = _APART if is_text or p_value < 0.01 else ""
        elif is_labeled.all() and per_value >= 2 and n_values >= max(10 if is_text else 5, n_labels / 20):
            said = _REPEATED if is_text or _agree(column.dropna(), target) else ""
        else:
            is_used = is_text and not treatment.startswith("left out")
            said = _RARE if is_used and n_values >= 5 and n_values > n_labels / 2 else ""
        found.setdefault(said, []).append(name)
    for said, names in found.items():
        if said:
            yield f"{enumerate_names(names)}: {said}"


def _agree(column: pd.Series, target: pd.Series) -> bool:
    """Whether rows with the same value have like targets (p < 0.01), and those next to each other do not."""
    known = target[column.index]
    by_value = known.groupby(column)
    means, own_mean = by_value.mean(), by_value.transform("mean")
    free, free_within = len(means) - 1, len(known) - len(means)
    ratio = own_mean.var() / free / max((known - own_mean).var() / free_within, np.finfo(float).tiny)
    is_rough = (means.diff() ** 2).mean() > means.var()
    return bool(is_rough and f_distribution.sf(ratio, free, free_within) < 0.01)


def _sides(features: pd.DataFrame, is_labeled: np.ndarray) -> Iterator[str]:
    n_values = count_distinct(features[~is_labeled])
    for name in n_values.index[n_values.between(1, 2)]:
        column, others = features[name], features[name][~is_labeled].dropna()
        few = others.unique()
        if len(few) < min(3 if types.is_numeric_dtype(column) else 2, len(others) - 1):
            labeled = column[is_labeled].dropna()
            n_same = int(labeled.isin(few).sum())
            if _p_value(len(others), 0, n_same, len(labeled) - n_same, alternative="greater") < 0.01:
                yield (
                    f"{shorten(name)}: {' or '.join(map(shorten, few))} in all {len(others)} unlabeled rows "
                    f"that have a value, in {n_same} of {len(labeled)} labeled ones. If it is known only "
                    "after the target: drop_columns"
                )
