"""What the notebooks share: one clear error for a bad parameter, and a record of results."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from bs4 import BeautifulSoup

from dmls2r_lite.command.pages import markdown_to_html, markdown_to_text
from dmls2r_lite.data import load_dataset
from dmls2r_lite.data.catalog import DATASETS, FROM_UCI
from dmls2r_lite.teaching import notebook
from dmls2r_lite.teaching.notebook import (
    RESULTS_MIME,
    answer,
    begin,
    check_parameters,
    escape_markdown,
    introduce,
    record_results,
    say,
    write_number,
)

GOOD = {
    **{"dataset": "toy", "drop_columns": "", "n_labeled": 20, "n_unlabeled": 200, "seed": 0, "n_seeds": 5},
    **{"k": 5, "n_epochs": 30, "boundary": 1.2, "margin": 0.4, "temperature": 10.0},
    "mining_mode": "absolute",
}


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in FROM_UCI])
def test_loads_the_dataset(name):
    assert check_parameters(**GOOD | {"dataset": name}).name == name


def test_any_but_the_dataset_may_be_left_out():
    for left_out in GOOD.keys() - {"dataset"}:
        assert check_parameters(**{k: v for k, v in GOOD.items() if k != left_out}).name == "toy"
    assert check_parameters(dataset="toy").name == "toy"
    assert list(check_parameters(dataset="toy", drop_columns=" x1 ,").features) == ["x2"]


def test_groups_are_no_feature(tmp_path):
    """Also where the column would be left out, as a text that hardly repeats."""
    path = tmp_path / "t.csv"
    rows = [f"p{i // 2},{i / 7:.3f},{'' if i > 19 else i}" for i in range(60)]
    path.write_text("\n".join(["patient,x,y", *rows]))
    plain = check_parameters(dataset=str(path), target="y")
    assert [notice.topic for notice in plain.notices] == ["groups"]
    data = check_parameters(dataset=str(path), target="y", groups="patient")
    assert list(data.features) == ["x"]
    assert data.groups.tolist() == [f"p{i // 2}" for i in range(60)]
    assert (data.notices, list(data.columns.index)) == ((), ["x"])
    assert len(data.with_known_targets().groups) == 20
    with pytest.raises(ValueError, match=r"groups must name a column of t .*did you mean patient"):
        check_parameters(dataset=str(path), target="y", groups="Patients")


@pytest.mark.parametrize("n_labels", [0, 4])
def test_one_number_of_labels_is_asked_for(tmp_path, n_labels):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y", *(f"{i},{i * i if i < n_labels else ''}" for i in range(9))]))
    message = rf"target must have .* in 5 rows or more, but y has {n_labels}\b.*; dmls2r choose says"
    with pytest.raises(ValueError, match=message):
        check_parameters(dataset=str(path), target="y")


@pytest.mark.parametrize(
    "edge",
    [
        {"n_labeled": 2, "k": 200, "margin": 1.2},
        {"n_labeled": 199, "margin": 0, "temperature": -0.5},  # 199 + 200 leave one of 400 rows for the test
        {"n_labeled": np.int64(10), "boundary": 40, "margin": 35, "temperature": 0},
    ],
)
def test_edges_are_allowed(edge):
    check_parameters(**GOOD | edge)


@pytest.mark.parametrize(
    ("change", "message"),
    [  # what single numbers may be is tested with the table of rules
        ({"dataset": "iris"}, "dataset must be one of boston, superconductivity, "),
        ({"dataset": 3}, "dataset must be a string, got 3"),
        ({"target": "x3"}, "target must name a column of toy (x1, x2, y), got 'x3'"),
        ({"drop_columns": ["x1"]}, "drop_columns must be a string, got ['x1']"),
        ({"drop_columns": "x3"}, "drop_columns must name a column of toy (x1, x2), got 'x3'"),
        ({"drop_columns": "x1,x2"}, "must leave at least one column"),
        ({"output_dir": __file__}, f"output_dir must be the name of a folder, got {__file__!r}"),
        ({"temperature": "10"}, "temperature must be a finite number, got '10'"),
        ({"n_label": 20}, "unknown parameter 'n_label'"),
        ({"n_labeled": 200}, "must be below 400, the number of rows of toy"),
        ({"k": 201}, "k must not exceed n_unlabeled, 200, got 201"),
    ],
)
def test_errors(change, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        check_parameters(**GOOD | change)


OF_05 = {"target": "y", "groups": "", "coverage": 0.8, "n_labeled": 30, "seed": 0}
FEW = "coverage must not exceed N / (N + 1), 0.857 with 6 labels besides a fold, got 0.95: that takes 19 lab"


@pytest.mark.parametrize(
    ("n_known", "group", "change", "message"),
    [
        (24, "abcdefgh", {"coverage": 0.95}, ""),
        (8, "abcdefgh", {"coverage": 0.95}, FEW),
        (90, "abcdefgh", {"coverage": 0.95, "n_labeled": 8}, FEW),
        (23, "abcdefgh", {"coverage": 0.95}, "0.947 with 18 labels besides a fold, got 0.95"),
        (25, "abcdefgh", {"coverage": 0.97}, "that takes 33 labels"),
        (20, "aaaaaaab", {"groups": "g"}, "with 2 labels besides a fold, got 0.8"),
        (
            20,
            "aaaaaaaa",
            {"groups": "g"},
            "groups must be at least as many among labeled rows as folds, 2, got 1",
        ),
        (20, "abc efgh", {"groups": "g"}, "groups must be known for every labeled row, got none for row 3"),
        (90, "abc efgh", {"groups": "g"}, "groups must be known for every labeled row, got none for row"),
        (3 + 2, "abcdefg ", {"groups": "g"}, ""),
        (90, "abcdefgh", {"n_labeled": 4}, ""),  # which notebook 05 refuses in words of its own
    ],
)
def test_labels_and_groups_suffice_for_notebook_05(tmp_path, n_known, group, change, message):
    """All that decides about it is known before anything runs; rows without a label need no group."""
    path = tmp_path / "t.csv"
    rows = [f"{group[i % 8].strip()},{i / 7:.3f},{i / 3 if i < n_known else ''}" for i in range(90)]
    path.write_text("\n".join(["g,x,y", *rows]))
    with pytest.raises(ValueError, match=re.escape(message)) if message else nullcontext():
        check_parameters(dataset=str(path), **OF_05 | change)


def test_named_datasets_keep_some_targets_in_notebook_05():
    given = OF_05 | {"dataset": "toy", "target": "", "coverage": 0.95}
    with pytest.raises(ValueError, match=re.escape(FEW)):
        check_parameters(**given | {"n_labeled": 8})
    assert check_parameters(**given | {"n_labeled": 24}).name == "toy"


@pytest.fixture
def shown(monkeypatch):
    calls = []
    monkeypatch.setattr(notebook, "display", lambda bundle, raw: calls.append((bundle, raw)))
    return calls


def test_stores_plain_numbers_and_shows_text(shown):
    record_results(test_mae=np.float64(4.25), n_pairs=np.int64(380), name="toy", share=np.float32(0.5))
    ((bundle, raw),) = shown
    assert raw  # a bundle of MIME types, not an object to print
    assert bundle["text/plain"] == "test_mae = 4.25\nn_pairs = 380\nname = toy\nshare = 0.5"
    results = {"test_mae": 4.25, "n_pairs": 380, "name": "toy", "share": 0.5}
    assert json.loads(json.dumps(bundle)) == {RESULTS_MIME: results, "text/plain": bundle["text/plain"]}


def test_finding_says_results_with_units(shown):
    sentence = (
        "{a_difference} for {model}, {b_difference} (in {unit}); {coverage_80} hold; {c_percent}; {far}."
    )
    results = {"a_difference": 0.03456, "b_difference": -123456.7, "model": "ridge", "coverage_80": 0.836}
    record_results(sentence, "EUR", **results, c_percent=-4.4, far="y = {n} in row 34")
    ((bundle, _),) = shown
    finding = "+0.0346 for ridge, -123,000 (in EUR); 84 % hold; -4.4 %; y = {n} in row 34."
    assert bundle[RESULTS_MIME]["finding"] == finding
    assert bundle["text/plain"].startswith(f"finding = {finding}\na_difference = 0.03456\n")


def test_what_json_cannot_hold_is_an_error(shown):
    with pytest.raises(TypeError, match="not JSON serializable"):
        record_results(array=np.zeros(2).tolist, test_mae=1.0)
    assert shown == []


def test_answer_is_folded_and_still_markdown():
    folded = BeautifulSoup(markdown_to_html(answer("It is **two**.").data), "html.parser").details
    assert folded.summary.get_text() == "Answer"
    assert folded.strong.get_text() == "two"


MARKUP = "<img src=q onerror=x()> [a](http://b.c) ![a](d) `e` *f* _g_ **h** $i$ | j ~~k~~ www://l \\ &lt; n_o"


@pytest.mark.parametrize(
    "text", [MARKUP, "# a", "- b", "1. c", "+ d", "=", "> e\n\n# f", "a [1000 USD]", "C6H6(GT)"]
)
def test_escaped_text_is_shown_as_it_is(text):
    html = markdown_to_html(escape_markdown(text))
    page = BeautifulSoup(html, "html.parser")
    assert [tag.name for tag in page.find_all(True)] == ["p"]
    assert page.get_text().split() == text.split()
    assert markdown_to_text(f"x {escape_markdown(text)}") == " ".join(f"x {text}".split())


@pytest.mark.parametrize(
    ("value", "margin", "text"),
    [
        (4382.1, 351.4, "4,380 ± 350"), (49.77, 6.87, "49.8 ± 6.9"), (0.00123, 0.00045, "0.00123 ± 0.00045"),
        (4382.1, None, "4,380"), (1234567.0, None, "1,230,000"), (0.0, None, "0"), (-0.5, None, "-0.500"),
        (12.0, 0.0, "12.0 ± 0.0"), (2.5e-7, 1e-8, "2.5e-07 ± 1e-08"), (np.nan, None, "nan"),
    ],
)  # fmt: skip
def test_numbers_to_be_read(value, margin, text):
    assert write_number(value, margin) == text
    assert write_number(3.32, 3.0, sign=True) == "+3.3 ± 3.0"


def test_introduction_of_a_dataset():
    data = replace(load_dataset("toy"), name="<b>toy</b>", note="a *b* c.")
    text = markdown_to_text(introduce(data))
    assert text == f"<b>toy</b>: a *b* c. Source: {data.source}."
    assert introduce(load_dataset("toy")).startswith("**toy**: ")


def test_begin_takes_what_it_knows_from_a_namespace():
    namespace = {**GOOD, "np": np, "x_few": 3, "n_labeled": 30}
    assert begin(namespace, needs_targets=True).name == "toy"
    with pytest.raises(ValueError, match="n_epochs must be an integer of 2 or more, got 1"):
        begin({**namespace, "n_epochs": 1})
    with pytest.raises(ValueError, match="k must not exceed n_unlabeled, 200, got 1000"):
        begin(namespace, k=1000)


def test_say_puts_numbers_into_a_sentence(monkeypatch):
    shown = []
    monkeypatch.setattr(notebook, "display", shown.append)
    say("In {n} cells by {change:+.1%}.", n=3, change=-0.051)
    assert shown[0].data == "In 3 cells by -5.1%."
    folded = answer("{verdict}: compare {a}.", verdict="Helped", a="rows").data
    assert folded == "<details><summary>Answer</summary>\n\nHelped: compare rows.\n\n</details>"
    assert "{a}" in answer("Braces of $x_{a}$ stay where no number is given: {a}.").data
