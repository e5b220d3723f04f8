"""Test that both commands parse arguments as svm-train does."""

import click
import pytest
from click.testing import CliRunner

from dcsvm.cli import compress, export, grid, guard, predict, predict_file, train, train_file
from dcsvm.cli.command import OPTION_OF, advice_on, for_click


def rewritten(*args):
    return for_click(list(args), train.main.params)


@pytest.fixture
def given(monkeypatch):
    """Return the options and the job that dcsvm-train parses, by name."""

    def invoke(*args):
        seen = {}

        def do(job, options):
            seen.update(vars(job) | vars(options))
            return 0

        monkeypatch.setattr(guard, "check_files", lambda *_: None)
        monkeypatch.setattr(train_file, "train_file", do)
        result = CliRunner().invoke(train.main, args)
        assert result.exit_code == 0, result.stderr
        return seen

    return invoke


def test_the_value_is_the_next_argument_even_with_a_dash(given):
    options = given("-r", "-2.5e-1", "-c", "+2", "-g", "-0", "data")
    assert (options["coef0"], options["C"], options["gamma"]) == (-0.25, 2.0, None)
    assert (options["training_set_file"], options["model_file"]) == ("data", "data.model")


@pytest.mark.parametrize(
    ("args", "weights"),
    [(["-w1", "3"], {1.0: 3.0}), (["-w-1", "5"], {-1.0: 5.0}), (["-w+1", "5"], {1.0: 5.0}),
     (["-w-1", "5", "-w1", "0.5"], {-1.0: 5.0, 1.0: 0.5}), (["-w2", "+4"], {2.0: 4.0}),
     (["-w1", "2", "-w1", "3"], {1.0: 6.0}), ([], None)],
    ids=str,
)  # fmt: skip
def test_the_label_is_glued_to_w(given, args, weights):
    assert given(*args, "data")["class_weight"] == weights


def test_only_the_first_letter_counts_as_in_svm_train(given):
    options = given("-cost", "5", "-gamma", "2", "-quiet", "-type", "0", "data")
    assert (options["C"], options["gamma"], options["quiet"]) == (5.0, 2.0, True)
    assert options["kernel"] == "linear"


def test_every_option_of_svm_train_is_accepted(given):
    text = "-s 3 -t 1 -d 2 -g 0.5 -r 1 -c 8 -n 0.3 -p 0.01 -m 200.5 -e 0.01 -h 0 -b 1 -w1 3 -q"
    options = given(*text.split(), "data", "out.model")
    wanted = dict(svm_type="epsilon_svr", kernel="polynomial", degree=2, gamma=0.5, coef0=1.0,
                  C=8.0, nu=0.3, epsilon=0.01, cache_mb=201, tolerance=0.01, probability=True,
                  quiet=True)  # fmt: skip
    assert wanted.items() <= options.items()
    assert given("-v", "5", "data")["n_folds"] == 5


def test_the_defaults_are_svm_trains(given):
    wanted = dict(svm_type="c_svc", kernel="rbf", degree=3, gamma=None, coef0=0.0, C=1.0, nu=0.5,
                  epsilon=0.1, tolerance=0.001, probability=False, quiet=False, n_folds=None,
                  class_weight=None, bias=False)  # fmt: skip
    assert wanted.items() <= given("data").items()


def test_options_with_two_dashes_stay_clicks():
    args = ["--early-level=3", "--gap", "0.1", "--bias", "--levels", "-1", "data", "--", "-c5"]
    assert rewritten(*args) == args


def test_a_value_is_never_read_as_an_option():
    assert rewritten("--scale", "-c5", "-r", "-w") == ["--scale", "-c5", "-r", "-w"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [(["-w", "1"], "the label follows -w without a space, as in -w1 5"),
     (["-w1"], "the option -w1 requires a value"),
     (["-c"], "the option -c requires a value"),
     (["-c5", "data"], "no such option: -c5 (a value is the next argument, as in -c 5)"),
     (["-c=5", "data"], "no such option: -c=5 (a value is the next argument, as in -c 5)"),
     (["-g-0.5", "data"], "no such option: -g-0.5 (a value is the next argument, as in -g -0.5)"),
     (["-gap", "0.1"], "no such option: -gap (write --gap)"),
     (["-seed", "1"], "no such option: -seed (write --seed)")],
    ids=str,
)  # fmt: skip
def test_slips_are_errors(args, sentence):
    with pytest.raises(click.UsageError) as caught:
        rewritten(*args)
    assert caught.value.message == sentence


@pytest.mark.parametrize(
    ("name", "advice"),
    [("--gamma", " (gamma is -g)"), ("--gamma=2", " (gamma is -g)"), ("--cost", " (cost is -c)"),
     ("--C", " (c is -c)"), ("--kernel", " (kernel is -t)"),
     ("--kernel-type", " (kernel_type is -t)"), ("--kernel_type", " (kernel_type is -t)"),
     ("--n_jobs", " (n_jobs is --threads)"),
     ("--num_threads", " (num_threads is --threads)"), ("--objective", " (objective is -s)"),
     ("--max_iter", " (did you mean --max-iter?)"), ("--tol", " (tol is -e)"),
     ("--epsilon", " (epsilon is -p)"), ("--random_state", " (random_state is --seed)"),
     ("--cv", " (cv is -v)"), ("--chekpoint", " (did you mean --checkpoint?)"),
     ("--learning-rate", ""), ("--bogus", "")],
    ids=str,
)  # fmt: skip
def test_an_option_that_is_not_there_leads_to_the_one_that_is_meant(name, advice):
    result = CliRunner().invoke(train.main, [name, "2", "data"], prog_name="dcsvm-train")
    plain = name.split("=")[0]
    assert result.exit_code == 2
    assert result.stderr == f"error: no such option: {plain}{advice}; see dcsvm-train --help\n"


@pytest.mark.parametrize("command", [train, grid, predict, compress, export])
def test_words_lead_to_options_that_the_command_has(command):
    options = {name for parameter in command.main.params for name in parameter.opts}
    for word, option in OPTION_OF.items():
        advice = advice_on(word, command.main.params)
        assert (advice == f" ({word} is {option})") == (option in options)
    assert set(OPTION_OF.values()) <= {
        name for one in (train, predict) for parameter in one.main.params for name in parameter.opts
    }


def test_predict_reads_its_options_the_same_way(monkeypatch):
    seen = {}
    monkeypatch.setattr(guard, "check_files", lambda *_: None)
    monkeypatch.setattr(predict_file, "predict_file", lambda job, _: seen.update(vars(job)) or 0)
    assert CliRunner().invoke(predict.main, ["-quiet", "a", "b", "c"]).exit_code == 0
    assert seen["quiet"] is True
    result = CliRunner().invoke(predict.main, ["-q1", "a", "b", "c"])
    assert result.exit_code == 2
    assert "no such option: -q1" in result.stderr
