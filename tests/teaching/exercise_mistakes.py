"""Wrong answers to the exercises, as students give them: several for each task.

Each is (cell of the answer, its wrong code, words of the feedback that a student sees at once). Without such
words the visible checks pass, and only the hidden tests catch it.
"""

from mistakes_in_sets_1_to_3 import SETS_1_TO_3
from mistakes_in_sets_4_and_5 import SETS_4_AND_5

MISTAKES = {
    **SETS_1_TO_3,
    **SETS_4_AND_5,
    "6_your_own_data": [
        (
            "split-table",
            """\
def split_table(table, target):
    is_known = table[target] > 0
    features = table.drop(columns=target)
    return features[is_known], table.loc[is_known, target], features[~is_known]
""",
            "a target of 0",
        ),
        (
            "rank-scale",
            """\
def rank_scale(X_train, X_test):
    return (X_train[None] <= X_test[:, None]).mean(axis=1)
""",
            "count in full",
        ),
        (
            "find-leaks",
            """\
def find_leaks(X, y, threshold):
    ranks, ranks_of_y = X.rank(), y.rank()
    known = {name: (X[name].notna() & y.notna()).sum() for name in X}
    strength = {name: abs(ranks[name].corr(ranks_of_y)) for name in X if known[name] >= 5}
    names = [name for name in strength if strength[name] >= threshold]
    return sorted(names, key=lambda name: -strength[name])
""",
            "rank the targets of its five rows alone",
        ),
        (
            "half-width",
            """\
def half_width(errors, level):
    return float(np.quantile(np.abs(errors), level, method="higher"))
""",
            "one too small",
        ),
        (
            "fair-folds",
            """\
def fair_folds(y, n_folds):
    labeled = np.flatnonzero(~np.isnan(y))
    ordered = labeled[np.argsort(y[labeled], kind="stable")]
    held_out = [np.sort(ordered[fold::n_folds]) for fold in range(n_folds)]
    return [(np.setdiff1d(np.arange(len(y)), rows), rows) for rows in held_out]
""",
            "goes back",
        ),
        (
            "fit-any-table",
            """\
def fit_any_table(X, y):
    from sklearn.ensemble import ExtraTreesRegressor

    is_labeled = ~np.isnan(y)
    return ExtraTreesRegressor(50, random_state=0).fit(X[is_labeled], y[is_labeled])
""",
            "below half",
        ),
        (
            "split-table",
            """\
def split_table(table, target):
    complete = table.dropna()
    others = table[table[target].isna()]
    return complete.drop(columns=target), complete[target], others.drop(columns=target)
""",
            "a gap in a *feature* drops no row",
        ),
        (
            "split-table",
            """\
def split_table(table, target):
    table = table.reset_index(drop=True)
    features, is_known = table.drop(columns=target), table[target].notna()
    return features[is_known], table.loc[is_known, target], features[~is_known]
""",
            "index [4, 6] expected, got [0, 2]",
        ),
        (
            "split-table",
            """\
def split_table(table, target):
    y = table.pop(target)
    return table[y.notna()], y.dropna(), table[y.isna()]
""",
            "it changes its input table",
        ),
        (
            "rank-scale",
            """\
def rank_scale(X_train, X_test):
    scaled = np.full(X_test.shape, 0.5)
    for column in range(X_train.shape[1]):
        for row in range(len(X_test)):
            value = X_test[row, column]
            if not np.isnan(value):
                below = (X_train[:, column] < value).sum() + (X_train[:, column] == value).sum() / 2
                scaled[row, column] = below / len(X_train)
    return scaled
""",
            "the number of *known* training values",
        ),
        (
            "rank-scale",
            """\
def rank_scale(X_train, X_test):
    n = (~np.isnan(X_train)).sum(axis=0)
    below = (X_train[None] < X_test[:, None]).sum(axis=1)
    return (below + (X_train[None] == X_test[:, None]).sum(axis=1) / 2) / n
""",
            "a gap should become 0.5",
        ),
        (
            "rank-scale",
            """\
def rank_scale(X_train, X_test):
    everything = pd.DataFrame(np.vstack([X_train, X_test]))
    ranks = (everything.rank() - 0.5) / everything.notna().sum()
    return ranks.fillna(0.5).to_numpy()[len(X_train) :]
""",
            "test rows are counted along",
        ),
        (
            "find-sentinel",
            """\
def find_sentinel(column):
    known = column.dropna()
    value = known.min()
    others = known[known != value]
    repeated, enough = len(known) - len(others) >= 2, others.nunique() >= 3
    far = (others - value).abs().min() > others.max() - others.min()
    return float(value) if repeated and enough and far else None
""",
            "a sentinel may be the largest value, too",
        ),
        (
            "find-sentinel",
            """\
def find_sentinel(column):
    known = column.dropna()
    for value in (known.min(), known.max()):
        others = known[known != value]
        repeated, enough = len(known) - len(others) >= 2, others.nunique() >= 3
        if repeated and enough and (others - value).abs().max() > others.max() - others.min():
            return float(value)
    return None
""",
            "0 is 4 away from the nearest other",
        ),
        (
            "find-sentinel",
            """\
def find_sentinel(column):
    known = column.dropna()
    for value in (known.min(), known.max()):
        others = known[known != value]
        if others.nunique() >= 3 and (others - value).abs().min() > others.max() - others.min():
            return float(value)
    return None
""",
            "500 occurs only once",
        ),
        (
            "find-sentinel",
            """\
def find_sentinel(column):
    known = column.dropna()
    for value in (known.min(), known.max()):
        others = known[known != value]
        repeated, enough = len(known) - len(others) >= 2, others.nunique() >= 3
        if repeated and enough and (others - value).abs().min() >= others.max() - others.min():
            return float(value)
    return None
""",
            "and not *larger*",
        ),
        (
            "find-leaks",
            """\
def find_leaks(X, y, threshold):
    strength = {}
    for name in X:
        both = X[name].notna() & y.notna()
        if both.sum() >= 5 and X.loc[both, name].nunique() > 1:
            strength[name] = X.loc[both, name].corr(y[both], method="spearman")
    names = [name for name in strength if strength[name] >= threshold]
    return sorted(names, key=lambda name: -strength[name])
""",
            "a correlation near -1 gives the target away",
        ),
        (
            "find-leaks",
            """\
def find_leaks(X, y, threshold):
    strength = {}
    for name in X:
        both = X[name].notna() & y.notna()
        if both.sum() >= 5 and X.loc[both, name].nunique() > 1:
            strength[name] = abs(X.loc[both, name].corr(y[both]))
    names = [name for name in strength if strength[name] >= threshold]
    return sorted(names, key=lambda name: -strength[name])
""",
            "this is Pearson's correlation",
        ),
        (
            "find-leaks",
            """\
def find_leaks(X, y, threshold):
    strength = X.corrwith(y, method="spearman").abs()
    return strength[strength >= threshold].sort_values(ascending=False).index.tolist()
""",
            "fewer than five say nothing",
        ),
        (
            "find-leaks",
            """\
def find_leaks(X, y, threshold):
    strength = {}
    for name in X:
        both = X[name].notna() & y.notna()
        if both.sum() >= 5 and X.loc[both, name].nunique() > 1:
            strength[name] = abs(X[name].rank().corr(y.rank()))
    names = [name for name in strength if strength[name] >= threshold - 1e-9]
    return sorted(names, key=lambda name: -strength[name])
""",
            "were rows without a target ranked, too",
        ),
        (
            "find-leaks",
            """\
def find_leaks(X, y, threshold):
    strength = {}
    for name in X:
        both = X[name].notna() & y.notna()
        if both.sum() >= 5 and X.loc[both, name].nunique() > 1:
            strength[name] = abs(X.loc[both, name].corr(y[both], method="spearman"))
    names = [name for name in strength if strength[name] > threshold]
    return sorted(names, key=lambda name: -strength[name])
""",
            "which is enough, however sums round",
        ),
        (
            "half-width",
            """\
def half_width(errors, level):
    k = math.ceil((len(errors) + 1) * level - 1e-9)
    return float(np.sort(errors)[k - 1]) if k <= len(errors) else math.inf
""",
            "sorted with their signs",
        ),
        (
            "half-width",
            """\
def half_width(errors, level):
    k = math.ceil((len(errors) + 1) * level - 1e-9)
    return float(np.sort(np.abs(errors))[min(k, len(errors)) - 1])
""",
            "the half-width is infinite",
        ),
        (
            "half-width",
            """\
def half_width(errors, level):
    k = int((len(errors) + 1) * level)
    return float(np.sort(np.abs(errors))[k - 1]) if k <= len(errors) else math.inf
""",
            "round up",
        ),
        (
            "half-width",
            """\
def half_width(errors, level):
    k = math.ceil((len(errors) + 1) * level)
    return float(np.sort(np.abs(errors))[k - 1]) if k <= len(errors) else math.inf
""",
            "take off a billionth before you round up",
        ),
        (
            "half-width",
            """\
def half_width(errors, level):
    return float(np.quantile(np.abs(errors), level))
""",
            "as `np.quantile` does it",
        ),
        (
            "fair-folds",
            """\
def fair_folds(y, n_folds):
    ordered = np.argsort(y, kind="stable")
    there_and_back = [*range(n_folds), *reversed(range(n_folds))]
    fold_of = np.empty(len(y), int)
    for place, row in enumerate(ordered):
        fold_of[row] = there_and_back[place % (2 * n_folds)]
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]
""",
            "deal the labeled rows only",
        ),
        (
            "fair-folds",
            """\
def fair_folds(y, n_folds):
    labeled = np.flatnonzero(~np.isnan(y))
    ordered = labeled[np.argsort(y[labeled], kind="stable")]
    there_and_back = [*range(n_folds), *reversed(range(n_folds))]
    fold_of = np.full(len(y), -1)
    for place, row in enumerate(ordered):
        fold_of[row] = there_and_back[place % (2 * n_folds)]
    is_labeled = fold_of >= 0
    return [
        (np.flatnonzero(is_labeled & (fold_of != fold)), np.flatnonzero(fold_of == fold))
        for fold in range(n_folds)
    ]
""",
            "the unlabeled rows are missing from the training",
        ),
        (
            "fair-folds",
            """\
def fair_folds(y, n_folds):
    labeled = np.flatnonzero(~np.isnan(y))
    ordered = labeled[np.argsort(y[labeled], kind="stable")]
    there_and_back = [*range(n_folds), *reversed(range(1, n_folds - 1))]
    fold_of = np.full(len(y), -1)
    for place, row in enumerate(ordered):
        fold_of[row] = there_and_back[place % len(there_and_back)]
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]
""",
            "the second round goes back",
        ),
        (
            "fair-folds",
            """\
def fair_folds(y, n_folds):
    labeled = np.flatnonzero(~np.isnan(y))
    ordered = labeled[np.argsort(y[labeled], kind="stable")]
    forth, back = list(range(n_folds)), list(range(n_folds))[::-1]
    fold_of = np.full(len(y), -1)
    for place, row in enumerate(ordered):
        fold_of[row] = forth[place] if place < n_folds else back[place % n_folds]
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]
""",
            "the third round goes forth again",
        ),
        (
            "fair-folds",
            """\
def fair_folds(y, n_folds):
    labeled = np.flatnonzero(~np.isnan(y))
    ordered = sorted(labeled, key=lambda row: (y[row], -row))
    there_and_back = [*range(n_folds), *reversed(range(n_folds))]
    fold_of = np.full(len(y), -1)
    for place, row in enumerate(ordered):
        fold_of[row] = there_and_back[place % (2 * n_folds)]
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]
""",
            "in the order of their row numbers",
        ),
        (
            "fit-any-table",
            """\
def fit_any_table(X, y):
    is_labeled = ~np.isnan(y)
    return RidgeCV().fit(X[is_labeled], y[is_labeled])
""",
            "below half",
        ),
        (
            "fit-any-table",
            """\
def fit_any_table(X, y):
    is_labeled = ~np.isnan(y)
    steps = SimpleImputer(missing_values=-999, strategy="median"), StandardScaler()
    return make_pipeline(*steps, RidgeCV()).fit(X[is_labeled], y[is_labeled])
""",
            "below half",
        ),
        (
            "fit-any-table",
            """\
def fit_any_table(X, y):
    steps = SimpleImputer(missing_values=-999, strategy="median"), StandardScaler()
    return make_pipeline(*steps, RidgeCV()).fit(X, np.nan_to_num(y))
""",
            "below half",
        ),
    ],
    "7_which_rows_to_label": [
        (
            "posterior-variance",
            """\
def posterior_variance(K, labeled, noise):
    rows = sorted(set(labeled))
    inverse = np.linalg.inv(K[np.ix_(rows, rows)] + noise * np.eye(len(rows)))
    return np.diag(K - K[:, rows] @ inverse @ K[rows])
""",
            "the second label is lost",
        ),
        (
            "posterior-variance",
            """\
def posterior_variance(K, labeled, noise):
    inverse = np.linalg.inv(K[np.ix_(labeled, labeled)] + noise)
    return np.diag(K - K[:, labeled] @ inverse @ K[labeled])
""",
            "the noise stands in the whole block",
        ),
        (
            "posterior-variance",
            """\
def posterior_variance(K, labeled, noise):
    K = K + noise * np.eye(len(K))
    return np.diag(K - K[:, labeled] @ np.linalg.inv(K[np.ix_(labeled, labeled)]) @ K[labeled])
""",
            "on the diagonal of the labeled block only",
        ),
        (
            "add-labels",
            """\
def add_labels(C, rows, noises):
    left = C.copy()
    for row, noise in zip(rows, noises):
        left -= np.outer(C[:, row], C[row]) / (C[row, row] + noise)
    return left
""",
            "what the first has left",
        ),
        (
            "add-labels",
            """\
def add_labels(C, rows, noises):
    for row, noise in zip(rows, noises):
        C -= np.outer(C[:, row], C[row]) / (C[row, row] + noise)
    return C
""",
            "it changes its input C",
        ),
        (
            "add-labels",
            """\
def add_labels(C, rows, noises):
    C = C.copy()
    for row, noise in zip(rows, noises):
        for i in range(len(C)):
            for j in range(len(C)):
                C[i, j] -= C[i, row] * C[row, j] / (C[row, row] + noise)
    return C
""",
            "0.19 expected",
        ),
        (
            "choose-for",
            """\
def choose_for(K, n, labeled, targets, noise):
    C, chosen = K, []
    for row in labeled:
        C = C - np.outer(C[:, row], C[row]) / (C[row, row] + noise)
    for _ in range(n):
        fall = (C**2).sum(axis=0) / (C.diagonal() + noise)
        fall[[*labeled, *targets, *chosen]] = -1
        chosen.append(int(fall.argmax()))
        C = C - np.outer(C[:, chosen[-1]], C[chosen[-1]]) / (C[chosen[-1], chosen[-1]] + noise)
    return chosen
""",
            "only the targets should",
        ),
        (
            "choose-for",
            """\
def choose_for(K, n, labeled, targets, noise):
    C, chosen = K, []
    for _ in range(n):
        fall = (C[targets] ** 2).sum(axis=0) / (C.diagonal() + noise)
        fall[[*labeled, *targets, *chosen]] = -1
        chosen.append(int(fall.argmax()))
        C = C - np.outer(C[:, chosen[-1]], C[chosen[-1]]) / (C[chosen[-1], chosen[-1]] + noise)
    return chosen
""",
            "the label that is there does not count",
        ),
        (
            "choose-for",
            """\
def choose_for(K, n, labeled, targets, noise):
    C = K
    for row in labeled:
        C = C - np.outer(C[:, row], C[row]) / (C[row, row] + noise)
    fall = (C[targets] ** 2).sum(axis=0) / (C.diagonal() + noise)
    fall[[*labeled, *targets]] = -1
    return np.argsort(-fall, kind="stable")[:n].tolist()
""",
            "the second choice does not know of the first",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances = cdist(centres, X)
    sizes = np.bincount(distances.argmin(axis=0), minlength=len(centres))
    return distances.argmin(axis=1)[np.argsort(-sizes, kind="stable")].tolist()
""",
            "row 2 is paid for twice",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances, rows = cdist(centres, X), []
    for centre in range(len(centres)):
        free = np.where(np.isin(np.arange(len(X)), rows), np.inf, distances[centre])
        rows.append(int(free.argmin()))
    return rows
""",
            "the largest cluster, that of centre 1, comes first",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances = cdist(centres, X)
    owner = distances.argmin(axis=0)
    sizes = np.bincount(owner, minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")
    return [int(np.where(owner == centre, distances[centre], np.inf).argmin()) for centre in order]
""",
            "whichever cluster that is in",
        ),
        (
            "spread-batch",
            """\
def spread_batch(scores, X, n, distance):
    return np.argsort(-scores, kind="stable")[:n].tolist()
""",
            "these are the three best scores",
        ),
        (
            "spread-batch",
            """\
def spread_batch(scores, X, n, distance):
    taken = []
    for row in np.argsort(-scores, kind="stable").tolist():
        if not taken or np.linalg.norm(X[taken[-1]] - X[row]) >= distance:
            taken.append(row)
    return taken[:n]
""",
            "compare with *all* that were taken",
        ),
        (
            "spread-batch",
            """\
def spread_batch(scores, X, n, distance):
    taken = []
    for row in np.argsort(-scores, kind="stable").tolist():
        if all(np.linalg.norm(X[other] - X[row]) >= distance for other in taken):
            taken.append(row)
    return taken[:n]
""",
            "fill up to n",
        ),
        (
            "choose-my-rows",
            """\
def choose_my_rows(X, n):
    return np.argsort(-variance_reduction(covariance(X)))[:n].tolist()
""",
            "the verdict is helped",
        ),
        (
            "choose-my-rows",
            """\
def choose_my_rows(X, n):
    return np.random.default_rng().permutation(len(X))[:n].tolist()
""",
            "the same rows twice",
        ),
        (
            "choose-my-rows",
            """\
def choose_my_rows(X, n):
    return choose_rows(X, n).tolist()
""",
            "does not call choose_rows",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances = cdist(centres, X)
    rows = []
    for centre in np.bincount(distances.argmin(axis=0), minlength=len(centres)).argsort()[::-1]:
        free = np.where(np.isin(np.arange(len(X)), rows), np.inf, distances[centre])
        rows.append(int(free.argmin()))
    return rows
""",
            "of equal sizes the lower centre number comes first",
        ),
        (
            "choose-for",
            """\
def choose_for(K, n, labeled, targets, noise):
    C, chosen = K, []
    for row in labeled:
        C = C - np.outer(C[:, row], C[row]) / (C[row, row] + noise)
    for _ in range(n):
        fall = (C[targets] ** 2).sum(axis=0)
        fall[[*labeled, *targets, *chosen]] = -1
        chosen.append(int(fall.argmax()))
        C = C - np.outer(C[:, chosen[-1]], C[chosen[-1]]) / (C[chosen[-1], chosen[-1]] + noise)
    return chosen
""",
            "but a variance of 4",
        ),
        (
            "posterior-variance",
            """\
def posterior_variance(K, labeled, noise):
    inverse = np.linalg.inv(K[np.ix_(labeled, labeled)] + noise * np.eye(len(labeled)))
    return np.diag(K[:, labeled] @ inverse @ K[labeled])
""",
            "this is what the label has told",
        ),
        (
            "posterior-variance",
            """\
def posterior_variance(K, labeled, noise):
    inverse = 1 / (K[np.ix_(labeled, labeled)] + noise * np.eye(len(labeled)))
    return np.diag(K - K[:, labeled] @ inverse @ K[labeled])
""",
            "one over a matrix",
        ),
        (
            "add-labels",
            """\
def add_labels(C, rows, noises):
    for row, noise in zip(rows, noises):
        C = C - C[:, row] * C[row] / (C[row, row] + noise)
    return C.copy()
""",
            "no table of all products",
        ),
        (
            "add-labels",
            """\
def add_labels(C, rows, noises):
    for row, noise in zip(rows, noises):
        C = C - np.outer(C[:, row], C[row]) / C[row, row] + noise
    return C.copy()
""",
            "set brackets",
        ),
        (
            "choose-for",
            """\
def choose_for(K, n, labeled, targets, noise):
    C, chosen = K, []
    for row in labeled:
        C = C - np.outer(C[:, row], C[row]) / (C[row, row] + noise)
    for _ in range(n):
        fall = (C[targets] ** 2).sum(axis=0) / (C.diagonal() + noise)
        fall[[*labeled, *chosen]] = -1
        chosen.append(int(fall.argmax()))
        C = C - np.outer(C[:, chosen[-1]], C[chosen[-1]]) / (C[chosen[-1], chosen[-1]] + noise)
    return chosen
""",
            "nobody can label",
        ),
        (
            "choose-for",
            """\
def choose_for(K, n, labeled, targets, noise):
    C, chosen = K, []
    for row in labeled:
        C = C - np.outer(C[:, row], C[row]) / (C[row, row] + noise)
    for _ in range(n):
        fall = (C[targets] ** 2).sum(axis=0) / (C.diagonal() + noise)
        fall[[*labeled, *targets]] = -1
        chosen.append(int(fall.argmax()))
        C = C - np.outer(C[:, chosen[-1]], C[chosen[-1]]) / (C[chosen[-1], chosen[-1]] + noise)
    return chosen
""",
            "none is chosen twice",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances = np.abs(centres[:, None] - X).sum(axis=2)
    sizes = np.bincount(distances.argmin(axis=0), minlength=len(centres))
    rows = []
    for centre in np.argsort(-sizes, kind="stable"):
        free = np.where(np.isin(np.arange(len(X)), rows), np.inf, distances[centre])
        rows.append(int(free.argmin()))
    return rows
""",
            "Euclidean distances are asked for",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances = cdist(centres, X)
    sizes = np.bincount(distances.argmin(axis=0))
    rows = []
    for centre in np.argsort(-sizes, kind="stable"):
        free = np.where(np.isin(np.arange(len(X)), rows), np.inf, distances[centre])
        rows.append(int(free.argmin()))
    return rows
""",
            "a row for *each* centre",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances = cdist(centres, X)
    nearest = len(centres) - 1 - distances[::-1].argmin(axis=0)
    sizes = np.bincount(nearest, minlength=len(centres))
    rows = []
    for centre in np.argsort(-sizes, kind="stable"):
        free = np.where(np.isin(np.arange(len(X)), rows), np.inf, distances[centre])
        rows.append(int(free.argmin()))
    return rows
""",
            "equally near to both centres",
        ),
        (
            "rows-near-centres",
            """\
def rows_near_centres(X, centres):
    distances = cdist(centres, X)
    sizes = np.bincount(distances.argmin(axis=0), minlength=len(centres))
    rows = []
    for centre in np.argsort(-sizes, kind="stable"):
        free = np.where(np.isin(np.arange(len(X)), rows), np.inf, distances[centre])
        rows.append(len(X) - 1 - int(free[::-1].argmin()))
    return rows
""",
            "it takes the lower row number",
        ),
        (
            "spread-batch",
            """\
def spread_batch(scores, X, n, distance):
    taken, passed_over = [], []
    for row in np.argsort(-scores, kind="stable").tolist():
        is_near = len(taken) > 0 and np.linalg.norm(X[taken] - X[row], axis=1).min() <= distance
        (passed_over if is_near else taken).append(row)
    return [*taken, *passed_over][:n]
""",
            "which is not *nearer than* 1",
        ),
        (
            "spread-batch",
            """\
def spread_batch(scores, X, n, distance):
    taken, passed_over = [], []
    for row in np.argsort(scores)[::-1].tolist():
        is_near = len(taken) > 0 and np.linalg.norm(X[taken] - X[row], axis=1).min() < distance
        (passed_over if is_near else taken).append(row)
    return [*taken, *passed_over][:n]
""",
            "the lower row number comes first",
        ),
        (
            "choose-my-rows",
            """\
def choose_my_rows(X, n):
    return np.argsort(-np.linalg.norm(X - X.mean(axis=0), axis=1))[:n].tolist()
""",
            "the verdict is helped",
        ),
        (
            "choose-my-rows",
            """\
def choose_my_rows(X, n):
    rows = [0]
    while len(rows) < n:
        rows.append(int(cdist(X, X[rows]).max(axis=1).argmax()))
    return rows
""",
            "different numbers",
        ),
    ],
    "8_how_sure": [
        (
            "labels-needed",
            """\
def labels_needed(coverage, spare):
    return math.ceil((spare + 1) / (1 - coverage)) - 1
""",
            "stored not quite exactly",
        ),
        (
            "labels-needed",
            """\
def labels_needed(coverage, spare):
    return math.ceil(max(spare, 1) / (1 - coverage) - 1e-9) - 1
""",
            "k must be one more than `spare`",
        ),
        (
            "labels-needed",
            """\
def labels_needed(coverage, spare):
    return math.ceil((spare + 1) / (1 - coverage) - 1e-9)
""",
            "one too many: k is made of N + 1",
        ),
        (
            "plus-intervals",
            """\
def plus_intervals(fit, X, y, fold, X_new, k):
    errors = np.empty(len(y))
    for i in range(len(y)):
        errors[i] = abs(y[i] - fit(X[fold != fold[i]], y[fold != fold[i]])(X[i : i + 1])[0])
    centre, q = fit(X, y)(X_new), np.sort(errors)[-k]
    return np.column_stack([centre - q, centre + q])
""",
            "the model on all labels plus and minus",
        ),
        (
            "plus-intervals",
            """\
def plus_intervals(fit, X, y, fold, X_new, k):
    low, high = [], []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model = fit(X[rest], y[rest])
        error = abs(y[i] - model(X[i : i + 1])[0])
        low.append(model(X_new) - error)
        high.append(model(X_new) + error)
    return np.column_stack([np.sort(low, axis=0)[k - 1], np.sort(high, axis=0)[-k]])
""",
            "leave out *all* labels of the fold",
        ),
        (
            "plus-intervals",
            """\
def plus_intervals(fit, X, y, fold, X_new, k):
    low, high = [], []
    for i in range(len(y)):
        model = fit(X[fold != fold[i]], y[fold != fold[i]])
        error = abs(y[i] - model(X[i : i + 1])[0])
        low.append(model(X_new) - error)
        high.append(model(X_new) + error)
    return np.column_stack([np.sort(low, axis=0)[-k], np.sort(high, axis=0)[k - 1]])
""",
            "smallest and largest are mixed up",
        ),
        (
            "signed-intervals",
            """\
def signed_intervals(estimates, errors, coverage):
    k = math.floor((1 - coverage) * (len(errors) + 1) + 1e-9)
    low, high = np.sort(errors)[[k - 1, -k]] if k > 0 else (-np.inf, np.inf)
    return np.column_stack([estimates + low, estimates + high])
""",
            "each side misses the whole 40 %",
        ),
        (
            "signed-intervals",
            """\
def signed_intervals(estimates, errors, coverage):
    k = math.floor((1 - coverage) / 2 * (len(errors) + 1))
    low, high = np.sort(errors)[[k - 1, -k]] if k > 0 else (-np.inf, np.inf)
    return np.column_stack([estimates + low, estimates + high])
""",
            "nine labels are enough",
        ),
        (
            "signed-intervals",
            """\
def signed_intervals(estimates, errors, coverage):
    k = int((1 - coverage) / 2 * (len(errors) + 1))
    low, high = np.sort(errors)[[k - 1, -k]] if k > 0 else (-np.inf, np.inf)
    return np.column_stack([estimates + low, estimates + high])
""",
            "k is 1, not 0",
        ),
        (
            "signed-intervals",
            """\
def signed_intervals(estimates, errors, coverage):
    k = math.floor((1 - coverage) / 2 * (len(errors) + 1) + 1e-9)
    low, high = np.sort(errors)[k - 1], np.sort(errors)[-k]
    return np.column_stack([estimates + low, estimates + high])
""",
            "k is 0, and the bounds are -inf and inf",
        ),
        (
            "coverage-and-error",
            """\
def coverage_and_error(low, high, y):
    inside = ((low <= y) & (y <= high)).ravel()
    return float(inside.mean()), float(inside.std() / len(inside) ** 0.5)
""",
            "the seeds are",
        ),
        (
            "coverage-and-error",
            """\
def coverage_and_error(low, high, y):
    shares = ((low <= y) & (y <= high)).mean(axis=1)
    return float(shares.mean()), float(shares.std() / len(shares) ** 0.5)
""",
            "S - 1 in the denominator",
        ),
        (
            "coverage-and-error",
            """\
def coverage_and_error(low, high, y):
    shares = ((low < y) & (y < high)).mean(axis=1)
    return float(shares.mean()), float(shares.std(ddof=1) / len(shares) ** 0.5)
""",
            "on a bound counts as inside",
        ),
        (
            "p-alike",
            """\
def p_alike(X_labeled, X_others, orders):
    rows, n = np.vstack([X_labeled, X_others]), len(X_labeled)
    T = [
        ((rows[order[:n]].mean(axis=0) - rows[order[n:]].mean(axis=0)) ** 2).sum()
        for order in [np.arange(len(rows)), *orders]
    ]
    return float(np.mean(np.array(T) >= T[0] - 1e-12))
""",
            "do both columns count alike",
        ),
        (
            "p-alike",
            """\
def p_alike(X_labeled, X_others, orders):
    rows, n = np.vstack([X_labeled, X_others]), len(X_labeled)
    rows = rows / rows.std(axis=0)
    T = [
        ((rows[order[:n]].mean(axis=0) - rows[order[n:]].mean(axis=0)) ** 2).sum()
        for order in [np.arange(len(rows)), *orders]
    ]
    return float(np.mean(np.array(T[1:]) >= T[0] - 1e-12))
""",
            "the observed grouping is not counted",
        ),
        (
            "p-alike",
            """\
def p_alike(X_labeled, X_others, orders):
    rows, n = np.vstack([X_labeled, X_others]), len(X_labeled)
    rows = rows / rows.std(axis=0)
    T = [
        (rows[order[n:]].mean(axis=0) - rows[order[:n]].mean(axis=0)).sum()
        for order in [np.arange(len(rows)), *orders]
    ]
    return float(np.mean(np.array(T) >= T[0] - 1e-12))
""",
            "one-sided",
        ),
        (
            "difficulty",
            """\
def difficulty(X_labeled, errors, X):
    return np.ones(len(X))
""",
            "at most 90 %",
        ),
        (
            "difficulty",
            """\
def difficulty(X_labeled, errors, X):
    return cdist(X, X_labeled).min(axis=1) + 0.1
""",
            "at most 90 %",
        ),
        (
            "difficulty",
            """\
def difficulty(X_labeled, errors, X):
    return errors[cdist(X, X_labeled).argmin(axis=1)]
""",
            "is positive where half of the errors are 0",
        ),
        (
            "labels-needed",
            """\
def labels_needed(coverage, spare):
    return round((spare + 1) / (1 - coverage)) - 1
""",
            "not to the nearest",
        ),
        (
            "difficulty",
            """\
def difficulty(X_labeled, errors, X):
    nearest = cdist(X, X_labeled).argsort(axis=1)[:, :5]
    return errors[nearest].mean(axis=1) + 1e-6
""",
            "at most 90 %",
        ),
        (
            "labels-needed",
            """\
def labels_needed(coverage, spare):
    return math.floor((spare + 1) / (1 - coverage) + 1e-9) - 1
""",
            "one too few: N = 5 gives",
        ),
        (
            "labels-needed",
            """\
def labels_needed(coverage, spare):
    return math.ceil(1 / (1 - coverage) - 1e-9) - 1 + spare
""",
            "must count in k, not in N",
        ),
        (
            "plus-intervals",
            """\
def plus_intervals(fit, X, y, fold, X_new, k):
    low, high = [], []
    for i in range(len(y)):
        model = fit(X[fold != fold[i]], y[fold != fold[i]])
        error = y[i] - model(X[i : i + 1])[0]
        low.append(model(X_new) - error)
        high.append(model(X_new) + error)
    return np.column_stack([np.sort(low, axis=0)[k - 1], np.sort(high, axis=0)[-k]])
""",
            "take the absolute value of the errors",
        ),
        (
            "plus-intervals",
            """\
def plus_intervals(fit, X, y, fold, X_new, k):
    low, high = [], []
    for i in range(len(y)):
        model = fit(X[fold != fold[i]], y[fold != fold[i]])
        error = abs(y[i] - model(X[i : i + 1])[0])
        low.append(model(X_new) - error)
        high.append(model(X_new) + error)
    return np.column_stack([np.sort(low, axis=0)[k], np.sort(high, axis=0)[-k - 1]])
""",
            "k = 1 is the outermost value",
        ),
        (
            "signed-intervals",
            """\
def signed_intervals(estimates, errors, coverage):
    k = math.floor((1 - coverage) / 2 * (len(errors) + 1) + 1e-9)
    low, high = np.sort(errors)[[k - 1, -k]] if k > 0 else (-np.inf, np.inf)
    return np.column_stack([estimates - high, estimates - low])
""",
            "*add* them to the estimate",
        ),
        (
            "signed-intervals",
            """\
def signed_intervals(estimates, errors, coverage):
    k = math.floor((1 - coverage) / 2 * (len(errors) + 1) + 1e-9)
    low, high = np.sort(errors)[[k, -k - 1]] if k > 0 else (-np.inf, np.inf)
    return np.column_stack([estimates + low, estimates + high])
""",
            "this is k = 3",
        ),
        (
            "coverage-and-error",
            """\
def coverage_and_error(low, high, y):
    shares = ((low <= y) & (y <= high)).mean(axis=0)
    return float(shares.mean()), float(shares.std(ddof=1) / len(shares) ** 0.5)
""",
            "not over the seeds of a row",
        ),
        (
            "coverage-and-error",
            """\
def coverage_and_error(low, high, y):
    shares = ((low <= y) & (y <= high)).mean(axis=1)
    return float(shares.mean()), float(shares.std(ddof=1))
""",
            "divide by the root of S",
        ),
        (
            "coverage-and-error",
            """\
def coverage_and_error(low, high, y):
    inside = ((low <= y) & (y <= high)).ravel()
    return float(inside.mean()), float(inside.std(ddof=1) / len(inside) ** 0.5)
""",
            "hardly larger than that of independent rows",
        ),
        (
            "p-alike",
            """\
def p_alike(X_labeled, X_others, orders):
    rows, n = np.vstack([X_labeled, X_others]), len(X_labeled)
    rows = rows / rows.std(axis=0)
    T = [
        ((rows[order[:n]].mean(axis=0) - rows[order[n:]].mean(axis=0)) ** 2).sum()
        for order in [np.arange(len(rows)), *orders]
    ]
    return float((1 + np.sum(np.array(T[1:]) > T[0])) / len(T))
""",
            "equal counts as at least as large",
        ),
        (
            "p-alike",
            """\
def p_alike(X_labeled, X_others, orders):
    rows, n = np.vstack([X_labeled, X_others]), len(X_labeled)
    with np.errstate(invalid="ignore"):
        rows = rows / rows.std(axis=0)
    T = [
        ((rows[order[:n]].mean(axis=0) - rows[order[n:]].mean(axis=0)) ** 2).sum()
        for order in [np.arange(len(rows)), *orders]
    ]
    return float((1 + np.sum(np.array(T[1:]) >= T[0] - 1e-12)) / len(T))
""",
            "0/0 is NaN",
        ),
        (
            "p-alike",
            """\
def p_alike(X_labeled, X_others, orders):
    rows, n = np.vstack([X_others, X_labeled]), len(X_labeled)
    rows = rows / rows.std(axis=0)
    T = [
        ((rows[order[:n]].mean(axis=0) - rows[order[n:]].mean(axis=0)) ** 2).sum()
        for order in [np.arange(len(rows)), *orders]
    ]
    return float(np.mean(np.array(T) >= T[0] - 1e-12))
""",
            "row numbers in `orders` count the labeled rows first",
        ),
        (
            "difficulty",
            """\
def difficulty(X_labeled, errors, X):
    nearest = cdist(X, X_labeled).argmin(axis=0)
    return errors[nearest] + errors.mean()
""",
            "one number for each row expected",
        ),
        (
            "difficulty",
            """\
def difficulty(X_labeled, errors, X):
    nearest = cdist(X, X_labeled).argsort(axis=1)[:, :5]
    return 1 / (errors[nearest].mean(axis=1) + 0.5 * errors.mean())
""",
            "at most 90 %",
        ),
    ],
    "9_a_loss_of_ones_own": [
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(X[name].to_numpy()) for name in X}, index=X.index)
""",
            "the columns of one group move together",
        ),
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    alone = [[name] for name in X if not any(name in group for group in groups)]
    shuffled = X.copy()
    for group in [*groups, *alone]:
        order = np.random.default_rng(seed).permutation(len(X))
        shuffled[group] = X[group].to_numpy()[order]
    return shuffled
""",
            "different groups move in orders of their own",
        ),
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    rng, shuffled = np.random.default_rng(seed), X.copy()
    for group in groups:
        shuffled[group] = X[group].to_numpy()[rng.permutation(len(X))]
    return shuffled
""",
            "a column in no group is shuffled",
        ),
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    alone = [[name] for name in X if not any(name in group for group in groups)]
    shuffled = X.copy()
    for number, group in enumerate([*groups, *alone]):
        order = np.random.default_rng(number).permutation(len(X))
        shuffled[group] = X[group].to_numpy()[order]
    return shuffled
""",
            "another seed gives another result",
        ),
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    rng = np.random.default_rng(seed)
    alone = [[name] for name in X if not any(name in group for group in groups)]
    parts = [X[group].sample(frac=1, random_state=rng).reset_index(drop=True) for group in [*groups, *alone]]
    return pd.concat(parts, axis=1)
""",
            "index [7, 5, 9] expected",
        ),
        (
            "loops-of-scores",
            """\
def loops_of_scores(g, h):
    d, n = g[:, None] + h, len(g)
    around = [(d[a, b] + d[b, c] + d[c, a]) ** 2 for a in range(n) for b in range(n) for c in range(n)]
    return torch.stack(around).mean()
""",
            "triples with a row twice or three times are counted",
        ),
        (
            "loops-of-scores",
            """\
def loops_of_scores(g, h):
    s, n = g - h, len(g)
    return 3 * s.square().mean() + 6 * (s.sum() ** 2 - s.square().sum()) / (n * (n - 1))
""",
            "g(a) *plus* h(b)",
        ),
        (
            "loops-of-scores",
            """\
def loops_of_scores(g, h):
    s, n = (g + h).tolist(), len(g)
    sums = [s[a] + s[b] + s[c] for a in range(n) for b in range(a) for c in range(b)]
    return torch.tensor(sums).square().mean()
""",
            "does not require grad",
        ),
        (
            "loops-of-scores",
            """\
def loops_of_scores(g, h):
    d, n, around = g[:, None] + h, len(g), []
    for a in range(n):
        for b in range(n):
            for c in range(n):
                if len({a, b, c}) == 3:
                    around.append((d[a, b] + d[b, c] - d[a, c]) ** 2)
    return torch.stack(around).mean()
""",
            "the third difference goes back",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sorted(others, key=lambda k: T[k].item()).index(j) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ij - d_ik + margin * (rank[k] - rank[j])).relu())
    return torch.stack(costs).mean() if costs else 0 * codes.sum()
