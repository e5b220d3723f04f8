"""Test that training on workers gives the results of training in one process."""

import dask
import dask.array as da
import numpy as np
import pytest
from reference import kernels_with
from scipy import sparse

import dcsvm
from dcsvm.distributed import train


def cut(X, y, size=700):
    return da.from_array(X, (size, -1)), da.from_array(y, size)


@pytest.mark.parametrize(
    "options",
    [
        {"C": 4, "gamma": 0.5},
        {"C": 4, "gamma": 0.5, "levels": 2, "bias": True},
        {"C": 4, "gamma": 50},
        {"C": 4, "gamma": 0.5, "levels": 2, "clustering": "adaptive"},
        {"svm_type": "epsilon_svr", "C": 2, "gamma": 0.5},
        {"svm_type": "nu_svc", "nu": 0.3, "gamma": 0.5},
    ],
    ids=["plain", "bias", "groups", "adaptive", "svr", "nu"],
)
def test_the_exact_model_is_that_of_one_process(client, rows_in_spots, options):
    X, y = rows_in_spots
    here = dcsvm.train(X, y, threads=1, **options)
    model = train(client, *cut(X, y), **options)
    report = model.report
    assert report.converged and report.violation <= 1e-3
    assert report.objective == pytest.approx(here.report.objective, rel=1e-5)
    agree = np.isclose(model.decision_function(X), here.decision_function(X), atol=0.02)
    assert agree.mean() > 0.999


def test_of_runs_of_kmeans_that_of_one_process_is_chosen(client, rows_in_spots):
    X, y = rows_in_spots
    options = {"C": 4, "gamma": 0.5, "levels": 2, "clustering": "random", "sample": 300}
    here = dcsvm.train(X, y, threads=1, **options)
    model = train(client, *cut(X, y), **options)
    for level, local in zip(model.report.levels, here.report.levels, strict=True):
        assert (level.n_clusters, level.largest_cluster) == (
            local.n_clusters,
            local.largest_cluster,
        )
    assert np.array_equal(
        model.early.partition.splits[0].child, here.early.partition.splits[0].child
    )


@pytest.mark.parametrize("kernel", kernels_with(0.5, 0.5, 2), ids=lambda one: one.name)
@pytest.mark.parametrize("early", [False, True])
def test_every_kernel_is_that_of_one_process(client, rows_in_spots, kernel, early):
    X, y = (one[:2000] for one in rows_in_spots)
    options = {"kernel": kernel.name, **kernel.parameters, "C": 0.5}
    if early:
        options |= {"early": True, "early_level": 1}
    here, model = dcsvm.train(X, y, threads=1, **options), train(client, *cut(X, y), **options)
    assert model.kernel == here.kernel
    found = model.decision_function(X[:40])
    alone = [model.decision_function(row[None])[0] for row in X[:40]]
    assert np.allclose(found, alone, rtol=1e-9, atol=1e-9, equal_nan=True)
    if not early and kernel.is_positive_semidefinite:
        objective = here.report.objective
        assert model.report.objective == pytest.approx(objective, rel=1e-3)
    assert np.mean(model.predict(X) == here.predict(X)) > (0.9 if early else 0.97)


def test_sparse_chunks_are_trained_on_as_one_matrix(client):
    rng = np.random.default_rng(1)
    X = sparse.random(1200, 200, 0.03, format="csr", dtype=np.float32, random_state=rng)
    y = np.where(np.asarray(X[:, :40].sum(axis=1)).ravel() > 0.8, 1.0, -1.0)
    here = dcsvm.train(X, y, C=10, gamma=0.5, threads=1)
    cuts = [slice(begin, begin + 300) for begin in range(0, 1200, 300)]
    rows, labels = ([dask.delayed(one[own]) for own in cuts] for one in (X, y))
    model = train(client, rows, labels, C=10, gamma=0.5)
    assert model.report.objective == pytest.approx(here.report.objective, rel=1e-5)
    assert np.allclose(model.decision_function(X), here.decision_function(X), atol=0.01)


@pytest.mark.parametrize("how", [{}, {"early": True, "branching": 2}], ids=str)
def test_far_indices_take_the_memory_of_near_ones(client, how):
    rng = np.random.default_rng(5)
    n_features = 2**31 - 2
    columns = np.unique(rng.integers(0, n_features, 200))

    def far(X):
        return sparse.csr_matrix((X.data, columns[X.indices], X.indptr), (X.shape[0], n_features))

    X = sparse.random(1200, 200, 0.03, "csr", np.float32, random_state=rng)
    y = np.where(np.asarray(X[:, :100].sum(1) - X[:, 100:].sum(1)).ravel() > 0, 1.0, -1.0)
    models = []
    for rows in (X, far(X)):
        test = (rows[:100], y[:100]) if how else None
        parts = [[dask.delayed(one[begin : begin + 400]) for begin in (0, 400, 800)]
                 for one in (rows, y)]  # fmt: skip
        model = train(client, *parts, C=10, gamma=0.5, test=test, **how)
        if not how:
            model = train(client, *parts, C=20, gamma=0.5, init_model=model)
        models.append(model)
    near, distant = (one.early or one.exact for one in models)
    np.testing.assert_array_equal(distant.dual_coef, near.dual_coef)
    assert distant.rows.n_features == n_features
    np.testing.assert_array_equal(distant.rows.csr.indices, columns[near.rows.csr.indices])
    np.testing.assert_allclose(
        models[1].decision_function(far(X[:50])), models[0].decision_function(X[:50]), atol=1e-6
    )
    model = train(client, *parts, C=10, levels=0)
    assert model.kernel.gamma == 1 / n_features


