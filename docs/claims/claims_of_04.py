"""Blocks of notebook 04: what the shipped trials say of step 2, and of eight splits against twenty."""

from claims import NAMES

from dmls2r_lite.study.benchmark import shipped_trials
from dmls2r_lite.study.comparing import VERDICTS
from dmls2r_lite.study.reproduction import judge_benchmark
from dmls2r_lite.teaching.notebook import write_number


def blocks() -> dict[str, str]:
    """Each block by its name."""
    trials = shipped_trials()
    verdicts = judge_benchmark(trials, "DML-S2R", "step 1")["verdict"]
    lines = []
    for verdict in VERDICTS:
        cells = verdicts[verdicts == verdict].reset_index().groupby("dataset", sort=False)["n_labeled"]
        where = [f"{NAMES[key].split(' [')[0]} ({', '.join(map(str, sizes))})" for key, sizes in cells]
        lines.append(f"- **{verdict}** in {(verdicts == verdict).sum()}: {', '.join(where) or 'none'};")
    lines[-1] = lines[-1].replace(";", ".")

    of_boston = trials.query("dataset == 'boston' and n_labeled == 20")
    by_seed = of_boston.pivot(index="seed", columns="method", values="mae")
    gains = by_seed["step 1"] - by_seed["DML-S2R"]
    trees = by_seed["extra trees"]
    first, all_of_them = (write_number(part.mean(), part.sem()) for part in (trees.loc[:107], trees))
    return {
        "twenty splits": (
            f"The best of these splits shows a gain of {gains.max():.2g}, the worst a loss of "
            f"{-gains.min():.2g} (1000 USD). By the rule of this notebook the verdict on all twenty "
            f"is *{verdicts.loc[('boston', 20)]}*."
        ),
        "eight and twenty": (
            f"Extra trees with 20 labels of Boston Housing have a mean MAE of {first} over the seeds 100 to "
            f"107, and of {all_of_them} over 100 to 119; on single splits from {trees.min():.3g} to "
            f"{trees.max():.3g}."
        ),
        "verdicts of step 2": "\n".join(
            [f"Of {len(verdicts)} cells (in brackets the number of labels) step 2", "", *lines]
        ),
    }
