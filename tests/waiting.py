"""Wait for what another process does."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], seconds: float = 100) -> None:
    """Until something holds; fail where that takes longer."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition()
