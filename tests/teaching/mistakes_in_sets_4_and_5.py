"""Wrong answers to sets 4 and 5, in the form of `exercise_mistakes`."""

SETS_4_AND_5 = {
    "4_alternating_training": [
        (
            "two-to-one",
            """\
def two_to_one(n_epochs):
    return ["pairwise", "pairwise", "metric"] * (n_epochs // 2)
""",
            "an epoch of step 1 is lost",
        ),
        (
            "warm-then-alternate",
            """\
def warm_then_alternate(n_epochs, n_warm):
    return ["pairwise"] * n_warm + ["pairwise", "metric"] * (n_epochs - n_warm)
""",
            "n_warm may be larger than n_epochs",
        ),
        (
            "momentum-move",
            """\
def momentum_move(gradient, n_steps, learning_rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = v = 0.0
    for _ in range(n_steps):
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
    m, v = beta1 * m, beta2 * v
    return -learning_rate * (m / (1 - beta1**n_steps)) / ((v / (1 - beta2**n_steps)) ** 0.5 + epsilon)
""",
            "one step too few",
        ),
        (
            "gradient-cosine",
            """\
def gradient_cosine(first, second):
    pairs = [(a, b) for a, b in zip(first, second) if a is not None and b is not None]
    a = torch.cat([p[0].flatten() for p in pairs])
    b = torch.cat([p[1].flatten() for p in pairs])
    return a @ b / (a.norm() * b.norm())
""",
            "left out",
        ),
        (
            "stop-early",
            """\
def stop_early(errors, patience):
    best, kept, misses = errors[0], 1, 0
    for epoch, error in enumerate(errors[1:], start=2):
        if error < best:
            best, kept = error, epoch
        else:
            misses += 1
            if misses == patience:
                return kept, epoch
    return kept, len(errors)
""",
            "starts at zero again",
        ),
        (
            "my-schedule",
            """\
def my_schedule(n_epochs):
    return ["pairwise", "metric"] * n_epochs
""",
            "15 %",
        ),
        (
            "paper-schedule",
            """\
def paper_schedule(n_epochs):
    return ["pairwise", "metric"] * (n_epochs // 2)
""",
            "the epochs of *each* step",
        ),
        (
            "paper-schedule",
            """\
def paper_schedule(n_epochs):
    return ["pairwise"] * n_epochs + ["metric"] * n_epochs
""",
            "the steps should take turns",
        ),
        (
            "two-to-one",
            """\
def two_to_one(n_epochs):
    return ["pairwise", "pairwise", "metric"] * n_epochs
""",
            "the number of epochs of step 1 in all",
        ),
        (
            "two-to-one",
            """\
def two_to_one(n_epochs):
    steps = []
    for epoch in range(n_epochs):
        steps.append("pairwise")
        if epoch % 2 == 0:
            steps.append("metric")
    return steps
""",
            "it follows the first one here",
        ),
        (
            "warm-then-alternate",
            """\
def warm_then_alternate(n_epochs, n_warm):
    return ["pairwise"] * n_warm + ["pairwise", "metric"] * n_epochs
""",
            "are among the n_epochs",
        ),
        (
            "warm-then-alternate",
            """\
def warm_then_alternate(n_epochs, n_warm):
    steps = []
    for epoch in range(1, n_epochs + 1):
        steps.append("pairwise")
        if epoch >= n_warm:
            steps.append("metric")
    return steps
""",
            "too early",
        ),
        (
            "momentum-move",
            """\
def momentum_move(gradient, n_steps, learning_rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = v = 0.0
    for g in [gradient] * n_steps + [0.0]:
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
    return -learning_rate * m / (v**0.5 + epsilon)
""",
            "the correction is missing",
        ),
        (
            "momentum-move",
            """\
def momentum_move(gradient, n_steps, learning_rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = v = 0.0
    for _ in range(n_steps):
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
    t = n_steps + 1
    return -learning_rate * (beta1 * m / (1 - beta1**t)) / ((v / (1 - beta2**t)) ** 0.5 + epsilon)
""",
            "v changes in the last step too",
        ),
        (
            "gradient-cosine",
            """\
def gradient_cosine(first, second):
    cosines = []
    for a, b in zip(first, second):
        known = a is not None and b is not None and a.any() and b.any()
        cosines.append((a * b).sum() / (a.norm() * b.norm()) if known else torch.tensor(0.0))
    return torch.stack(cosines).mean()
""",
            "take all together as one vector",
        ),
        (
            "gradient-cosine",
            """\
def gradient_cosine(first, second):
    product = sum((a * b).sum() for a, b in zip(first, second) if a is not None and b is not None)
    squares = [sum(a.square().sum() for a in one if a is not None) for one in (first, second)]
    return product / (squares[0] * squares[1]) ** 0.5
""",
            "it is NaN",
        ),
        (
            "gradient-cosine",
            """\
def gradient_cosine(first, second):
    a = torch.cat([one.flatten() for one in first if one is not None])
    b = torch.cat([(0 * one if two is None else two).flatten() for one, two in zip(first, second)])
    return torch.nn.functional.cosine_similarity(a, b, dim=0)
""",
            "Task 5: nothing but None",
        ),
        (
            "stop-early",
            """\
def stop_early(errors, patience):
    kept = 1
    for epoch, error in enumerate(errors, start=1):
        if error <= errors[kept - 1]:
            kept = epoch
        if epoch - kept == patience:
            return kept, epoch
    return kept, len(errors)
""",
            "an equal error is not lower",
        ),
        (
            "stop-early",
            """\
def stop_early(errors, patience):
    kept, misses = 1, 0
    for epoch in range(2, len(errors) + 1):
        if errors[epoch - 1] < errors[kept - 1]:
            kept = epoch
        misses = 0 if errors[epoch - 1] < errors[epoch - 2] else misses + 1
        if misses == patience:
            return kept, epoch
    return kept, len(errors)
""",
            "not with the error of the epoch before",
        ),
        (
            "my-schedule",
            """\
def my_schedule(n_epochs):
    return ["pairwise"] * 2 * n_epochs
""",
            "both steps, and no others, expected",
        ),
        (
            "my-schedule",
            """\
def my_schedule(n_epochs):
    return ["pairwise", "pairwise", "metric"] * n_epochs
""",
            "n_epochs = 4: 12 epochs, at most 8",
        ),
        (
            "momentum-move",
            """\
def momentum_move(gradient, n_steps, learning_rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = v = 0.0
    for g in [gradient] * n_steps + [0.0]:
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
    t = n_steps + 1
    return -learning_rate * (m / (1 - beta1**t)) / (v / (1 - beta2**t) + epsilon) ** 0.5
""",
            "added to the root, not below it",
        ),
        (
            "my-schedule",
            """\
def my_schedule(n_epochs):
    total = 2 * n_epochs
    return ["pairwise"] * (total - total // 5) + ["metric"] * (total // 5)
""",
            "n_epochs = 4: 1 of 8 epochs are step 2",
        ),
    ],
    "5_evaluation": [
        (
            "mean-paired-difference",
            """\
def mean_paired_difference(trials, method, reference):
    a = trials[trials["method"] == method]["mae"].to_numpy()
    b = trials[trials["method"] == reference]["mae"].to_numpy()
    n = min(len(a), len(b))
    d = a[:n] - b[:n]
    return float(d.mean()), float(d.std(ddof=1) / n**0.5)
""",
            "look at the seeds",
        ),
        (
            "permutation-p-value",
            """\
def permutation_p_value(differences):
    signs = np.array(list(itertools.product([-1, 1], repeat=len(differences))))
    return float(np.mean(signs @ differences >= differences.sum()))
""",
            "one-sided",
        ),
        (
            "splits-needed",
            """\
def splits_needed(alpha, n_questions=1):
    n_splits = 1
    while 2 * n_questions / 2**n_splits > alpha:
        n_splits += 1
    return n_splits
""",
            "which is not below 0.125",
        ),
        (
            "exchange-sets",
            """\
def exchange_sets(positives, negatives, seed):
    order = torch.randperm(len(positives), generator=torch.Generator().manual_seed(seed))
    return positives[order], negatives[order]
""",
            "may leave some in place",
        ),
        (
            "most-confident",
            """\
def most_confident(X, y, pool, k):
    means, errors = [], []
    for p in (2, 5):
        neighbors = KNeighborsRegressor(k, p=p).fit(X, y).kneighbors(pool, return_distance=False)
        means.append(y[neighbors].mean(axis=1))
        errors.append(y[neighbors].var(axis=1) / k)
    risk = (means[0] - means[1]) ** 2 + (errors[0] + errors[1]) / 2
    best = int(risk.argmin())
    return best, float((means[0][best] + means[1][best]) / 2)
""",
            "k - 1 in the denominator",
        ),
        (
            "give-verdict",
            """\
def give_verdict(differences):
    error = differences.std(ddof=1) / len(differences) ** 0.5
    if abs(differences.mean()) <= 2 * error:
        return "cannot tell"
    return "helped" if differences.mean() < 0 else "hurt"
""",
            "false alarm",
        ),
        (
            "permutation-p-value",
            """\
def permutation_p_value(differences):
    signs = np.array(list(itertools.product([-1, 1], repeat=len(differences))))
    return float(np.mean(np.abs((signs * differences).sum(axis=1)) >= abs(differences.sum())))
""",
            "allow for rounding",
        ),
        (
            "exchange-sets",
            """\
def exchange_sets(positives, negatives, seed):
    torch.manual_seed(seed)
    circle = torch.randperm(len(positives))
    owner = torch.empty_like(circle)
    owner[circle] = circle.roll(1)
    return positives[owner], negatives[owner]
""",
            "PyTorch's global random state stays",
        ),
        (
            "exchange-sets",
            """\
def exchange_sets(positives, negatives, seed):
    places = 1 + seed % (len(positives) - 1) if len(positives) > 1 else 0
    return positives.roll(places, 0), negatives.roll(places, 0)
""",
            "shifts by 1 to 7 places",
        ),
        (
            "benjamini-hochberg",
            """\
def benjamini_hochberg(p_values):
    n, order = len(p_values), np.argsort(p_values)
    fractions = p_values[order] * n / np.arange(1, n + 1)
    fractions[:-1] = np.minimum(fractions[:-1], fractions[1:])
    corrected = np.empty(n)
    corrected[order] = fractions
    return corrected
""",
            "places from i on, not over i and the next",
        ),
        (
            "most-confident",
            """\
def most_confident(X, y, pool, k):
    means, errors = [], []
    for p in (2, 5):
        neighbors = KNeighborsRegressor(k, p=p).fit(X, y).kneighbors(pool, return_distance=False)
        means.append(y[neighbors].mean(axis=1))
        errors.append(y[neighbors].var(axis=1, ddof=1) / k)
    risk = (means[0] - means[1]) ** 2 + errors[0] + errors[1]
    best = int(risk.argmin())
    return best, float((means[0][best] + means[1][best]) / 2)
""",
            "s² / k are halved",
        ),
        (
            "mean-paired-difference",
            """\
def mean_paired_difference(trials, method, reference):
    by_seed = trials.pivot(index="seed", columns="method", values="mae")
    d = (by_seed[method] - by_seed[reference]).dropna().to_numpy()
    return float(d.mean()), float(d.std() / len(d) ** 0.5)
""",
            "S - 1 in the denominator",
        ),
        (
            "mean-paired-difference",
            """\
def mean_paired_difference(trials, method, reference):
    by_seed = trials.pivot(index="seed", columns="method", values="mae")
    d = by_seed[method] - by_seed[reference]
    return float(d.mean()), float(d.std() / len(d) ** 0.5)
""",
            "does not count in the root either",
        ),
        (
            "permutation-p-value",
            """\
def permutation_p_value(differences):
    signs = np.array(list(itertools.product([-1, 1], repeat=len(differences))))
    allowed = 1e-9 * np.abs(differences).sum()
    return float(np.mean(np.abs(signs @ differences) > np.abs(differences.sum()) + allowed))
""",
            "the observed pattern itself counts too",
        ),
        (
            "permutation-p-value",
            """\
def permutation_p_value(differences):
    signs = np.array(list(itertools.product([-1, 1], repeat=len(differences))))
    allowed = 1e-9 * np.abs(differences).sum()
    return float(np.mean(np.abs(signs @ differences) >= differences.sum() - allowed))
""",
            "the observed sum is negative",
        ),
        (
            "splits-needed",
            """\
def splits_needed(alpha, n_questions=1):
    n_splits = 1
    while n_questions / 2**n_splits >= alpha:
        n_splits += 1
    return n_splits
""",
            "the test is two-sided",
        ),
        (
            "splits-needed",
            """\
def splits_needed(alpha, n_questions=1):
    n_splits = 1
    while 2 / n_questions / 2**n_splits >= alpha:
        n_splits += 1
    return n_splits
""",
            "makes p values larger, not smaller",
        ),
        (
            "exchange-sets",
            """\
def exchange_sets(positives, negatives, seed):
    circle = torch.randperm(len(positives), generator=torch.Generator().manual_seed(seed))
    owner = torch.empty_like(circle)
    owner[circle] = circle.roll(1)
    return positives[owner], negatives
""",
            "negatives must move with the positives",
        ),
        (
            "exchange-sets",
            """\
def exchange_sets(positives, negatives, seed):
    generator, exchanged = torch.Generator().manual_seed(seed), []
    for sets in (positives, negatives):
        circle = torch.randperm(len(sets), generator=generator)
        owner = torch.empty_like(circle)
        owner[circle] = circle.roll(1)
        exchanged.append(sets[owner])
    return tuple(exchanged)
""",
            "positives and negatives of an anchor stay together",
        ),
        (
            "benjamini-hochberg",
            """\
def benjamini_hochberg(p_values):
    n, order = len(p_values), np.argsort(p_values)
    corrected = np.empty(n)
    corrected[order] = p_values[order] * n / np.arange(1, n + 1)
    return corrected
""",
            "the minimum is missing",
        ),
        (
            "benjamini-hochberg",
            """\
def benjamini_hochberg(p_values):
    n = len(p_values)
    fractions = np.sort(p_values) * n / np.arange(1, n + 1)
    return np.minimum.accumulate(fractions[::-1])[::-1]
""",
            "bring them back into the order of the input",
        ),
        (
            "most-confident",
            """\
def most_confident(X, y, pool, k):
    neighbors = KNeighborsRegressor(k).fit(X, y).kneighbors(pool, return_distance=False)
    best = int((y[neighbors].var(axis=1, ddof=1) / k).argmin())
    return best, float(y[neighbors].mean(axis=1)[best])
""",
            "the regressor with p = 5 is not used",
        ),
        (
            "most-confident",
            """\
def most_confident(X, y, pool, k):
    means = []
    for p in (2, 5):
        neighbors = KNeighborsRegressor(k, p=p).fit(X, y).kneighbors(pool, return_distance=False)
        means.append(y[neighbors].mean(axis=1))
    best = int(((means[0] - means[1]) ** 2).argmin())
    return best, float((means[0][best] + means[1][best]) / 2)
""",
            "its risk counts the spread of targets too",
        ),
        (
            "give-verdict",
            """\
def give_verdict(differences):
    if scipy.stats.ttest_1samp(differences, 0).pvalue >= 0.05:
        return "cannot tell"
    return "helped" if differences.mean() < 0 else "hurt"
""",
            "nothing has changed on any split",
        ),
        (
            "give-verdict",
            """\
def give_verdict(differences):
    if not differences.any() or scipy.stats.wilcoxon(differences).pvalue >= 0.05:
        return "cannot tell"
    return "helped" if differences.mean() > 0 else "hurt"
""",
            "80 % of the verdicts are right",
        ),
        (
            "exchange-sets",
            """\
def exchange_sets(positives, negatives, seed):
    np.random.seed(seed)
    circle = np.random.permutation(len(positives))
    owner = np.empty_like(circle)
    owner[circle] = np.roll(circle, 1)
    return positives[owner], negatives[owner]
""",
            "NumPy's global random state stays",
        ),
    ],
}
