"""Wrong answers to the exercises, as students give them: a file a set in `mistakes`, several for each task.

Each begins with a line `## CELL OF THE ANSWER: WORDS`: those of the feedback that a student sees at once.
Where there are none the visible checks pass, and only the hidden tests catch it. Below stands its wrong code.
"""

import re
from pathlib import Path

MISTAKES = {
    path.stem: [
        (answer, code, words or None)
        for answer, words, code in re.findall(
            r"^## ([\w-]+)(?:: (.+))?\n((?:(?!## ).*\n)+)", path.read_text(encoding="utf-8"), flags=re.M
        )
    ]
    for path in sorted(Path(__file__).with_name("mistakes").glob("*.txt"))
}
