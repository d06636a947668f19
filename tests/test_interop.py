"""scikit-learn's own tools on targets with NaN, and losses of pytorch-metric-learning."""

import numpy as np
import pandas as pd
import pytest
import torch
from naive import batch_of
from numpy.testing import assert_allclose
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.interop import metric_loss_from, to_indices_tuple, to_torch
from dmls2r_lite.losses import RankedListLoss

SMALL = {"hidden_sizes": (8,), "n_epochs": 2, "max_steps_per_epoch": 3, "random_state": 0}


@pytest.fixture(scope="module")
def split():
    return split_dataset(load_dataset("toy"), 15, 40, seed=0)


class TestScikitLearnTools:
    def test_pandas_output_and_names(self, split):
        model = DMLS2RRegressor(**SMALL).set_output(transform="pandas").fit(split.X_train, split.y_train)
        codes = model.transform(split.X_test)
        assert isinstance(codes, pd.DataFrame)
        assert codes.index.equals(split.X_test.index)
        assert codes.columns.tolist() == [f"dmls2rregressor{i}" for i in range(8)]
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(split.X_test.rename(columns={"x1": "other"}))

    def test_sample_weight_is_refused(self, split):
        with pytest.raises(TypeError, match="sample_weight"):
            DMLS2RRegressor(**SMALL).fit(split.X_train, split.y_train, sample_weight=np.ones(55))


class TestPytorchMetricLearning:
    def test_indices_tuple_by_hand(self):
        positives, negatives = torch.tensor([[5, 7], [6, 5]]), torch.tensor([[1, 2], [0, 3]])
        indices = to_indices_tuple(positives, negatives)
        assert [index.tolist() for index in indices] == [
            [0, 0, 1, 1], [5, 7, 6, 5], [0, 0, 1, 1], [1, 2, 0, 3]
        ]  # fmt: skip

    @pytest.fixture
    def codes(self):
        generator = torch.Generator().manual_seed(0)
        return [
            torch.nn.functional.normalize(
                torch.randn(*shape, 4, generator=generator, dtype=torch.float64), dim=-1
            )
            for shape in ((6,), (6, 3), (6, 3))
        ]

    def test_contrastive_loss_equals_loop(self, codes):
        losses = pytest.importorskip("pytorch_metric_learning.losses")
        loss = metric_loss_from(losses.ContrastiveLoss(pos_margin=0.3, neg_margin=1.1))(batch_of(*codes))
        anchors, positives, negatives = codes
        parts = []
        for members, cost in ((positives, lambda d: d - 0.3), (negatives, lambda d: 1.1 - d)):
            costs = [cost((a - m).norm()) for a, row in zip(anchors, members, strict=True) for m in row]
            above = [c for c in costs if c > 0]  # that library averages over the pairs that cost something
            parts.append(sum(above) / len(above))
        torch.testing.assert_close(loss, sum(parts))

    def test_triplet_loss_equals_loop(self, codes):
        losses = pytest.importorskip("pytorch_metric_learning.losses")
        reducers = pytest.importorskip("pytorch_metric_learning.reducers")
        loss = metric_loss_from(losses.TripletMarginLoss(margin=0.2, reducer=reducers.MeanReducer()))(
            batch_of(*codes)
        )
        anchors, positives, negatives = codes
        costs = [
            torch.relu((a - p).norm() - (a - n).norm() + 0.2)
            for a, ps, ns in zip(anchors, positives, negatives, strict=True)
            for p in ps
            for n in ns
        ]
        torch.testing.assert_close(loss, sum(costs) / len(costs))

    @pytest.mark.parametrize("name", ["ContrastiveLoss", "TripletMarginLoss", "NTXentLoss"])
    def test_drives_step_2(self, name, split):
        losses = pytest.importorskip("pytorch_metric_learning.losses")
        model = DMLS2RRegressor(**SMALL, metric_loss=metric_loss_from(getattr(losses, name)()))
        model.fit(split.X_train, split.y_train)
        alone = DMLS2RRegressor(**SMALL, metric_loss=lambda batch: 0 * RankedListLoss()(batch))
        alone.fit(split.X_train, split.y_train)
        assert not np.array_equal(model.predict(split.X_test), alone.predict(split.X_test))
        assert (model.history_.query("step == 'metric'")["loss"] > 0).all()


def test_nearest_neighbours_in_the_metric_space(split):
    """transform puts the metric space into a pipeline."""
    pipeline = make_pipeline(DMLS2RRegressor(**SMALL), KNeighborsRegressor(1))
    labeled = split.y_train.notna()
    pipeline.fit(split.X_train[labeled], split.y_train[labeled])
    assert_allclose(pipeline.predict(split.X_labeled), split.y_labeled)


class TestToTorch:
    """An exported file, loaded anew, against `predict`."""

    @staticmethod
    def exported(module, rows, path):
        program = torch.export.export(module, (rows,), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
        torch.export.save(program, path)
        return torch.export.load(path).module()

    @staticmethod
    def scripted(module, rows, path):
        torch.jit.script(module).save(path)
        return torch.jit.load(path)

    @pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
    @pytest.mark.parametrize("way", ["exported", "scripted"])
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"n_networks": 3, "feature_scaling": "standard", "target_scaling": "standard"},
            {"metric_space": "before_relu", "feature_scaling": "none", "target_scaling": "none"},
            {
                "encoder": torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh()),
                "schedule": "pairwise_only",
            },
        ],
    )
    def test_estimates_are_those_of_predict(self, split, parameters, way, tmp_path):
        model = DMLS2RRegressor(**SMALL | parameters).fit(split.X_train * 7 + 20, split.y_train * 50 - 3)
        rows, expected = split.X_test * 7 + 20, model.predict(split.X_test * 7 + 20)
        before = torch.get_rng_state()
        module = to_torch(model)
        assert torch.equal(torch.get_rng_state(), before)
        x = torch.tensor(rows.to_numpy())
        loaded = getattr(self, way)(module, x, str(tmp_path / "model.pt2"))
        spread = 50 * split.y_train.std()  # of the target
        assert_allclose(loaded(x), expected, atol=1e-12 * spread, rtol=1e-12)
        assert_allclose(loaded(x[:1] if way == "scripted" else x[:2])[0], expected[0], rtol=1e-12)
        assert_allclose(module.float()(x.float()), expected, atol=1e-5 * spread, rtol=0)
        assert_allclose(model.predict(rows), expected, rtol=0, atol=0)

    def test_vectors_and_images(self):
        rng = np.random.default_rng(0)
        X, Y = rng.uniform(size=(20, 1, 3, 2)), rng.uniform(size=(20, 2))
        Y[12:] = np.nan
        encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 4))
        model = DMLS2RRegressor(encoder=encoder, **SMALL).fit(X, Y)
        assert_allclose(to_torch(model)(torch.tensor(X)), model.predict(X), rtol=1e-12)

    @pytest.mark.parametrize("model", [KNeighborsRegressor(), make_pipeline(DMLS2RRegressor()), None])
    def test_another_model_is_refused(self, model):
        with pytest.raises(ParameterError, match=r"^model must be a DMLS2RRegressor, got "):
            to_torch(model)

    def test_another_head_is_refused(self, split):
        class Difference(torch.nn.Module):
            def forward(self, z_i, z_j):
                return (z_i - z_j).sum(-1)

        model = DMLS2RRegressor(head=Difference(), **SMALL).fit(split.X_train, split.y_train)
        with pytest.raises(ValueError, match="head must be a LinearPairHead, got Difference"):
            to_torch(model)
