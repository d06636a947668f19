"""The numbers of notebook 06 that come from the shipped trials."""

from claims import tell_shown

from dmls2r_lite.study.benchmark import shipped_trials


def blocks() -> dict[str, str]:
    """Each block of the notebook, by name."""
    trials = shipped_trials()
    questions = [("COREG", "3-NN"), ("MSSR", "3-NN"), ("MSSR", "step 1"), ("COREG", "step 1")]
    lines = [
        f"- {method} against {other}: {tell_shown(trials, method, other)}." for method, other in questions
    ]
    return {"COREG and MSSR": "\n".join(lines)}
