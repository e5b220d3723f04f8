"""Test TrainOptions: every type, every limit, and options that exclude each other."""

import pickle
import subprocess
import sys
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from dcsvm.kernel.kernels import NAMES
from dcsvm.problem.option_table import (
    SVM_NAMES,
    SVM_TYPES,
    OptionError,
    option_of,
)
from dcsvm.problem.options import TrainOptions


def reason(**options):
    """Return the error message for an invalid value of the last option."""
    with pytest.raises(OptionError) as caught:
        TrainOptions.of(**options)
    assert str(caught.value) == f"{caught.value.option} {caught.value.reason}"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_field_is_in_the_table_and_its_default_keeps_its_rule():
    assert TrainOptions.of() == TrainOptions()
    for field in fields(TrainOptions):
        option = option_of(field)
        assert option.names and option.help and option.group, field.name
        assert TrainOptions.check(field.name, field.default) == field.default


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"C": -1}, "C must be positive and finite, got -1"),
     ({"C": 0}, "C must be positive and finite, got 0"),
     ({"C": float("nan")}, "C must be positive and finite, got nan"),
     ({"C": 10**400}, "C must be positive and finite, got inf"),
     ({"C": None}, "C must be a number, got None"),
     ({"C": True}, "C must be a number, got True"),
     ({"C": np.bool_(True)}, f"C must be a number, got {np.bool_(True)!r}"),
     ({"C": "1"}, "C must be a number, got '1'"),
     ({"C": 1 + 2j}, "C must be a number, got (1+2j)"),
     ({"gamma": "scale"}, "gamma must be a number, 'auto' or F/median or None, got 'scale'"),
     ({"gamma": "x/median"}, "gamma must be a number, 'auto' or F/median or None, got 'x/median'"),
     ({"gamma": "/median"}, "gamma must be a number, 'auto' or F/median or None, got '/median'"),
     ({"gamma": [2]}, "gamma must be a number, 'auto' or F/median or None, got [2]"),
     ({"gamma": "0/median"},
      "gamma must be F/median with a positive and finite F, got '0/median'"),
     ({"gamma": "inf/median"},
      "gamma must be F/median with a positive and finite F, got 'inf/median'"),
     ({"gamma": -1}, "gamma must be at least 0 and finite, got -1"),
     ({"coef0": float("inf")}, "coef0 must be finite, got inf"),
     ({"degree": 2.0}, "degree must be a whole number, got 2.0"),
     ({"degree": 2**31 - 1}, "degree must be at most 2147483646, got 2147483647"),
     ({"nu": 1.5}, "nu must be above 0 and at most 1, got 1.5"),
     ({"epsilon": -0.5}, "epsilon must be at least 0 and finite, got -0.5"),
     ({"levels": 31}, "levels must be at most 30, got 31"),
     ({"levels": 4.0}, "levels must be a whole number or None, got 4.0"),
     ({"levels": False}, "levels must be a whole number or None, got False"),
     ({"seed": None}, "seed must be a whole number, got None"),
     ({"threads": 1025}, "threads must be at most 1024, got 1025"),
     ({"cache_mb": 2e9}, "cache_mb must be positive and at most 1000000000, got 2e+09"),
     ({"max_iterations": 0}, "max_iterations must be at least 1 (or -1 for no limit), got 0"),
     ({"bias": 1}, "bias must be True or False, got 1"),
     ({"early": None}, "early must be True or False, got None"),
     ({"clustering": "x"}, "clustering must be one of tree, adaptive, random, kmeans, got 'x'"),
     ({"clustering": "random", "early": True},
      "clustering must be tree or kmeans for early models, got random, unless the number of "
      "levels and the early level are given"),
     ({"clustering": "adaptive", "early": True, "levels": 2, "early_level": "auto"},
      "clustering must be tree or kmeans for early models, got adaptive, unless the number of "
      "levels and the early level are given"),
     ({"gap": 0.1, "early": True},
      "gap is not available for early models, which reach the tolerance"),
     ({"certify": True, "early": True},
      "certify is not available for early models, which are not exact"),
     ({"branching": 300}, "branching must be at most 256, got 300"),
     ({"kernel": 2}, f"kernel must be one of {', '.join(NAMES)}, got 2"),
     ({"svm_type": []}, "svm_type must be one of c_svc, nu_svc, one_class, epsilon_svr, nu_svr, "
      "got []")],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_named_with_what_it_must_be(options, sentence):
    assert reason(**options) == sentence


