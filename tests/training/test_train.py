"""Test dcsvm.train: labels of any kind, checks of options, stops after the solution is complete."""

import warnings
from dataclasses import MISSING, fields

import numpy as np
import pytest
from runs import train_rows

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training.report import Progress
from dcsvm.training.state import Checkpoint, RunControl

OPTIONS = {"C": 4.0, "gamma": 2.0, "threads": 2, "cache_mb": 50}
WORDS = np.array(["wax", "bee", "honey"])


class StopWhen(Progress):
    """Progress that requests a stop when a phase begins, or at its first advance."""

    def __init__(self, name, *, at_once=True):
        self.stop, self.name, self.at_once, self.now = dcsvm.Stop(), name, at_once, None

    def begin(self, name, n_rows):
        self.now = name
        if self.at_once:
            self.advance(0)

    def advance(self, *_where):
        if self.now == self.name:
            self.stop.request()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("levels", [0, 2])
def test_a_stop_while_probabilities_are_fitted_leaves_the_solution_as_it_is(
    wavy, levels, at_once, tmp_path
):
    rows, y = Rows.from_array(wavy[0]), wavy[1]
    options = TrainOptions(**OPTIONS, probability=True, levels=levels, branching=3)
    whole, _ = train_rows(rows, y, options)
    progress = StopWhen("probabilities", at_once=at_once)
    kept = Checkpoint(tmp_path / "kept")
    model, report = train_rows(rows, y, options, RunControl(progress, progress.stop, kept))
    assert report.converged and report.stopped and report.missing == ["probabilities"]
    assert model.exact.status.converged and model.probability is None
    assert model.exact.dual_coef.tobytes() == whole.exact.dual_coef.tobytes()
    assert report.violation <= 1e-3 and report.n_variables_checked > 0
    resumed = RunControl(checkpoint=Checkpoint(tmp_path / "kept", resume=True))
    again, report = train_rows(rows, y, options, resumed)
    assert report.missing == [] and not report.stopped
    assert np.allclose(again.probability.A, whole.probability.A, rtol=1e-2)


def test_the_report_of_a_resumed_run_counts_all_steps(wavy, tmp_path):
    rows, y = Rows.from_array(wavy[0]), wavy[1]
    options = TrainOptions(**OPTIONS, levels=2, branching=3)
    progress = StopWhen("conquer")
    train_rows(rows, y, options, RunControl(progress, progress.stop, Checkpoint(tmp_path / "kept")))
    resumed = RunControl(checkpoint=Checkpoint(tmp_path / "kept", resume=True))
    _, report = train_rows(rows, y, options, resumed)
    assert report.evaluations_by_phase["levels"] > 0 and report.evaluations_by_phase["gradient"] > 0
    steps = sum(n for step, n in report.evaluations_by_phase.items() if step != "check")
    assert steps == report.kernel_evaluations


def test_python_is_warned_of_what_a_stop_left_out(wavy):
    progress = StopWhen("probabilities")
    with pytest.warns(UserWarning, match="stopped, the model is converged; missing: probabilities"):
        dcsvm.train(*wavy, **OPTIONS, probability=True, progress=progress, stop=progress.stop)


# ---------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("dtype", [str, object])
@pytest.mark.parametrize("svm_type", ["c_svc", "nu_svc"])
def test_labels_that_are_strings_come_back(wavy, svm_type, dtype):
    X = wavy[0]
    number = np.digitize(X[:, 0], [0.4, 0.6])
    words = WORDS[number].astype(dtype)
    options = OPTIONS | {"svm_type": svm_type, "nu": 0.2, "probability": True}
    of_words = dcsvm.train(X, words, **options)
    of_numbers = dcsvm.train(X, number, **options)
    assert of_words.labels.tolist() == [WORDS[int(k)] for k in of_numbers.labels]
    assert of_words.exact.dual_coef.tobytes() == of_numbers.exact.dual_coef.tobytes()
    predicted = of_words.predict(X)
    assert predicted.dtype.kind == "U"
    assert np.array_equal(predicted, WORDS[of_numbers.predict(X).astype(int)])
    assert of_words.predict_probability(X[:5]).shape == (5, 3)