""",
            "rows equally far have the same rank",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum(T[k] < T[j] for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ij - d_ik + margin).relu())
    return torch.stack(costs).mean() if costs else 0 * codes.sum()
""",
            "the margin is the same for all",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum(T[k] < T[j] for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ij - d_ik + margin * (T[k] - T[j])).relu())
    return torch.stack(costs).mean() if costs else 0 * codes.sum()
""",
            "ranks*, not of targets",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum(T[k] < T[j] for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ij - d_ik + margin * (rank[k] - rank[j])).relu())
    return torch.stack(costs).mean()
""",
            "it stops with RuntimeError: stack expects a non-empty",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    other = ~torch.eye(len(codes), dtype=torch.bool)
    d = (codes[:, None] - codes).square().sum(dim=2).sqrt()
    T = (targets[:, None] - targets).abs()
    rank = ((T[:, None, :] < T[:, :, None]) & other[:, None, :]).sum(dim=2)
    counts = (rank[:, :, None] < rank[:, None, :]) & other[:, :, None] & other[:, None, :]
    costs = (d[:, :, None] - d[:, None, :] + margin * (rank[:, None, :] - rank[:, :, None])).relu()
    return (costs * counts).sum() / counts.sum().clamp(min=1)
""",
            "the gradient is not finite: is there a root of 0",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum(T[k] < T[j] for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ik - d_ij + margin * (rank[k] - rank[j])).relu())
    return torch.stack(costs).mean() if costs else 0 * codes.sum()
""",
            "wrong way round",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    p = (torch.arange(len(estimates), dtype=y.dtype) + 0.5) / len(estimates)
    return (estimates - y.quantile(p)).square().mean()