def test_a_large_value_is_not_shown_whole():
    assert len(reason(C=np.ones((99, 99)))) < 100
    assert len(reason(kernel="rbf" * 999)) < 150


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"class_weight": "equal"},
      "class_weight must be a dict of label: factor or 'balanced' or None, got 'equal'"),
     ({"class_weight": {1: 0}}, "class_weight must be positive and finite, got 0 for class 1"),
     ({"class_weight": {"a": -2}},
      "class_weight must be positive and finite, got -2 for class 'a'"),
     ({"class_weight": {2.5: "x"}}, "class_weight must be a number, got 'x' for class 2.5"),
     ({"class_weight": {None: 1}},
      "class_weight keys must be labels, finite numbers or strings, got None"),
     ({"class_weight": {float("nan"): 1}},
      "class_weight keys must be labels, finite numbers or strings, got nan"),
     ({"C": 1e300}, "C must be at most 1e+100, got 1e+300"),
     ({"C": 1e90, "class_weight": {1: 1e300}},
      "class_weight times C must be above 0 and at most 1e+100, got inf for class 1"),
     ({"C": -1, "class_weight": {1: 2}}, "C must be positive and finite, got -1")],
    ids=str,
)  # fmt: skip
def test_weights_of_classes_are_blamed_for_what_is_theirs(options, sentence):
    assert reason(**options) == sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"kernel": "precomputed", "clustering": "kmeans"},
      "clustering kmeans requires features, not a precomputed kernel"),
     ({"kernel": "sigmoid", "gap": 0.1},
      "gap requires a positive semidefinite kernel, got sigmoid"),
     ({"kernel": "polynomial", "coef0": -1, "gap": 0.1},
      "gap requires a positive semidefinite kernel, got polynomial"),
     ({"kernel": "linear", "gamma": "2/median"},
      "gamma must be a number for kernel linear, got '2/median'"),
     ({"kernel": "polynomial", "gamma": "2/median"},
      "gamma must be a number for kernel polynomial, got '2/median'"),
     ({"svm_type": "nu_svc", "early": True},
      "early is not available for nu_svc, which has no levels"),
     ({"svm_type": "nu_svr", "early_level": 2},
      "early_level is not available for nu_svr, which has no levels"),
     ({"levels": 0, "early": True}, "early requires at least one level"),
     ({"levels": 0, "early_level": 1}, "early_level requires at least one level"),
     ({"levels": 2, "early_level": 3}, "early_level must be at most 2, the finest level, got 3")],
    ids=str,
)  # fmt: skip
def test_options_that_do_not_go_together_are_named(options, sentence):
    assert reason(**options) == sentence


@pytest.mark.parametrize("gamma", ["auto", "2/median", ".5/median", "1e-3/median"])
def test_a_gamma_relative_to_the_rows_is_kept_as_text(gamma):
    assert TrainOptions(gamma=np.str_(gamma)).gamma == gamma
    assert type(TrainOptions(gamma=np.str_(gamma)).gamma) is str
    assert TrainOptions(gamma="auto", kernel="linear").gamma == "auto"


def test_scalars_of_numpy_become_plain():
    options = TrainOptions(
        C=np.float32(2), gamma=Fraction(1, 2), levels=np.int8(3), bias=np.bool_(True),
        kernel=np.str_("linear"), class_weight={np.int64(1): np.float64(2), np.str_("a"): 1},
        cache_mb=np.float64(100.2), threads=np.uint16(2),
    )  # fmt: skip
    values = [options.C, options.gamma, options.levels, options.bias, options.kernel]
    values += [*options.class_weight, *options.class_weight.values()]
    values += [options.cache_mb, options.threads]
    assert values == [2.0, 0.5, 3, True, "linear", 1.0, "a", 2.0, 1.0, 101, 2]
    assert {type(value) for value in values} == {float, int, bool, str}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("gama", "did you mean 'gamma'?"), ("c", "did you mean 'C'?"), ("tol", "did you mean 'tol"),
     ("max_iter", "did you mean 'max_iterations'?"), ("xyz", "help(dcsvm.train) lists them")],
)  # fmt: skip
def test_an_unknown_option_is_a_type_error_with_a_hint(name, hint):
    with pytest.raises(TypeError) as caught:
        TrainOptions.of(**{name: 1})
    assert str(caught.value).startswith(f"unknown option {name!r}; {hint}")


@pytest.mark.parametrize("number", range(5))
def test_types_are_named_as_in_a_model_file_with_dashes_or_by_number(number):
    name = SVM_TYPES[number]
    for one in (name, name.replace("_", "-"), name.upper(), SVM_NAMES[number], number,
                np.int64(number)):  # fmt: skip
        assert TrainOptions(svm_type=one).svm_type == name


@pytest.mark.parametrize("wrong", [5, -1, True, "c svc", "svc", 1.0])
def test_other_names_of_types_are_refused(wrong):
    assert reason(svm_type=wrong).startswith("svm_type must be one of c_svc, nu_svc, one_class")


def test_an_error_survives_pickling():
    error = OptionError("C", "is odd")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_the_options_are_there_without_numpy():
    code = "import sys, dcsvm.problem.options; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
