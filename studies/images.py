"""The trials of notebook 08, on 20 draws of its images: `python studies/images.py OUTPUT.csv`.

Images, targets and encoder are those that the notebook builds by hand. Beside both steps, step 1 alone (also
with half the epochs) and a placebo, step 1 that is not told who belongs to whom, and a plain CNN: the encoder
and a linear layer, with the optimizer, the number of gradient steps and the images a step of step 1 alone.
"""

import sys
from pathlib import Path

import click
import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.files import write_whole
from dmls2r_lite.foundation.scores import pairs_from_numbers
from dmls2r_lite.rivals.placebos import null_loss
from dmls2r_lite.rivals.twins import MLPRegressor
from dmls2r_lite.training import PairwiseStep

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "teaching"))
from test_hand_built import hand_built

N_LABELED, N_UNLABELED, N_TEST, N_EPOCHS = 50, 1000, 500, 10
TARGETS = ("angle", "ink growth")
SEEDS = range(100, 120)


class UnpairedStep(PairwiseStep):
    """Step 1 on the same batches, with every first member of a pair beside every second one."""

    name, stacks = "metric", False  # it takes the place of step 2, and step 1 is left out

    def loss(self, network, data, numbers):
        """Two regressions, on the first members and on the second: see notebook 01."""
        i, j = pairs_from_numbers(numbers, len(data.x_labeled))
        (g, h), y = network.scores(data.x_labeled), data.y_labeled
        return ((g[i] - y[i])[:, None] + (h[j] + y[j])[None]).square().mean()


def run_seed(seed: int) -> list[dict[str, object]]:
    """Train all ways on one draw of images; a row per method and target."""
    by_hand = hand_built("08")
    images, targets, _ = by_hand.make_images(N_LABELED + N_UNLABELED, N_TEST, seed)
    X_train, X_test = np.split(images, [N_LABELED + N_UNLABELED])
    y_train, y_test = np.split(targets, [N_LABELED + N_UNLABELED])
    X_labeled, y_labeled = X_train[:N_LABELED], y_train[:N_LABELED].copy()
    y_train[N_LABELED:] = np.nan

    torch.manual_seed(seed)
    both = DMLS2RRegressor(encoder=by_hand.ImageEncoder(24), n_epochs=N_EPOCHS, random_state=seed)
    step_1 = clone(both).set_params(schedule="pairwise_only").fit(X_train, y_train)
    half = clone(step_1).set_params(n_epochs=N_EPOCHS // 2).fit(X_train, y_train)
    placebo = clone(both).set_params(metric_loss=null_loss).fit(X_train, y_train)
    unpaired = clone(both).set_params(metric_step=UnpairedStep(), schedule=lambda n: ["metric"] * n)
    n_pairs = N_LABELED * (N_LABELED - 1)
    cnn = MLPRegressor(
        encoder=both.encoder,
        n_epochs=N_EPOCHS * step_1.history_["n_steps"].iloc[0],
        max_steps_per_epoch=1,
        batch_size=2 * min(both.pair_batch_size, n_pairs),
        random_state=seed,
    ).fit(X_labeled, y_labeled)
    predictions = {
        "guess": np.median(y_labeled, axis=0),
        "plain CNN": cnn.predict(X_test),
        "step 1, unpaired": unpaired.fit(X_train, y_train).predict(X_test),
        "step 1 alone": step_1.predict(X_test),
        "half the epochs": half.predict(X_test),
        "placebo": placebo.predict(X_test),
        "both steps": both.fit(X_train, y_train).predict(X_test),
    }
    return [
        {"seed": seed, "method": method, "target": name, "n_labeled": N_LABELED, "mae": error}
        for method, predicted in predictions.items()
        for name, error in zip(TARGETS, np.abs(y_test - predicted).mean(axis=0), strict=True)
    ]


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
def main(output: Path) -> None:
    """Write the trials, a row per seed, method and target."""
    if not output.parent.is_dir():
        raise click.BadParameter(f"{output.parent} is no folder")
    torch.set_num_threads(1)
    trials = pd.DataFrame([row for seed in SEEDS for row in run_seed(seed)])
    write_whole(output, trials.to_csv(index=False, float_format="%.8g", lineterminator="\n"))


if __name__ == "__main__":
    main()