""",
            "sort the estimates",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    p = torch.linspace(0, 1, len(estimates), dtype=y.dtype)
    return (estimates.sort().values - y.detach().quantile(p)).square().mean()
""",
            "not from 0 to 1",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    p = (torch.arange(len(estimates), dtype=y.dtype) + 0.5) / len(estimates)
    return (estimates.sort().values - y.quantile(p)).square().mean()
""",
            "no gradient flows to the labels",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    p = (np.arange(len(estimates)) + 0.5) / len(estimates)
    wanted = np.quantile(y.detach().numpy(), p)
    costs = (np.sort(estimates.detach().numpy()) - wanted) ** 2
    return torch.tensor(costs.mean(), dtype=y.dtype)
""",
            "does not require grad",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    p = (torch.arange(len(y), dtype=y.dtype) + 0.5) / len(y)
    return (estimates.quantile(p) - y.detach().sort().values).square().mean()
""",
            "quantiles of the *labels*",
        ),
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    rng = np.random.default_rng(seed)
    alone = [name for name in X if not any(name in group for group in groups)]
    shuffled = X.copy()
    for group in [*groups, alone]:
        shuffled[group] = X[group].to_numpy()[rng.permutation(len(X))]
    return shuffled
""",
            "moves alone",
        ),
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    rng = np.random.default_rng(seed)
    alone = [[name] for name in X if not any(name in group for group in groups)]
    for group in [*groups, *alone]:
        X[group] = X[group].to_numpy()[rng.permutation(len(X))]
    return X