def test_a_model_describes_itself_in_a_line(wavy):
    model = dcsvm.train(*wavy, **OPTIONS, levels=1, branching=4)
    n_exact, n_early = model.exact.rows.n_samples, model.early.rows.n_samples
    assert repr(model) == (
        f"Model(c_svc, rbf(gamma=2), 2 classes, exact: {n_exact} support vectors, "
        f"early: {n_early} support vectors in 4 clusters)"
    )


def test_a_file_keeps_labels_of_text(wavy, tmp_path):
    model = dcsvm.train(wavy[0], np.where(wavy[1] > 0, "oui, oui", "n\u00f3"), **OPTIONS)
    model.save(tmp_path / "a.model")
    loaded = dcsvm.load_model(tmp_path / "a.model")
    assert np.array_equal(loaded.labels, model.labels)
    assert np.array_equal(loaded.predict(wavy[0]), model.predict(wavy[0]))
    with pytest.raises(ValueError, match="LIBSVM's labels must be integers, got text"):
        model.save(tmp_path / "b.model", "libsvm")
    assert not (tmp_path / "b.model").exists()


def test_a_checkpoint_of_strings_is_gone_on_from(wavy, tmp_path):
    words = np.where(wavy[1] > 0, "yes", "no")
    options = OPTIONS | {"levels": 2, "branching": 2, "early_level": 2}
    progress = StopWhen("level 1")
    model = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dcsvm.train(wavy[0], words, **options, progress=progress, stop=progress.stop,
                            checkpoint=Checkpoint(tmp_path / "c"))  # fmt: skip
    assert set(model.predict(wavy[0], method="early")) == {"yes", "no"}
    kept = Checkpoint(tmp_path / "c", resume=True)
    resumed = dcsvm.train(wavy[0], words, **options, checkpoint=kept)
    whole = dcsvm.train(wavy[0], words, **options)
    assert np.array_equal(resumed.predict(wavy[0]), whole.predict(wavy[0]))
    other = Checkpoint(tmp_path / "c", resume=True)
    with pytest.raises(ValueError, match="other labels"):
        dcsvm.train(wavy[0], words[::-1], **options, checkpoint=other)


def test_a_weight_of_a_class_that_is_a_string(wavy):
    words = np.where(wavy[1] > 0, "yes", "no")
    by_word = dcsvm.train(wavy[0], words, **OPTIONS, class_weight={"yes": 3})
    by_number = dcsvm.train(*wavy, **OPTIONS, class_weight={1: 3})
    assert by_word.exact.dual_coef.tobytes() == by_number.exact.dual_coef.tobytes()


@pytest.mark.parametrize("y, told", [
    (["a", 1.0] * 500, "labels must be numbers, or strings all of them"),
    ([1j, 1.0] * 500, "labels must be numbers, or strings all of them"),
    ([2**60, 1] * 500, "within 2\\^53"),
    ([np.nan, 1] * 500, "the label of row 0 is missing"),
    (["a"] * 1000, "needs two classes, found one: 'a'"),
])  # fmt: skip
def test_labels_that_cannot_be_used(wavy, y, told):
    with pytest.raises(ValueError, match=told):
        dcsvm.train(wavy[0], np.array(y, object), **OPTIONS)


def test_targets_are_numbers(wavy):
    with pytest.raises(ValueError, match="targets of a regression must be numbers"):
        dcsvm.train(wavy[0], ["a", "b"] * 500, svm_type="epsilon_svr")


# --------------------------------------------------------------------------------------- options


def test_help_lists_every_option_with_its_default():
    text = dcsvm.train.__doc__
    for field in fields(TrainOptions):
        default = None if field.default is MISSING else field.default
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        line = text[text.index(f"{field.name} (") :].split(")")[0]
        assert line.endswith(f", {shown}"), (field.name, line)


@pytest.mark.parametrize("options, error, told", [
    ({"gamma": "scale"}, ValueError, "gamma must be a number, 'auto' or F/median or None, got"),
    ({"cache_mb": 1}, ValueError, "cache_mb must be at least"),
    ({"gama": 1}, TypeError, "unknown option 'gama'; did you mean 'gamma'"),
])  # fmt: skip
def test_an_option_that_cannot_be_is_named(wavy, options, error, told):
    with pytest.raises(error, match=told):
        dcsvm.train(*wavy, **options)


