"""Figures to play with: what they show, and when they appear. test_browser.py plays with them."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from dmls2r_lite.study.benchmark import shipped_trials
from dmls2r_lite.study.reproduction import judge_benchmark
from dmls2r_lite.teaching import explorers
from dmls2r_lite.teaching.plotting import VERDICT_LOOKS

RNG = np.random.default_rng(0)
N, M = 6, 15
Y, Y_UNLABELED = RNG.uniform(0, 50, N), RNG.uniform(0, 50, M)
CODES = RNG.uniform(size=(N, 4)), RNG.uniform(size=(M, 4))
DIFFERENCES = torch.from_numpy(Y[:, None] - Y_UNLABELED + RNG.normal(0, 3, (N, M)))


@pytest.fixture(scope="module")
def pairs():
    fits = {n: (Y[:n] + n, Y_UNLABELED - 2 * n) for n in (2, 4, 6)}
    return explorers.pairs_explorer(fits, Y, Y_UNLABELED, "m")


@pytest.fixture(scope="module")
def mining():
    start = {"k": 3, "mode": "absolute", "boundary": 1.2, "margin": 0.4, "temperature": 10.0}
    points = RNG.uniform(size=(N, 2)), RNG.uniform(size=(M, 2))
    return explorers.mining_explorer(DIFFERENCES, CODES, points, (Y, Y_UNLABELED), "m", start)


@pytest.fixture(scope="module")
def epochs():
    codes = [RNG.uniform(size=(N + M, 4)) for _ in range(5)]
    is_labeled = np.arange(N + M) < N
    return explorers.epochs_explorer(codes, [5, 4, 3, 2, 1.5], np.append(Y, Y_UNLABELED), is_labeled, "m")


@pytest.fixture(scope="module")
def trials():
    names = shipped_trials()["dataset"].unique()
    return explorers.trials_explorer(
        shipped_trials(), dict.fromkeys(names, "u"), {"dataset": "boston", "N": 3}
    )


@pytest.mark.parametrize("name", ["pairs", "mining", "epochs", "trials"])
def test_every_control_changes_the_picture(name, request):
    explorer = request.getfixturevalue(name)
    png, text = explorer.picture()
    assert png.startswith(b"\x89PNG")
    assert len(text) > 30
    assert explorer.picture() == explorer.picture()
    for control, values in {**explorer.sliders, **explorer.menus}.items():
        others = [value for value in values if value != explorer.start[control]]
        assert others, control
        assert any(explorer.picture(**{control: value})[0] != png for value in others[-3:]), control


def test_pairs(pairs):
    assert "2 labels, which make 2 ordered pairs" in pairs.picture(N=2)[1]
    assert "error is 4 on them, 8 on test samples (m)" in pairs.picture(N=4)[1]
    assert pairs.start == {"N": 6}


@pytest.mark.parametrize("mode", ["absolute", "signed"])
@pytest.mark.parametrize("anchor", [1, 4, N])
def test_mining_by_loops(mining, mode, anchor):
    """What the sentence says, computed sample by sample."""
    row = sorted(range(N), key=lambda a: Y[a])[anchor - 1]
    size = [abs(f) if mode == "absolute" else f for f in DIFFERENCES[row].tolist()]
    ranked = sorted(range(M), key=lambda u: size[u])
    boundary, margin, temperature, k = 0.7, 0.3, 2.0, 4
    gaps, losses = [], []
    for chosen, sign, limit in ((ranked[:k], 1, boundary - margin), (ranked[-k:], -1, boundary)):
        gaps.append(sum(abs(Y_UNLABELED[u] - Y[row]) for u in chosen) / k)
        d = [
            sum((a - b) ** 2 for a, b in zip(CODES[0][row], CODES[1][u], strict=True)) ** 0.5 for u in chosen
        ]
        weights = [np.exp(temperature * sign * (v - limit)) for v in d]
        costs = [max(sign * (v - limit), 0) for v in d]
        losses.append(sum(w * c for w, c in zip(weights, costs, strict=True)) / sum(weights))
    _, text = mining.picture(
        anchor=anchor, mode=mode, k=k, boundary=boundary, margin=margin, temperature=temperature
    )
    assert (
        f"its 4 positives are off by {gaps[0]:.3g} on average, its 4 negatives by {gaps[1]:.3g} (m)" in text
    )
    assert f"Loss of the positives {losses[0]:.3f}, of the negatives {losses[1]:.3f}." in text


def test_mining_stays_within_what_makes_sense(mining):
    assert max(mining.sliders["k"]) == M
    assert "Loss of the positives" in mining.picture(boundary=0.1, margin=2.0)[1]  # margin up to the boundary


def test_epochs(epochs):
    moments = epochs.sliders["moment"]
    assert moments == ["start", "epoch 1, step 1", "epoch 1, step 2", "epoch 2, step 1", "epoch 2, step 2"]
    assert epochs.picture()[1].startswith(
        "Epoch 2, step 2: the test MAE is 1.5 (m). Before this step it was 2."
    )
    assert epochs.picture(moment="start")[1] == "Start: the test MAE is 5 (m)."


def test_trials_have_the_verdicts_of_the_benchmark(trials):
    assert trials.sliders["N"] == [10, 20, 50]  # at 100 not all methods have run
    assert trials.start == {"dataset": "boston", "method": "DML-S2R", "N": 10}  # there is no N = 3
    _, text = trials.picture(dataset="superconductivity", N=20, method="ridge")
    shipped = shipped_trials()
    verdicts = [
        judge_benchmark(shipped, "ridge", name).loc[("superconductivity", 20), "verdict"]
        for name in explorers.REFERENCES
        if name != "ridge"
    ]
    better, worse = sum(verdict.startswith("helped") for verdict in verdicts), verdicts.count("hurt")
    part = shipped.query("dataset == 'superconductivity' and n_labeled == 20")
    mae = part[part["method"] == "ridge"]["mae"].mean()
    assert f"mean MAE of {mae:.3g} (u): shown better than {better}, worse than {worse} of 7 others" in text


def test_marks_of_the_explorer_are_those_of_the_verdicts(trials):
    figure = Figure()
    trials.draw(figure, dataset="superconductivity", method="DML-S2R", N=10)
    (ax,) = figure.axes
    names = [label.get_text() for label in ax.get_yticklabels()]
    drawn = {}
    for line in ax.lines:
        for x, place in line.get_xydata() if line.get_label() in VERDICT_LOOKS else ():
            drawn[names[int(place)]] = (line.get_label(), line.get_marker(), line.get_color(), x)
    for name in explorers.REFERENCES:
        row = judge_benchmark(shipped_trials(), "DML-S2R", name).loc[("superconductivity", 10)]
        color, marker = VERDICT_LOOKS[row["verdict"]]
        assert drawn[name] == (row["verdict"], marker, color, pytest.approx(row["mean_difference"]))


@pytest.mark.parametrize("temperature", [0.0, 3.0, 50.0, -0.5])
def test_weights_and_projections_by_hand(temperature, mining):
    """The figure's losses and planes, without the libraries that compute them."""
    distances = [np.array([0.2, 0.9, 1.4]), np.array([0.1, 1.0, 1.5])]
    losses = explorers._draw_costs(Figure().subplots(), distances, 1.2, 0.4, temperature)
    for part, sign, limit, loss in zip(distances, (1, -1), (0.8, 1.2), losses, strict=True):
        weights = np.exp(temperature * sign * part)
        costs = np.maximum(sign * (part - limit), 0)
        assert loss == pytest.approx((weights * costs).sum() / weights.sum())

    figure = Figure()
    mining.draw(figure, **mining.start)
    everybody = np.concatenate(CODES)
    centred = everybody - everybody.mean(axis=0)
    expected = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    unlabeled = figure.axes[1].collections[0].get_offsets()
    np.testing.assert_allclose(np.abs(unlabeled), np.abs(expected[N:]))  # a direction has no sign


