"""Test svm-train's models in dcsvm-predict, and ours in svm-predict, for every type."""

import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from reference import libsvm

from dcsvm.cli.predict import main
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import partition_of
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel, Probability
from dcsvm.model.reader import load_model
from dcsvm.problem.option_table import SVM_TYPES

CASES = {
    "two classes": ("c_svc", (1, -1), ["-c", "4"]),
    "linear": ("c_svc", (1, -1), ["-t", "0"]),
    "three classes": ("c_svc", (3, -1, 2), ["-c", "4", "-w2", "3"]),
    "five classes": ("c_svc", (5, 1, 9, -4, 0), ["-c", "4", "-t", "1", "-r", "1"]),
    "one class of labels": ("c_svc", (7,), []),
    "nu, two classes": ("nu_svc", (2, 7), ["-n", "0.3"]),
    "nu, five classes": ("nu_svc", (5, 1, 9, -4, 0), ["-n", "0.3"]),
    "one-class": ("one_class", (1, -1), ["-n", "0.2"]),
    "one-class, rho inf": ("one_class", (1, -1), ["-n", "1"]),
    "epsilon": ("epsilon_svr", None, ["-p", "0.2"]),
    "nu regression": ("nu_svr", None, ["-t", "3", "-g", "0.1", "-n", "0.4"]),
}


def generated(labels, n=240, seed=1):
    """Return rows of four features, and as labels bands of a surface, or the surface itself.

    The features have three digits, which svm-train writes without a loss.
    """
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-1, 1, (n, 4)), 3)
    X[rng.random(X.shape) < 0.2] = 0
    surface = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=n)
    if labels is None:
        return X, np.round(surface, 4)
    bands = np.searchsorted(np.sort(surface), surface) * len(labels) // n
    return X, np.array(labels, float)[bands]


class Session:
    """Generated files of one case, and commands that use them."""

    def __init__(self, case, folder, write_libsvm):
        self.svm_type, self.labels, self.options = CASES[case]
        self.folder = folder
        self.train_file = write_libsvm(*generated(self.labels), "train.txt")
        self.X, self.y = generated(self.labels, seed=2)
        self.test_file = write_libsvm(self.X, self.y, "test.txt")

    def train(self, *more):
        path = self.folder / "svm-train.model"
        number = SVM_TYPES.index(self.svm_type)
        libsvm("svm-train", "-s", number, "-g", 0.7, *self.options, *more, self.train_file, path)
        return path

    def theirs(self, model, *options):
        """Return the file and the standard output of svm-predict."""
        said = libsvm("svm-predict", *options, self.test_file, model, self.folder / "theirs")
        return (self.folder / "theirs").read_text(), said

    def ours(self, model, *options):
        arguments = [*options, self.test_file, model, self.folder / "ours"]
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert done.exit_code == 0, done.stderr
        return (self.folder / "ours").read_text(), done.stdout


@pytest.fixture(params=CASES)
def session(request, tmp_path, write_libsvm):
    return Session(request.param, tmp_path, write_libsvm)


def same_up_to(limit, ours, theirs):
    """Require equal texts, except that numbers may differ by at most `limit`."""
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")
    assert number.sub("#", ours) == number.sub("#", theirs)
    a, b = (np.array(number.findall(text), dtype=float) for text in (ours, theirs))
    assert np.abs(a - b).max() <= limit


def test_svm_train_s_models_predict_as_svm_predict_does(session):
    model = session.train()
    (ours, said), (theirs, they_said) = session.ours(model), session.theirs(model)
    if session.svm_type.endswith("svr"):
        same_up_to(1e-5, ours, theirs)
        same_up_to(1e-5, said, they_said)
    else:
        assert ours == theirs
        assert said == they_said


def test_svm_train_s_probabilities_are_as_svm_predict_s(session):
    if session.svm_type == "one_class":
        pytest.skip("svm-train has no probabilities of one class")
    model = session.train("-b", "1")
    (ours, said), (theirs, they_said) = session.ours(model, "-b", "1"), session.theirs(model, "-b", "1")  # fmt: skip  # noqa: E501
    same_up_to(1e-5, ours, theirs)
    same_up_to(1e-5, said, they_said)
    if session.labels:
        heads = [[line.split()[0] for line in text.splitlines()] for text in (ours, theirs)]
        assert heads[0] == heads[1]
        assert said == they_said
    assert session.ours(model, "-b", "0")[1].splitlines()[0] == (
        "Model supports probability estimates, but disabled in prediction."
    )
    assert session.ours(model, "-b", "1", "-q")[1] == ""


@pytest.mark.parametrize("probability", ["0", "1"])
def test_a_model_read_and_written_is_svm_train_s_but_for_the_form_of_numbers(session, probability):
    if session.svm_type == "one_class" and probability == "1":
        pytest.skip("svm-train has no probabilities of one class")
    path = session.train("-b", probability)
    model = load_model(path)
    again = session.folder / "again.model"
    for format in ("dcsvm", "libsvm"):
        model.save(again, format)
        assert lines_of(again) == lines_of(path)
        assert session.theirs(again, "-b", probability) == session.theirs(path, "-b", probability)
    numbered = replace(model.exact, row_numbers=np.arange(model.exact.rows.n_samples))
    replace(model, exact=numbered).save(again)
    assert "dcsvm_section" in again.read_text()
    assert session.theirs(again, "-b", probability) == session.theirs(path, "-b", probability)


def lines_of(path):
    """Return the words of each line of a file, numbers as float."""

    def read(word):
        return float(word) if re.fullmatch(r"[-+.\de]+", word) else word

    lines = path.read_text().replace(":", " : ").splitlines()
    return [[read(word) for word in line.split()] for line in lines]


def test_what_libsvm_cannot_hold_is_refused_in_its_format(tmp_path):
    rows = Rows.from_array(np.eye(2))
    exact = ExactModel(rows, np.ones((1, 2)), np.zeros(1), np.ones(2, int), np.arange(2))
    partition = partition_of(Kernel("linear"), rows, np.array([2]), [np.arange(2)], 0.0)
    early = EarlyModel(1, partition, np.zeros(2, np.int32), np.arange(2, dtype=np.int32), rows,
                       np.ones((1, 2)), np.zeros((2, 1)), np.arange(2))  # fmt: skip
    labels = np.array([0.5, 1.0])
    path = tmp_path / "a.model"
    with pytest.raises(ValueError, match="labels must be integers, got 0.5"):
        Model(Kernel("rbf"), labels, exact, None).save(path, format="libsvm")
    with pytest.raises(ValueError, match="no early models, and this model has no exact solution"):
        Model(Kernel("rbf"), 2 * labels, None, early).save(path, format="libsvm")
    assert not path.exists()


def test_a_regression_s_sigma_is_said_as_svm_predict_says_it(tmp_path, write_libsvm):
    session = Session("epsilon", tmp_path, write_libsvm)
    path = session.train()
    model = replace(load_model(path), probability=Probability(np.array([0.25])))
    model.save(path)
    assert session.ours(path, "-b", "1")[1].splitlines()[:2] == [
        "Prob. model for test data: target value = predicted value + z,",
        "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma=0.25",
    ]
    assert session.theirs(path, "-b", "1")[1].splitlines()[1].endswith("sigma=0.25")