@pytest.mark.parametrize("name, kind", [
    ("progress", "Progress"), ("stop", "Stop"), ("checkpoint", "Checkpoint"),
    ("init_model", "Model"),
])  # fmt: skip
def test_an_object_of_another_kind_is_named(wavy, name, kind):
    with pytest.raises(TypeError, match=f"{name} must be a dcsvm.{kind} or None, not 'run'"):
        dcsvm.train(*wavy, **{name: "run"})


def test_a_weight_of_a_class_that_has_no_rows_is_told(wavy):
    with pytest.warns(UserWarning, match="no row has the label 7, which has a class weight"):
        dcsvm.train(*wavy, **OPTIONS, class_weight={7: 2})


def test_options_without_effect_are_told(wavy):
    X, y = wavy
    with pytest.warns(
        UserWarning, match="class weights are for C-SVC: they have no effect on nu_svc"
    ):
        dcsvm.train(X, y, **OPTIONS, svm_type="nu_svc", nu=0.2, class_weight="balanced")
    with pytest.warns(UserWarning, match="too few for clusters: overlap has no effect"):
        dcsvm.train(X[:100], y[:100], **OPTIONS, overlap=1.5)


def test_a_stop_before_the_solution_tells_what_else_is_missing(wavy):
    progress = StopWhen("level 1")
    with pytest.warns(UserWarning, match="not converged"):
        model = dcsvm.train(*wavy, **OPTIONS, levels=2, branching=2, early_level=2,
                            probability=True, progress=progress, stop=progress.stop)  # fmt: skip
    assert model.report.missing == ["probabilities"] and model.probability is None


def test_one_class_needs_no_labels():
    X = np.random.default_rng(0).normal(size=(60, 2))
    wanted = dcsvm.train(X, np.ones(60), svm_type="one_class", threads=1)
    for found in (
        dcsvm.train(X, None, svm_type="one-class", threads=1),
        dcsvm.train(X, svm_type=2, threads=1),
    ):
        assert np.array_equal(found.exact.dual_coef, wanted.exact.dual_coef)
    for svm_type in ("c_svc", "nu_svr"):
        with pytest.raises(ValueError, match=f"{svm_type} needs labels or targets: y is None"):
            dcsvm.train(X, None, svm_type=svm_type)


def normal_rows(n, d, spread=1.0):
    rng = np.random.default_rng(0)
    X = spread * rng.normal(size=(n, d))
    return X, np.sign(X[:, 0])


@pytest.mark.parametrize("svm_type", ["c_svc", "epsilon_svr", "nu_svr"])
def test_a_kernel_without_values_between_rows_is_told(svm_type):
    X, y = normal_rows(200, 60, 3.0)
    with pytest.warns(UserWarning, match=r"below 0.001, .*--scale auto.*-g 2/median"):
        dcsvm.train(X, y, svm_type=svm_type, gamma=1.0)


def test_a_kernel_without_values_is_told_of_rows_in_a_file(tmp_path):
    """Until training ends, the model only has the numbers of its rows."""
    X, y = normal_rows(200, 60, 3.0)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.warns(UserWarning, match="below 0.001"):
        dcsvm.train(mapped, y, gamma=1.0)


def test_a_flat_kernel_is_told():
    X, _ = normal_rows(200, 5)
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
    with pytest.warns(UserWarning, match=r"above 0.999, .*-g 2/median"):
        dcsvm.train(X, y, gamma=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [{}, {"gamma": 32.0, "C": 32.0}, {"C": 1e-3}], ids=str)
def test_noise_small_C_and_narrow_kernels_are_not_told(options):
    X, y = normal_rows(600, 2)
    noise = np.random.default_rng(1).choice([-1.0, 1.0], 600)
    dcsvm.train(X, y, **options)
    if "gamma" not in options:
        dcsvm.train(X, noise, **options)


def test_early_models_reach_the_tolerance_that_was_asked_for(wavy):
    X, y = wavy
    options = {"C": 10.0, "gamma": 2.0, "early": True, "early_level": 1, "threads": 1}
    fine, coarse = (dcsvm.train(X, y, tolerance=t, **options).early for t in (1e-6, 1e-3))
    assert not np.array_equal(fine.dual_coef, coarse.dual_coef)