def test_nothing_to_play_with_where_nobody_is(pairs, monkeypatch, capsys):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    pairs.show()
    assert capsys.readouterr().out == f"{explorers.INSTEAD}\n"


def test_controls_in_a_live_notebook(trials, monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.setenv("JPY_SESSION_NAME", "/some/notebook.ipynb")
    shown = []
    monkeypatch.setattr(explorers, "display", shown.append)
    monkeypatch.setattr(explorers.gc, "freeze", lambda: None)
    trials.show()
    (form,) = shown
    assert [(made["name"], made["kind"]) for made in form.controls] == [
        ("dataset", "menu"), ("method", "menu"), ("N", "slider"),
    ]  # fmt: skip
    methods, sizes = (made["values"] for made in form.controls[1:])
    assert (methods, sizes) == (trials.menus["method"], ["10", "20", "50"])
    before = form.picture
    assert before.startswith("data:image/png;base64,")
    assert form.sentence == trials.picture()[1]
    form.places = {**form.places, "N": 2}
    assert form.picture != before
    assert form.sentence == trials.picture(N=50)[1]
    form.places = {**form.places, "method": methods.index("COREG")}
    assert form.sentence == trials.picture(N=50, method="COREG")[1]


def test_colab_is_a_live_notebook(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setitem(explorers.sys.modules, "google.colab", object())
    assert explorers._has_reader()
