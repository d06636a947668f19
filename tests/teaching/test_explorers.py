"""Figures to play with: what they show, and when they appear. test_browser.py plays with them."""

import numpy as np
import pytest
from explorer_cells import explorer_of
from matplotlib.figure import Figure

from dmls2r_lite.study.reproduction import judge_benchmark
from dmls2r_lite.teaching import controls
from dmls2r_lite.teaching.plotting import VERDICT_LOOKS

PAIRS, MINING, EPOCHS, TRIALS, CHOICES = map(explorer_of, ("01", "02", "03", "04", "09"))
SEEN = MINING.draw.__globals__
Y, Y_UNLABELED, CODES, POINTS = (SEEN[name] for name in ("y_labeled", "y_unlabeled", "codes", "points"))
N, M, VARIANCES = len(Y), len(Y_UNLABELED), SEEN["variances"]


@pytest.mark.parametrize("explorer", [PAIRS, MINING, EPOCHS, TRIALS, CHOICES])
def test_every_control_changes_the_picture(explorer):
    png, text = explorer.picture()
    assert png.startswith(b"\x89PNG")
    assert len(text) > 30
    assert explorer.picture() == explorer.picture()
    for control, values in explorer.controls.items():
        others = [value for value in values if value != explorer.start[control]]
        assert any(explorer.picture(**{control: value})[0] != png for value in others[-3:]), control


def test_pairs():
    assert "2 labels, which make 2 ordered pairs" in PAIRS.picture(N=2)[1]
    assert "error is 4 on them, 8 on test samples (m)" in PAIRS.picture(N=4)[1]
    assert PAIRS.start == {"N": 6}


@pytest.mark.parametrize("mode", ["absolute", "signed"])
@pytest.mark.parametrize(("anchor", "temperature"), [(1, 0.0), (4, 2.0), (N, 50.0)])
def test_mining_by_loops(mode, anchor, temperature):
    """What the sentence says, computed sample by sample."""
    row = sorted(range(N), key=lambda a: Y[a])[anchor - 1]
    size = [abs(f) if mode == "absolute" else f for f in SEEN["differences"][row].tolist()]
    ranked = sorted(range(M), key=lambda u: size[u])
    boundary, margin, k = 0.7, 0.3, 4
    gaps, losses = [], []
    for chosen, sign, limit in ((ranked[:k], 1, boundary - margin), (ranked[-k:], -1, boundary)):
        gaps.append(sum(abs(Y_UNLABELED[u] - Y[row]) for u in chosen) / k)
        squares = [[(a - b) ** 2 for a, b in zip(CODES[row], CODES[N + u], strict=True)] for u in chosen]
        d = [sum(some) ** 0.5 for some in squares]
        weights = [np.exp(temperature * sign * (v - limit)) for v in d]
        costs = [max(sign * (v - limit), 0) for v in d]
        losses.append(sum(w * c for w, c in zip(weights, costs, strict=True)) / sum(weights))
    loss = {"boundary": boundary, "margin": margin, "temperature": temperature}
    _, text = MINING.picture(anchor=anchor, mode=mode, k=k, **loss)
    off = f"positives are off by {gaps[0]:.3g} on average, its negatives by {gaps[1]:.3g} (m; 4 each)"
    assert off in text
    assert f"Loss of the positives {losses[0]:.3f}, of the negatives {losses[1]:.3f}." in text


def test_mining_draws_the_plane_of_principal_components_and_stays_within_what_makes_sense():
    figure = Figure()
    MINING.draw(figure, **MINING.start)
    centred = CODES - CODES.mean(axis=0)
    expected = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    unlabeled = figure.axes[1].collections[0].get_offsets()
    np.testing.assert_allclose(np.abs(unlabeled), np.abs(expected[N:]))  # a direction has no sign
    assert (max(MINING.controls["k"]), MINING.start["boundary"]) == (M, 1.25)  # which is no step
    beyond, within = (MINING.picture(boundary=0.1, margin=margin)[1] for margin in (2.0, 0.1))
    assert beyond == within


def test_epochs():
    epochs = [f"epoch {number} (step {2 - number % 2})" for number in range(1, 5)]
    assert EPOCHS.controls["moment"] == ["start", *epochs]
    assert EPOCHS.picture()[1] == "Epoch 4 (step 2): the test MAE is 1.5 (m). Before this epoch it was 2."
    assert EPOCHS.picture(moment="start")[1] == "Start: the test MAE is 5 (m)."


