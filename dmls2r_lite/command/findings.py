"""What the notebooks have found, in sentences with units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..teaching.notebook import write_number

SENTENCES = {  # by the notebook's number; what stands in braces is a result or the unit
    "00": "The best of four plain models, {best_plain_model}, errs by {best_plain_mae} on average (in "
    "{unit}), the median of the labels by {median_guess_mae}. With the hidden targets known too it would be "
    "{best_plain_mae_if_all_labels_known}.",
    "01": "On one split step 1 alone errs by {pairwise_only_mae} on average (in {unit}), two regressions "
    "without pairs, in small batches, by {regressions_in_batches_mae}, ridge regression by {ridge_mae}.",
    "02": "Mined positives differ in target from their anchor by {positives_true_distance} on average (in "
    "{unit}), random samples by {random_true_distance}, mined negatives by {negatives_true_distance}.",
    "03": "On one split, in the last epoch, the test error is {test_mae_after_step_1} after step 1 and "
    "{test_mae_after_step_2} after step 2 (in {unit}). A further epoch of step 2 changes predictions by "
    "{step_2_change_of_prediction}, and by {placebo_change_of_prediction} with its loss times zero.",
    "04": "Did step 2 help? Verdict: {verdict}. DML-S2R errs by {mae_dml_s2r} on average (in {unit}), step "
    "1 alone by {mae_step_1}, the best plain model, {best_plain_model}, by {mae_best_plain}.",
    "05": "We recommend the {recommended}. The predictions written are those of {method}: expect an absolute "
    "error of {error_with_margin} (in {unit}). The best of the plain models is {best_plain_model}.",
    "06": "With unlabeled samples the error changes by {coreg_difference} for COREG and by "
    "{mssr_difference} for MSSR (in {unit}).",
    "07": "In the trials that come with the package step 2 helped in {cells_helped} of 12 cells and hurt in"
    " {cells_hurt}; {cells_at_or_under_paper} of 9 means are at or under the paper's. Verdict on this"
    " table: {verdict_here}.",
    "08": "On images that are made here the angle is off by {angle_mae_both_steps}° with both steps, "
    "{angle_mae_step_1}° with step 1 alone and {angle_mae_plain_cnn}° with a plain network.",
    "09": "Did choosing the rows to label help? Verdict: {verdict}. Extra trees err by {mae_chosen} with "
    "chosen rows and by {mae_random} with random ones (in {unit}).",
    "10": "Intervals that shall hold 80 % of the targets hold {coverage_80_extra_trees} of them around "
    "extra trees; those from the anchors' opinions {coverage_80_of_anchors}.",
    "11": "Of the newer losses {best_loss} gains most against step 1, {best_loss_change_percent} %; against "
    "itself on rows with shuffled columns no loss changes the error by more than "
    "{most_beyond_shuffled_percent} %. "
    "Choosing the rows to label changes the error of DML-S2R by {chosen_rows_change_percent} %.",
}
FAR_TARGETS = (
    "First look at a known target far beyond the others: {}. Until it is right, no error here means much. "
)
COMPARED = {  # a dataset beside others: by the notebook's number and the result
    ("00", "median_guess_mae"): "error of the median of the labels",
    ("04", "best_plain_model"): "best plain model",
    ("04", "mae_best_plain"): "error of the best plain model",
    ("04", "mae_step_1"): "error of step 1 alone",
    ("04", "mae_dml_s2r"): "error of DML-S2R",
    ("04", "verdict"): "did step 2 help?",
    ("05", "recommended"): "model that we recommend",
    ("05", "error_with_margin"): "error to expect of the predictions written",
    ("06", "coreg_difference"): "change of the error by unlabeled samples, COREG",
    ("06", "mssr_difference"): "change of the error by unlabeled samples, MSSR",
    ("09", "verdict"): "did choosing the rows to label help?",
    ("10", "coverage_80_extra_trees"): "targets within 80 % intervals",
}


def describe(notebook: str, results: Mapping[str, Any], unit: str) -> str:
    """What a notebook has found.

    Parameters
    ----------
    notebook : str
        Its name, which begins with its number.
    results : mapping
        From `collect_results`.
    unit : str
        Of the target.

    Returns
    -------
    str
        A sentence or three, empty for a notebook that is not one of the course.
    """
    values = write_values(results)
    try:
        text = SENTENCES[notebook[:2]].format_map(values | {"unit": unit})
    except (KeyError, ValueError):
        return ""
    return (FAR_TARGETS.format(values["far_targets"]) if values.get("far_targets") else "") + text


def write_values(results: Mapping[str, Any]) -> dict[str, str]:
    """The results as they are read, and what two of them make together."""
    values = {name: _write(name, value) for name, value in results.items()}
    if {"expected_error", "standard_error"} <= results.keys():
        values["error_with_margin"] = write_number(results["expected_error"], results["standard_error"])
    return values


def _write(name: str, value: Any) -> str:
    if name.startswith("coverage"):
        return f"{value:.0%}".replace("%", " %")
    if name.endswith("percent"):
        return f"{value:g}"
    return write_number(value, sign=name.endswith("difference")) if isinstance(value, float) else str(value)


def unit_of(target: str) -> str:
    """The unit in a target's label, such as "price [1000 USD]"; without one, what to say in its place."""
    _, found, unit = target.removesuffix("]").rpartition(" [")
    return unit if found else f"units of {target}" if target else "units of the target"
