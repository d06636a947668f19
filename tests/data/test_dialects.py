"""Random tables in random dialects are read back equal, or refused with a reason; a guess is told."""

import numpy as np
import pytest
from random_tables import make_table, misread

from dmls2r_lite.data.reading import read


@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read_back_or_refused(seed, tmp_path):
    refusals = []
    for place in range(50):
        table = make_table(np.random.default_rng([10**6 + seed, place]))
        path = tmp_path / table.name
        path.write_bytes(table.content)
        try:
            reading = read(path, **table.options)
        except ValueError as error:
            refusals.append(str(error))
            continue
        assert misread(reading, table) == "", (table.content, reading.columns)
    assert all(text.startswith((str(tmp_path), "column_types must")) for text in refusals)
    assert len(refusals) < 35
