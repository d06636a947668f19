"""The cells of notebooks that make an explorer, with made-up variables in place of the notebook's own."""

import dis

import nbformat
from notebook_runs import PATHS

from dmls2r_lite.teaching.controls import Explorer

MADE_UP = """
from types import SimpleNamespace
import torch
from sklearn.decomposition import PCA
from dmls2r_lite.practice.choosing import posterior_covariance
from dmls2r_lite.study.benchmark import shipped_trials
rng = np.random.default_rng(0)
dataset, data = "my_table.csv", SimpleNamespace(unit="m")
n_labeled, n_unlabeled, shipped = 6, 15, shipped_trials()
is_labeled, y_train = np.arange(21) < 6, rng.uniform(0, 50, 21)
y_labeled, y_true, y_unlabeled = y_train[:6], y_train[6:], y_train[6:]
X = pd.DataFrame(rng.normal(size=(21, 2)), columns=["a", "b"])
split = SimpleNamespace(X_labeled=X[:6], X_train=X, y_labeled=pd.Series(y_labeled))
fits = {n: (y_labeled[:n] + n, y_true - 2 * n) for n in (2, 4, 6)}
differences = torch.from_numpy(y_labeled[:, None] - y_unlabeled + rng.normal(0, 3, (6, 15)))
modes, mining_mode, k = ("signed", "absolute"), "absolute", 3
boundary, margin, temperature = 1.25, 0.4, 10  # no step, and no float
model = SimpleNamespace(transform=lambda X: rng.uniform(size=(len(X), 4)))
codes = [model.transform(X) for _ in range(5)]
projection, epochs, mae = PCA(2).fit(codes[0]), range(1, 5), [5, 4, 3, 2, 1.5]
points, ways = X.to_numpy()[:12], {"the rule": [3, 7, 1, 0], "random": [11, 10, 9, 8]}
K = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
left = {way: [posterior_covariance(K, rows[:n]).diagonal() for n in range(5)] for way, rows in ways.items()}
variances = {way: np.array(each) for way, each in left.items()}
"""


def cells_of(number: str) -> tuple[str, str]:
    """A notebook's imports, what is made up, and the cell that makes an explorer; and all cells after it."""
    (path,) = (path for path in PATHS if path.name.startswith(number))
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    (place,) = (place for place, source in enumerate(cells) if "Explorer(" in source)
    imports = [line for line in cells[1].splitlines() if line.startswith(("import ", "from "))]
    return "\n".join([*imports, MADE_UP, cells[place]]), "\n".join(cells[place + 1 :])


def explorer_of(number: str) -> Explorer:
    """The explorer that such a cell makes; what it sees of the notebook is in `draw.__globals__`."""
    names, (cell, later) = {}, cells_of(number)
    exec(cell.partition("explorer.plot()")[0], names)  # that would open a figure of pyplot
    stored = {step.argval for step in dis.get_instructions(later) if step.opname == "STORE_NAME"}
    assert not stored & {*names["explorer"].draw.__code__.co_names}  # its controls draw what its cell saw
    return names["explorer"]
