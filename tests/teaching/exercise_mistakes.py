"""Wrong answers to the exercises, as students give them: at least three for each set.

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
            "",
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
            "with equal codes the gradient is finite",
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
            "run-arms",
            """\
def run_arms(dataset, n_labeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(dataset, n_labeled, dataset.n_unlabeled, seed)
        without = placebo(split.X_train, seed)
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            fitted = clone(model).set_params(random_state=seed).fit(X, split.y_train)
            X_test = split.X_test
            mae = float(np.abs(fitted.predict(X_test) - split.y_test).mean())
            trials.append((dataset.name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the placebo gets the labeled rows too",
        ),
        (
            "run-arms",
            """\
def run_arms(dataset, n_labeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(dataset, n_labeled, dataset.n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            fitted = clone(model).fit(X, split.y_train)
            X_test = split.X_test
            mae = float(np.abs(fitted.predict(X_test) - split.y_test).mean())
            trials.append((dataset.name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the seed is not set as random_state",
        ),
        (
            "run-arms",
            """\
def run_arms(dataset, n_labeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(dataset, n_labeled, dataset.n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            fitted = model.set_params(random_state=seed).fit(X, split.y_train)
            X_test = split.X_test
            mae = float(np.abs(fitted.predict(X_test) - split.y_test).mean())
            trials.append((dataset.name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the models given are fitted again and again",
        ),
        (
            "run-arms",
            """\
def run_arms(dataset, n_labeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(dataset, n_labeled, dataset.n_unlabeled, 0)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            fitted = clone(model).set_params(random_state=seed).fit(X, split.y_train)
            X_test = split.X_test
            mae = float(np.abs(fitted.predict(X_test) - split.y_test).mean())
            trials.append((dataset.name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "not those of split_dataset with this seed",
        ),
        (
            "run-arms",
            """\
def run_arms(dataset, n_labeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(dataset, n_labeled, dataset.n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, seed)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            fitted = clone(model).set_params(random_state=seed).fit(X, split.y_train)
            X_test = placebo(split.X_test, seed) if X is without else split.X_test
            mae = float(np.abs(fitted.predict(X_test) - split.y_test).mean())
            trials.append((dataset.name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the test rows are replaced too",
        ),
        (
            "run-arms",
            """\
def run_arms(dataset, n_labeled, seeds, step_1, with_loss, placebo):
    trials = []
    for seed in seeds:
        split = split_dataset(dataset, n_labeled, dataset.n_unlabeled, seed)
        without = pd.concat([split.X_labeled, placebo(split.X_unlabeled, 0)])
        arms = [
            ("step 1", step_1, split.X_train),
            ("real rows", with_loss, split.X_train),
            ("placebo rows", with_loss, without),
        ]
        for method, model, X in arms:
            fitted = clone(model).set_params(random_state=seed).fit(X, split.y_train)
            X_test = split.X_test
            mae = float(np.abs(fitted.predict(X_test) - split.y_test).mean())
            trials.append((dataset.name, n_labeled, seed, method, mae))
    return pd.DataFrame(trials, columns=["dataset", "n_labeled", "seed", "method", "mae"])
""",
            "the placebo needs the seed of the split",
        ),
        (
            "my-loss",
            """\
def my_loss(batch):
    n = len(batch.y)
    return 10 * (batch.differences[:n, :n] - (batch.y[:, None] - batch.y)).square().mean()
""",
            "shuffled columns are not shown to be worse",
        ),
        (
            "my-loss",
            """\
def my_loss(batch):
    nearest = torch.cdist(batch.x, batch.x).topk(6, largest=False).indices[:, 1:]
    return 30 * (batch.targets[:, None] - batch.targets[nearest]).square().mean()
""",
            "no gradient flows to estimates, differences or codes",
        ),
        (
            "my-loss",
            """\
def my_loss(batch):
    nearest = torch.cdist(batch.x, batch.x).topk(6, largest=False).indices[:, 1:]
    return 30 * (batch.estimates[:, None] - batch.estimates[nearest]).square().mean(dim=1)
""",
            "a tensor without dimensions is asked for",
        ),
        (
            "my-loss",
            """\
def my_loss(batch):
    return batch.differences.square().mean()
""",
            "the verdict is *cannot tell*",
        ),
    ],
}