def test_trials_have_the_verdicts_of_the_benchmark_and_their_marks():
    assert TRIALS.controls["N"] == [10, 20, 50]  # at 100 not all methods have run
    assert TRIALS.start == {"dataset": "boston", "method": "DML-S2R", "N": 10}  # there is no N = 6
    figure, cell = Figure(), ("superconductivity", 20)
    text = TRIALS.draw(figure, dataset=cell[0], N=cell[1], method="ridge")
    shipped, references = (TRIALS.draw.__globals__[name] for name in ("shipped", "references"))
    rows = {name: judge_benchmark(shipped, "ridge", name).loc[cell] for name in references if name != "ridge"}
    verdicts = [row["verdict"] for row in rows.values()]
    better, worse = sum(verdict.startswith("helped") for verdict in verdicts), verdicts.count("hurt")
    mae = shipped.query("dataset == @cell[0] and n_labeled == @cell[1] and method == 'ridge'")["mae"].mean()
    assert f"mean MAE of {mae:.3g} (K): shown better than {better}, worse than {worse} of 8 others" in text

    (ax,) = figure.axes
    names = [label.get_text() for label in ax.get_yticklabels()]
    drawn = {}
    for line in ax.lines:
        for x, place in line.get_xydata() if line.get_label() in VERDICT_LOOKS else ():
            drawn[names[int(place)]] = (line.get_label(), line.get_marker(), line.get_color(), x)
    for name, row in rows.items():
        color, marker = VERDICT_LOOKS[row["verdict"]]
        assert drawn[name] == (row["verdict"], marker, color, pytest.approx(row["mean_difference"]))


def test_choices_say_what_the_covariance_says_and_mark_rows():
    left = VARIANCES["random"].mean(axis=1)
    texts = [CHOICES.picture(labels=labels, choice="random")[1] for labels in range(5)]
    for labels, text in enumerate(texts):
        assert f"{labels} labels: {left[labels]:.3f} of the variance" in text
    for labels, text in enumerate(texts[:-1]):
        assert f"The next label takes {left[labels] - left[labels + 1]:.3f} away" in text
    assert "next" not in texts[-1]
    figure = Figure()
    CHOICES.draw(figure, choice="random", labels=2)
    space = figure.axes[0]
    assert [text.get_text() for text in space.texts] == ["1", "2"]
    np.testing.assert_array_equal([text.xy for text in space.texts], POINTS[[11, 10]])
    np.testing.assert_array_equal(space.collections[-1].get_offsets(), [POINTS[9]])  # the star
    np.testing.assert_array_equal(space.collections[0].get_array(), VARIANCES["random"][2])


@pytest.mark.parametrize(("values", "start"), [({"a": [1]}, {"zz": 1}), ({"a": [1], "zz": []}, {"a": 1})])
def test_a_control_without_values(values, start):
    with pytest.raises(ValueError, match=r"start must name controls, .* have a value, got \['zz'\]"):
        controls.Explorer(lambda figure, **chosen: "", values, start)


def test_nothing_to_play_with_where_nobody_is(monkeypatch, capsys):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    PAIRS.show()
    assert capsys.readouterr().out == f"{controls.INSTEAD}\n"
    monkeypatch.setitem(controls.sys.modules, "google.colab", object())
    assert controls._has_reader()


def test_controls_in_a_live_notebook(monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.setenv("JPY_SESSION_NAME", "/some/notebook.ipynb")
    shown = []
    monkeypatch.setattr(controls, "display", shown.append)
    monkeypatch.setattr(controls.gc, "freeze", lambda: None)
    for explorer in (MINING, TRIALS):
        explorer.show()
        assert shown[-1].sentence == explorer.picture()[1]
    form = shown[-1]
    kinds = [(made["name"], made["menu"]) for made in form.controls]
    assert kinds == [("dataset", True), ("method", True), ("N", False)]
    methods, sizes = (made["values"] for made in form.controls[1:])
    assert (methods, sizes) == (TRIALS.controls["method"], ["10", "20", "50"])
    before = form.picture
    assert before.startswith("data:image/png;base64,")
    form.places = {**form.places, "N": 2}
    assert form.picture != before
    assert form.sentence == TRIALS.picture(N=50)[1]
    form.places = {**form.places, "method": methods.index("COREG")}
    assert form.sentence == TRIALS.picture(N=50, method="COREG")[1]
