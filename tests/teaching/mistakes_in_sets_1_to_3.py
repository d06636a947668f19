"""Wrong answers to sets 1 to 3, in the form of `exercise_mistakes`."""

SETS_1_TO_3 = {
    "1_pairwise_modeling": [
        (
            "asymmetry",
            """\
def asymmetry(estimates):
    return (estimates + estimates.T).abs().mean()
""",
            "the diagonal",
        ),
        (
            "loop-inconsistency",
            """\
def loop_inconsistency(estimates):
    n, sums = len(estimates), []
    for a in range(n):
        for b in range(a + 1, n):
            for c in range(b + 1, n):
                sums.append((estimates[a, b] + estimates[b, c] + estimates[c, a]).abs())
    return torch.stack(sums).mean()
""",
            "only one direction",
        ),
        (
            "huber-pairwise-loss",
            """\
def huber_pairwise_loss(estimated, true, delta):
    size = (estimated - true).abs()
    return torch.where(size <= delta, size.square() / 2, size - delta / 2).mean()
""",
            "the slope is delta",
        ),
        (
            "weighted-estimate",
            """\
def weighted_estimate(forward, backward, y_anchors, weights):
    return torch.tensor([14.5, 14.75, 21.0])
""",
            "shape (1,) expected, got (3,)",
        ),
        (
            "robust-estimate",
            """\
def robust_estimate(from_each_anchor):
    return from_each_anchor.mean(dim=1)
""",
            "the MAE is below 1",
        ),
        (
            "asymmetry",
            """\
def asymmetry(estimates):
    n = len(estimates)
    return ((estimates + estimates.T).abs().sum() - 2 * estimates.diagonal().abs().sum()) / n**2
""",
            "not over all N²",
        ),
        (
            "asymmetry",
            """\
def asymmetry(estimates):
    n = len(estimates)
    upper = [(estimates[i, j] + estimates[j, i]).abs() for i in range(n) for j in range(i)]
    return sum(upper) / (n * (n - 1))
""",
            "this is half of it",
        ),
        (
            "loop-inconsistency",
            """\
def loop_inconsistency(estimates):
    n, sums = len(estimates), []
    for a in range(n):
        for b in range(n):
            for c in range(n):
                if len({a, b, c}) == 3:
                    sums.append(estimates[a, b] + estimates[b, c] + estimates[c, a])
    return torch.stack(sums).mean().abs()
""",
            "sums of opposite sign cancel",
        ),
        (
            "recover-targets",
            """\
def recover_targets(differences, y_last):
    return y_last - differences[:, -1]
""",
            "wrong signs",
        ),
        (
            "recover-targets",
            """\
def recover_targets(differences, y_last):
    return differences[:, 0] + y_last
""",
            "not the first one's",
        ),
        (
            "asymmetry",
            """\
def asymmetry(estimates):
    off_diagonal = ~torch.eye(len(estimates), dtype=torch.bool)
    return (estimates + estimates.T)[off_diagonal].mean().abs()
""",
            "deviations of opposite sign cancel",
        ),
        (
            "asymmetry",
            """\
def asymmetry(estimates):
    n = len(estimates)
    estimates.fill_diagonal_(0)
    return (estimates + estimates.T).abs().sum() / (n * (n - 1))
""",
            "it changes its input estimates",
        ),
        (
            "loop-inconsistency",
            """\
def loop_inconsistency(estimates):
    n, sums = len(estimates), []
    for a in range(n):
        for b in range(n):
            for c in range(n):
                if len({a, b, c}) == 3:
                    sums.append((estimates[a, b] + estimates[b, c] + estimates[a, c]).abs())
    return torch.stack(sums).mean()
""",
            "not F_ac",
        ),
        (
            "loop-inconsistency",
            """\
def loop_inconsistency(estimates):
    sums = estimates[:, :, None] + estimates[None, :, :] + estimates.T[:, None, :]
    return sums.abs().mean()
""",
            "triples in which a sample occurs twice",
        ),
        (
            "huber-pairwise-loss",
            """\
def huber_pairwise_loss(estimated, true, delta):
    error = estimated - true
    return torch.where(error <= delta, error.square() / 2, delta * (error - delta / 2)).mean()
""",
            "is an error of -3 beyond delta?",
        ),
        (
            "huber-pairwise-loss",
            """\
def huber_pairwise_loss(estimated, true, delta):
    size = (estimated - true).abs()
    return torch.where(size <= delta, size.square() / 2, delta * size).mean()
""",
            "subtract delta / 2",
        ),
        (
            "huber-pairwise-loss",
            """\
def huber_pairwise_loss(estimated, true, delta):
    costs = []
    for error in (estimated - true).abs().tolist():
        costs.append(error**2 / 2 if error <= delta else delta * (error - delta / 2))
    return torch.tensor(costs, dtype=estimated.dtype).mean()
""",
            "a gradient flows to the estimates",
        ),
        (
            "weighted-estimate",
            """\
def weighted_estimate(forward, backward, y_anchors, weights):
    from_each_anchor = (forward - backward) / 2 + y_anchors
    return (weights * from_each_anchor).sum(dim=0) / weights.sum(dim=0)
""",
            "shape (3,) expected, got (2,)",
        ),
        (
            "weighted-estimate",
            """\
def weighted_estimate(forward, backward, y_anchors, weights):
    from_each_anchor = (forward + backward) / 2 + y_anchors
    return (weights * from_each_anchor).sum(dim=1) / weights.sum(dim=1)
""",
            "f(x_i, x*) has the other sign",
        ),
        (
            "robust-estimate",
            """\
def robust_estimate(from_each_anchor):
    return from_each_anchor.median(dim=1)
""",
            "a tensor expected, got median",
        ),
        (
            "robust-estimate",
            """\
def robust_estimate(from_each_anchor):
    return from_each_anchor.sort(dim=1).values[:, 2:-2].mean(dim=1)
""",
            "the MAE is below 1",
        ),
        (
            "robust-estimate",
            """\
def robust_estimate(from_each_anchor):
    return from_each_anchor.sort(dim=1).values[:, 5:-5].mean(dim=1)
""",
            "6: 6 of 20 wrong",
        ),
        (
            "robust-estimate",
            """\
def robust_estimate(from_each_anchor):
    median = from_each_anchor.median(dim=1, keepdim=True).values
    kept = from_each_anchor < 2 * median
    return (kept * from_each_anchor).sum(dim=1) / kept.sum(dim=1)
""",
            "if all estimates are larger by 7",
        ),
        (
            "huber-pairwise-loss",
            """\
def huber_pairwise_loss(estimated, true, delta):
    return torch.nn.functional.smooth_l1_loss(estimated, true, beta=delta)
""",
            "this is divided by delta",
        ),
        (
            "huber-pairwise-loss",
            """\
def huber_pairwise_loss(estimated, true, delta):
    size = (estimated - true).abs()
    return torch.where(size <= delta, size.square(), delta * (size - delta / 2)).mean()
""",
            "the square has a factor 1/2",
        ),
    ],
    "2_mining": [
        (
            "mine-one-anchor",
            """\
def mine_one_anchor(row, k):
    order = row.argsort()
    return order[:k], order.flip(0)[:k]
""",
            "signed difference",
        ),
        (
            "mine-with-band",
            """\
def mine_with_band(differences, k, band):
    order = differences.abs().argsort(dim=1)
    return order[:, :k], order[:, -k - band : -band].flip(1)
""",
            "a slice that ends at -band",
        ),
        (
            "masks-by-threshold",
            """\
def masks_by_threshold(differences, low, high):
    size = differences.abs()
    positive, negative = size < low, size > high
    return positive, negative & positive.any(dim=1, keepdim=True)
""",
            "without negatives",
        ),
        (
            "purity",
            """\
def purity(positives, y_anchors, y_unlabeled):
    k = positives.shape[1]
    nearest = (y_anchors[:, None] - y_unlabeled).abs().argsort(dim=1)[:, :k]
    return torch.isin(positives, nearest.unique()).float().mean()
""",
            "its own",
        ),
        (
            "mutual-positives",
            """\
def mutual_positives(differences, k, q):
    size = differences.abs()
    return (size.argsort(dim=1) < k) & (size.argsort(dim=0) < q)
""",
            "not which rank",
        ),
        (
            "mine-without-sharing",
            """\
def mine_without_sharing(differences, k):
    left, positives = differences.abs().clone(), []
    for row in left:
        chosen = row.argsort()[:k]
        positives.append(chosen)
        left[:, chosen] = torch.inf
    return torch.stack(positives)
""",
            "below 1.27",
        ),
        (
            "mine-one-anchor",
            """\
def mine_one_anchor(row, k):
    size = row.abs().sort().values
    return size[:k], size.flip(0)[:k]
""",
            "not the sizes",
        ),
        (
            "mine-one-anchor",
            """\
def mine_one_anchor(row, k):
    order = row.abs().argsort()
    return order[:k], order[-k:]
""",
            "in the wrong order",
        ),
        (
            "mine-with-band",
            """\
def mine_with_band(differences, k, band):
    order = differences.abs().argsort(dim=1)
    return order[:, :k], order.flip(1)[:, band:k]
""",
            "there should still be k negatives",
        ),
        (
            "mine-with-band",
            """\
def mine_with_band(differences, k, band):
    order = differences.abs().argsort(dim=1)
    end = order.shape[1] - band
    return order[:, :k], order[:, end - k : end]
""",
            "the negatives are in the wrong order",
        ),
        (
            "masks-by-threshold",
            """\
def masks_by_threshold(differences, low, high):
    size = differences.abs()
    positive, negative = size <= low, size > high
    usable = positive.any(dim=1, keepdim=True) & negative.any(dim=1, keepdim=True)
    return positive & usable, negative & usable
""",
            "exactly low is not below low",
        ),
        (
            "masks-by-threshold",
            """\
def masks_by_threshold(differences, low, high):
    size = differences.abs()
    positive, negative = size < low, size >= high
    usable = positive.any(dim=1, keepdim=True) & negative.any(dim=1, keepdim=True)
    return positive & usable, negative & usable
""",
            "exactly high is not above high",
        ),
        (
            "masks-by-threshold",
            """\
def masks_by_threshold(differences, low, high):
    size = differences.abs()
    positive, negative = size < low, size > high
    usable = positive.any(dim=0, keepdim=True) & negative.any(dim=0, keepdim=True)
    return positive & usable, negative & usable
""",
            "ask it of the anchors (rows)",
        ),
        (
            "purity",
            """\
def purity(positives, y_anchors, y_unlabeled):
    nearest = (y_anchors[:, None] - y_unlabeled).abs().argsort(dim=1)[:, : positives.shape[1]]
    return (positives == nearest).float().mean()
""",
            "the order does not matter",
        ),
        (
            "purity",
            """\
def purity(positives, y_anchors, y_unlabeled):
    nearest = (y_anchors[:, None] - y_unlabeled).argsort(dim=1)[:, : positives.shape[1]]
    return (positives[:, :, None] == nearest[:, None, :]).any(dim=2).float().mean()
""",
            "the difference has a sign",
        ),
        (
            "mutual-positives",
            """\
def mutual_positives(differences, k, q):
    size = differences.abs()
    return (size.argsort(dim=1).argsort(dim=1) < k) | (size.argsort(dim=0).argsort(dim=0) < q)
""",
            "one of the two is not enough",
        ),
        (
            "mutual-positives",
            """\
def mutual_positives(differences, k, q):
    size = differences.abs()
    return (size.argsort(dim=1).argsort(dim=1) < q) & (size.argsort(dim=0).argsort(dim=0) < k)
""",
            "k and q are exchanged",
        ),
        (
            "mine-without-sharing",
            """\
def mine_without_sharing(differences, k):
    return differences.abs().argsort(dim=1)[:, :k]
""",
            "positives are used before",
        ),
        (
            "mine-without-sharing",
            """\
def mine_without_sharing(differences, k):
    n, m = differences.shape
    positives, used = [[] for _ in range(n)], set()
    for flat in differences.flatten().argsort().tolist():
        anchor, sample = divmod(flat, m)
        if sample not in used and len(positives[anchor]) < k:
            positives[anchor].append(sample)
            used.add(sample)
    return torch.tensor(positives)
""",
            "below 1.27",
        ),
    ],
    "3_ranked_list_loss": [
        (
            "costs",
            """\
def costs(d_positive, d_negative, boundary, margin):
    return (d_positive - boundary).relu(), (boundary - d_negative).relu()
""",
            "the margin is missing",
        ),
        (
            "log-ratio-loss",
            """\
def log_ratio_loss(codes, y, triplets):
    total = 0.0
    for a, i, j in triplets.tolist():
        ratio = ((codes[a] - codes[i]) ** 2).sum() / ((codes[a] - codes[j]) ** 2).sum()
        wanted = abs(y[a] - y[i]) / abs(y[a] - y[j])
        total += (math.log(ratio) - math.log(wanted)) ** 2
    return torch.tensor(total / len(triplets))
""",
            "a gradient flows to the codes",
        ),
        (
            "angle",
            """\
def angle(a, b):
    cosine = torch.nn.functional.cosine_similarity(a, b)
    return cosine.acos()
""",
            "the gradient is finite",
        ),
        (
            "hardest-loss",
            """\
def hardest_loss(d_positive, d_negative, boundary, margin):
    positive = (d_positive - (boundary - margin)).relu().max()
    negative = (boundary - d_negative).relu().max()
    return (positive + negative) / 2
""",
            "of its own",
        ),
        (
            "growing-boundary-loss",
            """\
def growing_boundary_loss(d_negative, differences, boundary):
    boundaries = boundary * differences.abs() / differences.abs().mean()
    return (boundaries - d_negative).clamp(min=0).mean()
""",
            "the boundaries are constants",
        ),
        (
            "choose-parameters",
            """\
def choose_parameters(d_positive, d_negative, share):
    boundary = d_negative.quantile(share).item()
    return boundary, boundary - d_positive.quantile(1 - share).item(), 10.0
""",
            "60 %",
        ),
        (
            "angle",
            """\
def angle(a, b):
    a = a / torch.linalg.vector_norm(a, dim=1, keepdim=True).detach()
    b = b / torch.linalg.vector_norm(b, dim=1, keepdim=True).detach()
    return 2 * torch.asin(torch.linalg.vector_norm(a - b, dim=1) / 2)
""",
            "the lengths have gradients too",
        ),
        (
            "growing-boundary-loss",
            """\
def growing_boundary_loss(d_negative, differences, boundary):
    size = differences.detach().abs()
    return (boundary * size / size.mean() - d_negative.detach()).clamp(min=0).mean() + 0 * d_negative.sum()
""",
            "-1/4 for each negative that costs",
        ),
        (
            "costs",
            """\
def costs(d_positive, d_negative, boundary, margin):
    return (d_positive - boundary - margin).relu(), (boundary - d_negative).relu()
""",
            "the margin goes the other way: brackets?",
        ),
        (
            "costs",
            """\
def costs(d_positive, d_negative, boundary, margin):
    return d_positive - (boundary - margin), boundary - d_negative
""",
            "some costs are negative",
        ),
        (
            "log-ratio-loss",
            """\
def log_ratio_loss(codes, y, triplets):
    a, i, j = triplets.T
    ratio = (codes[a] - codes[i]).norm(dim=1) / (codes[a] - codes[j]).norm(dim=1)
    wanted = (y[a] - y[i]).abs() / (y[a] - y[j]).abs()
    return (ratio.log() - wanted.log()).square().mean()
""",
            "D is the squared distance",
        ),
        (
            "log-ratio-loss",
            """\
def log_ratio_loss(codes, y, triplets):
    a, i, j = triplets.T
    near, far = (codes[a] - codes[i]).square().sum(dim=1), (codes[a] - codes[j]).square().sum(dim=1)
    wanted = (y[a] - y[i]).log() - (y[a] - y[j]).log()
    return (near.log() - far.log() - wanted).square().mean()
""",
            "it is NaN",
        ),
        (
            "angle",
            """\
def angle(a, b):
    cosine = torch.nn.functional.cosine_similarity(a, b)
    return cosine.clamp(max=1 - 1e-6).acos()
""",
            "a cosine that is cut off below 1",
        ),
        (
            "angle",
            """\
def angle(a, b):
    a = a / torch.linalg.vector_norm(a, dim=1, keepdim=True)
    b = b / torch.linalg.vector_norm(b, dim=1, keepdim=True)
    return torch.asin(torch.linalg.vector_norm(a - b, dim=1) / 2)
""",
            "this is half the angle",
        ),
        (
            "hardest-loss",
            """\
def hardest_loss(d_positive, d_negative, boundary, margin):
    positive = (d_positive.max(dim=1).values - (boundary - margin)).relu()
    negative = (boundary - d_negative.max(dim=1).values).relu()
    return (positive + negative).mean() / 2
""",
            "the nearest one is worst",
        ),
        (
            "hardest-loss",
            """\
def hardest_loss(d_positive, d_negative, boundary, margin):
    positive = (d_positive.max(dim=1).values - (boundary - margin)).relu()
    negative = (boundary - d_negative.min(dim=1).values).relu()
    return (positive + negative).mean()
""",
            "not their sum",
        ),
        (
            "hardest-loss",
            """\
def hardest_loss(d_positive, d_negative, boundary, margin):
    total = 0.0
    for positives, negatives in zip(d_positive.tolist(), d_negative.tolist()):
        total += max(max(positives) - (boundary - margin), 0) + max(boundary - min(negatives), 0)
    return torch.tensor(total / (2 * len(d_positive)))
""",
            "a gradient flows to the distances",
        ),
        (
            "growing-boundary-loss",
            """\
def growing_boundary_loss(d_negative, differences, boundary):
    size = differences.detach().abs()
    return (boundary * size / size.mean(dim=1, keepdim=True) - d_negative).relu().mean()
""",
            "not of a row or a column",
        ),
        (
            "growing-boundary-loss",
            """\
def growing_boundary_loss(d_negative, differences, boundary):
    constant = differences.detach()
    return (boundary * constant / constant.abs().mean() - d_negative).relu().mean()
""",
            "use its size",
        ),
        (
            "choose-parameters",
            """\
def choose_parameters(d_positive, d_negative, share):
    boundary = d_negative.quantile(share).item()
    return boundary, boundary - d_positive.quantile(share).item(), 3 / d_positive.std().item()
""",
            "30 %",
        ),
        (
            "choose-parameters",
            """\
def choose_parameters(d_positive, d_negative, share):
    boundary = d_negative.quantile(share).item()
    return boundary, d_positive.quantile(1 - share).item(), 3 / d_positive.std().item()
""",
            "30 %",
        ),
        (
            "angle",
            """\
def angle(a, b):
    cosine = (a * b).sum(dim=1) / (a.norm(dim=1) * b.norm(dim=1))
    return cosine.clamp(max=1 - 1e-14).acos()
""",
            "their angle is exactly 0",
        ),
        (
            "angle",
            """\
def angle(a, b):
    a = a / torch.linalg.vector_norm(a, dim=1, keepdim=True)
    b = b / torch.linalg.vector_norm(b, dim=1, keepdim=True)
    return 2 * torch.asin(((a - b).square().sum(dim=1) + 1e-16).sqrt() / 2)
""",
            "their angle is exactly 0",
        ),
        (
            "angle",
            """\
def angle(a, b):
    a = a / torch.linalg.vector_norm(a, dim=1, keepdim=True)
    b = b / torch.linalg.vector_norm(b, dim=1, keepdim=True)
    straight = torch.linalg.vector_norm(a - b, dim=1)
    return straight + (2 * torch.asin(straight / 2) - straight).detach()
""",
            "length 1 / its code's",
        ),
        (
            "hardest-loss",
            """\
def hardest_loss(d_positive, d_negative, boundary, margin):
    positive = (d_positive.max(dim=1).values - (boundary - margin)).relu()
    negative = (boundary - margin - d_negative.min(dim=1).values).relu()
    return (positive + negative).mean() / 2
""",
            "the margin does not concern them",
        ),
        (
            "choose-parameters",
            """\
def choose_parameters(d_positive, d_negative, share):
    boundary = d_negative.quantile(share).item()
    return boundary, boundary - d_positive.quantile(1 - share).item(), 10 / d_negative.mean().item()
""",
            "45 % of each",
        ),
        (
            "choose-parameters",
            """\
def choose_parameters(d_positive, d_negative, share):
    boundary = d_negative.quantile(share).item()
    return boundary, boundary - d_positive.quantile(1 - share).item(), 3 / d_positive.std().item()
""",
            "20 % of each",
        ),
        (
            "choose-parameters",
            """\
def choose_parameters(d_positive, d_negative, share):
    boundary = d_negative.quantile(share).item()
    low, high = 0.0, 1e4 / d_negative.std().item()
    for _ in range(60):
        middle = (low + high) / 2
        largest = (-middle * d_negative).softmax(dim=1).max(dim=1).values.mean()
        low, high = (middle, high) if largest < 0.6 else (low, middle)
    return boundary, boundary - d_positive.quantile(1 - share).item(), low
""",
            "45 % of each",
        ),
    ],
}