""",
            "work on a copy",
        ),
        (
            "shuffle-groups",
            """\
def shuffle_groups(X, groups, seed):
    rng = np.random.default_rng(seed)
    alone = [[name] for name in X if not any(name in group for group in groups)]
    shuffled = X.copy()
    for group in [*groups, *alone]:
        shuffled[group] = X[group].to_numpy()[rng.integers(len(X), size=len(X))]
    return shuffled
""",
            "each column keeps its values",
        ),
        (
            "loops-of-scores",
            """\
def loops_of_scores(g, h):
    s, n = g + h, len(g)
    around = [s[a] + s[b] + s[c] for a in range(n) for b in range(a) for c in range(b)]
    return torch.stack(around).mean().square()
""",
            "the square comes before the mean",
        ),
        (
            "loops-of-scores",
            """\
def loops_of_scores(g, h):
    s, n = g + h, len(g)
    around = [s[a] + s[b] + s[c] for a in range(n) for b in range(a) for c in range(b)]
    return torch.stack(around).square().sum()
""",
            "this is the sum over triples",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum(T[k] < T[j] for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = (codes[i] - codes[j]).square().sum(), (codes[i] - codes[k]).square().sum()
                    costs.append((d_ij - d_ik + margin * (rank[k] - rank[j])).relu())
    return torch.stack(costs).mean() if costs else 0 * codes.sum()
""",
            "distances are not squared",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum(T[k] <= T[j] for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ij - d_ik + margin * (rank[k] - rank[j])).relu())
    return torch.stack(costs).mean() if costs else 0 * codes.sum()
