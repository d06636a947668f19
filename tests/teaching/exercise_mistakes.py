"""Wrong answers to the exercises, as students give them: a file a set in `mistakes`, several for each task.

Each begins with a line `## CELL OF THE ANSWER: WORDS`: those of the feedback that a student sees at once.
Where there are none the visible checks pass, and only the hidden tests catch it. Below stands its wrong code.
``## CELL `A` => `B` `C` => `D`: WORDS`` is the solution with every A replaced by B, then every C by D.
"""

import re
from pathlib import Path

import nbformat

SOURCES = Path(__file__).parents[2] / "notebooks" / "exercises" / "source"


def _read(path):
    """Cell, code and words of each."""
    cells = nbformat.read(SOURCES / path.stem / f"{path.stem}.ipynb", as_version=4).cells
    answers = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in cells}
    mistakes = []
    for text in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
        head, code = text.split("\n", 1)
        name, changes, words = re.fullmatch(r"([\w-]+)((?: `.+?` => `.*?`)*)(?:: (.+))?", head).groups()
        code = code or answers[name]
        for old, new in re.findall("`(.+?)` => `(.*?)`", changes):
            assert old in code, f"{path.name}, {name}: no {old!r} in the solution"
            code = code.replace(old, new)
        mistakes.append((name, code, words))
    return mistakes


MISTAKES = {path.stem: _read(path) for path in sorted(Path(__file__).with_name("mistakes").glob("*.txt"))}