def test_dataframes_and_labels_that_are_strings(client, rows_in_spots):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = (one[:1500] for one in rows_in_spots)
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=np.where(y > 0, "yes", "no"))
    cut = dd.from_pandas(frame, npartitions=3)
    model = train(client, cut[["a", "b", "c"]], cut["label"], C=4, gamma=0.5)
    assert sorted(model.labels.tolist()) == ["no", "yes"]
    assert np.mean((model.predict(X) == "yes") == (y > 0)) > 0.9


def test_equal_rows_are_merged_across_chunks(client, rows_in_spots):
    X, y = (np.tile(one[:700], (3,) + (1,) * (one.ndim - 1)) for one in rows_in_spots)
    here = dcsvm.train(X, y, C=2, gamma=0.5, threads=1)
    model = train(client, *cut(X, y, 600), C=2, gamma=0.5)
    assert model.report.n_duplicates == here.report.n_duplicates == 1400
    assert model.report.objective == pytest.approx(here.report.objective, rel=1e-5)
    assert np.array_equal(model.exact.row_numbers, here.exact.row_numbers)


def test_weights_and_a_model_to_begin_with_count_as_here(client, rows_in_spots):
    X, y = (one[:1500] for one in rows_in_spots)
    weight = np.random.default_rng(0).integers(0, 3, 1500).astype(float)
    options = {"C": 4, "gamma": 0.5}
    here = dcsvm.train(X, y, sample_weight=weight, threads=1, **options)
    model = train(client, *cut(X, y), sample_weight=weight, init_model=here, **options)
    assert model.report.objective == pytest.approx(here.report.objective, rel=1e-5)
    assert np.all(weight[model.exact.row_numbers] > 0)


def test_test_rows_choose_the_early_level(client, rows_in_spots):
    X, y = rows_in_spots
    test = X[4000:], y[4000:]
    options = {"C": 4, "gamma": 0.5, "early": True, "test": test}
    here = dcsvm.train(X[:4000], y[:4000], threads=1, **options)
    model = train(client, *cut(X[:4000], y[:4000]), **options)
    assert model.report.early_choice.on_test_rows
    assert model.report.early_choice.level == here.report.early_choice.level


def test_probabilities_are_those_of_one_machine(client, rows_in_spots):
    X, y = (one[:3000] for one in rows_in_spots)
    options = {"C": 4, "gamma": 0.5, "levels": 1, "probability": True}
    here = dcsvm.train(X, y, threads=1, **options)
    model = train(client, *cut(X, y), **options)
    gap = model.predict_probability(X) - here.predict_probability(X)
    assert np.abs(gap).max() < 0.05


def test_a_stopped_run_says_so(client, rows_in_spots):
    with pytest.raises(dcsvm.Stopped):
        train(client, *cut(*rows_in_spots), C=4, stop=dcsvm.Stop(seconds=0))


@pytest.mark.parametrize(
    ("given", "error", "reason"),
    [
        ({"stop": 5}, TypeError, "stop must be a dcsvm.Stop"),
        ({"test": ([[1.0]], [1])}, ValueError, "test rows require early models"),
        ({"C": -1}, ValueError, "C must be positive"),
        ({"cost": 1}, TypeError, "unknown option 'cost'"),
    ],
)
def test_arguments_are_checked_as_here(client, rows_in_spots, given, error, reason):
    with pytest.raises(error, match=reason):
        train(client, *cut(*rows_in_spots), **given)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential"])
@pytest.mark.parametrize("gamma", ["auto", "2/median"])
def test_a_gamma_of_the_rows_is_that_of_one_process(client, rows_in_spots, kernel, gamma):
    X, y = (one[:2000] for one in rows_in_spots)
    options = {"kernel": kernel, "gamma": gamma, "C": 0.5}
    here, model = dcsvm.train(X, y, **options), train(client, *cut(X, y), **options)
    rounding = 1e-9 if gamma == "auto" else 0
    assert model.kernel.gamma == pytest.approx(here.kernel.gamma, rel=rounding, abs=0)
    assert model.report.gamma == model.kernel.gamma
    assert np.mean(model.predict(X) == here.predict(X)) > 0.97


def test_a_median_of_sparse_chunks_is_that_of_one_matrix(client):
    rng = np.random.default_rng(1)
    X = sparse.random(1200, 200, 0.03, format="csr", dtype=np.float32, random_state=rng)
    y = np.where(np.asarray(X[:, :40].sum(axis=1)).ravel() > 0.8, 1.0, -1.0)
    rows, labels = ([dask.delayed(one[:500]), dask.delayed(one[500:])] for one in (X, y))
    model = train(client, rows, labels, gamma="2/median")
    assert model.kernel == dcsvm.train(X, y, gamma="2/median").kernel