""",
            "*strictly* nearer",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum(T[k] < T[j] for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ij - d_ik + margin * (rank[k] - rank[j])).relu())
    return torch.stack(costs).mean() if costs else torch.tensor(0.0)
""",
            "no gradient flows to the codes",
        ),
        (
            "rank-margin-loss",
            """\
def rank_margin_loss(codes, targets, margin):
    n, costs = len(codes), []
    for i in range(n):
        T = (targets[i] - targets).abs()
        others = [j for j in range(n) if j != i]
        rank = {j: sum((T[k] < T[j]) + (T[k] == T[j]) / 2 for k in others) for j in others}
        for j in others:
            for k in others:
                if rank[j] < rank[k]:
                    d_ij, d_ik = torch.dist(codes[i], codes[j]), torch.dist(codes[i], codes[k])
                    costs.append((d_ij - d_ik + margin * (rank[k] - rank[j])).relu())
    return torch.stack(costs).mean() if costs else 0 * codes.sum()
""",
            "these are mean ranks",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    p = (torch.arange(len(estimates), dtype=y.dtype) + 0.5) / len(estimates)
    return (estimates.sort().values - y.detach().quantile(p)).square().sum()
""",
            "this is the sum",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    p = (torch.arange(len(estimates), dtype=y.dtype) + 1) / (len(estimates) + 1)
    return (estimates.sort().values - y.detach().quantile(p)).square().mean()
""",
            "not i / (M + 1)",
        ),
        (
            "quantile-alignment",
            """\
def quantile_alignment(estimates, y):
    return (estimates.mean() - y.detach().mean()).square()
""",
            "this compares the means only",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = placebo(split.X_train, seed)
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the placebo gets unlabeled ones only",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float(((estimates - split.y_test) ** 2).mean() ** 0.5)
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the MAE is the mean absolute error",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, 0)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "a model gets the seed of the split",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", step_1, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the model `step_1` gets placebo rows",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, 0)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "not those of split_dataset with this seed",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = placebo(split.X_test, seed) if X is without else split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "they are not replaced either",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, 0)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "neither those of the split nor placebo(X, seed)",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float((estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the MAE is the mean absolute error",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, pd.concat([split.y_labeled, split.y_unlabeled]), X_test, seed)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "targets are those of split.y_train",
        ),
        (
            "run-arms",
            """\
def run_arms(name, n_labeled, n_unlabeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in sorted(seeds):
        split = split_dataset(load_dataset(name), n_labeled, n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            X_test = split.X_test
            estimates = model(X, split.y_train, X_test, seed)
            mae = float(np.abs(estimates - split.y_test).mean())
            trials.append((name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the seeds are sorted",
        ),
        (
            "my-loss",
            """\
def my_loss(x, codes, differences, y, estimates):
    n = len(y)
    return 10 * (differences[:n, :n] - (y[:, None] - y)).square().mean()
""",
            "shuffled columns are not shown to be worse",
        ),
        (
            "my-loss",
            """\
def my_loss(x, codes, differences, y, estimates):
    nearest = torch.cdist(x, x).topk(6, largest=False).indices[:, 1:]
    return (estimates[:, None] - estimates[nearest]).square().mean()
""",
            "a good idea with too small a factor",
        ),
        (
            "my-loss",
            """\
def my_loss(x, codes, differences, y, estimates):
    nearest = torch.cdist(x, x).topk(6, largest=False).indices[:, 1:]
    estimates = estimates.detach()
    return 30 * (estimates[:, None] - estimates[nearest]).square().mean()
""",
            "no gradient flows to estimates, differences or codes",
        ),
        (
            "my-loss",
            """\
def my_loss(x, codes, differences, y, estimates):
    nearest = torch.cdist(x, x).topk(6, largest=False).indices[:, 1:]
    return 30 * (estimates[:, None] - estimates[nearest]).square().mean(dim=1)
""",
            "a tensor without dimensions is asked for",
        ),
        (
            "my-loss",
            """\
def my_loss(x, codes, differences, y, estimates):
    return differences.square().mean()
""",
            "the verdict is *cannot tell*",
        ),
        (
            "my-loss",
            """\
def my_loss(x, codes, differences, y, estimates):
    nearest = torch.cdist(x, x).topk(6, largest=False).indices[:, 1:]
    return 30 * (estimates[:, None] - estimates[nearest]).mean()
""",
            "the verdict is *",
        ),
        (
            "my-loss",
            """\
def my_loss(x, codes, differences, y, estimates):
    nearest = torch.cdist(x, x).topk(6, largest=False).indices[:, 1:]
    return 30 * (estimates[:, None] - estimates[nearest]).square().mean().item()
""",
            "a tensor is asked for",
        ),
    ],
}
