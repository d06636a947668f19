"""How large the course is: `python tests/course_size.py` prints a row per notebook."""

import json
from pathlib import Path

import pandas as pd

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("[0-9]*.ipynb"))
SECONDS = {"words": 60 / 180, "visible lines": 6, "figures": 40, "tables": 30, "predictions": 60}


def measure(path: Path) -> dict[str, int]:
    """What a reader of a notebook meets, and the minutes that it takes."""
    counts = dict.fromkeys(["folded lines", *SECONDS], 0)
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            counts["words"] += len(source.split())
            counts["predictions"] += source.count("**Predict")
            continue
        n_lines = sum(bool(line.strip()) for line in source.splitlines())
        is_folded = cell["metadata"].get("jupyter", {}).get("source_hidden", False)
        counts["folded lines" if is_folded else "visible lines"] += n_lines
        for output in cell["outputs"]:
            data = output.get("data", {})
            counts["figures"] += "image/png" in data
            counts["tables"] += "text/html" in data
            if "image/png" not in data and "text/html" not in data:
                said = data.get("text/markdown", data.get("text/plain", output.get("text", "")))
                counts["words"] += len("".join(said).split())
    seconds = sum(counts[name] * each for name, each in SECONDS.items())
    return {**counts, "minutes": round(seconds / 60)}


def course_size() -> pd.DataFrame:
    """A row per notebook, and their sum."""
    table = pd.DataFrame({path.stem: measure(path) for path in NOTEBOOKS}).T
    table.loc["all"] = table.sum()
    return table


if __name__ == "__main__":
    print(course_size().to_string())
