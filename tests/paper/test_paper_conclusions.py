"""Test that the conclusions of examples/paper follow from the cells, their words too."""

import pytest
from paper.cells import Results
from paper.experiments import comparison, convergence, level_times, prediction
from paper.scales import SCALES
from paper.sections import words

pytest.importorskip("matplotlib")
from paper import EXPERIMENTS, sections  # noqa: E402

SCALE = SCALES["small"]


def page(names, tmp_path):
    return sections.Page(SCALE, names, 2, Results(tmp_path), tmp_path / "plots", "plots")


def section(name):
    return __import__(f"paper.sections.{name}", fromlist=["conclude"])


def save(cell, tmp_path, **result):
    cell.save(tmp_path, {"status": "ok", "result": {"n_rows": 3000, **result}})


def compare(name, method, tmp_path, seconds, accuracy):
    chosen = comparison.problem(name, SCALE.rows, SCALE.test_rows)
    cell = comparison.cell(SCALE, chosen, method, 2)
    save(cell, tmp_path, seconds=seconds, accuracy=accuracy)
    return cell


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_nothing_is_concluded_from_no_cells(experiment, tmp_path):
    if experiment == "prediction":
        pytest.importorskip("sklearn")
    wanted = __import__(f"paper.experiments.{experiment}", fromlist=["DATA_SETS"]).DATA_SETS
    assert section(experiment).conclude(page(list(wanted), tmp_path)) == ""


def test_the_comparison_follows_the_cells(tmp_path):
    for name, accuracy in (("covtype", 0.91), ("ijcnn1", 0.89)):
        compare(name, "dcsvm", tmp_path, 2.0, 0.90)
        compare(name, "direct", tmp_path, 1.0 if name == "covtype" else 6.0, 0.90)
        compare(name, "early", tmp_path, 0.5, accuracy)
        compare(name, "cascade", tmp_path, 0.5, 0.85)
        compare(name, "ltpu", tmp_path, 0.5, 0.88 if name == "covtype" else 0.80)
    compare("ijcnn1", "libsvm", tmp_path, 1.0, 0.90)
    slow = compare("covtype", "libsvm", tmp_path, 1.0, 0.90)
    slow.save(tmp_path, {"status": "timeout", "timeout": 40})
    text = section("comparison").conclude(page(["covtype", "ijcnn1"], tmp_path))
    assert "1.00 % above DC-SVM in 0.250 of its time on covtype" in text
    assert "(in the paper 0.03 % below it in 0.059)" in text
    assert "1.00 % below DC-SVM in 0.250 of its time on ijcnn1" in text
    assert "LTPU is between 10.00 % below DC-SVM (ijcnn1) and 2.00 % below DC-SVM (covtype)" in text
    assert "most accurate of these is LTPU on covtype (88.00 %) and CascadeSVM on ijcnn1" in text
    assert "times more than 20.0 on covtype (7.33 in the paper) and 0.500 on ijcnn1 (2.80" in text
    assert "0.500 on covtype and 3.00 on ijcnn1: the levels save time on 1 of 2" in text


@pytest.mark.parametrize(("best", "text"), [(0.96, "in 1 and"), (0.93, "in 0 and")])
def test_prediction_counts_what_early_prediction_wins(best, text, tmp_path):
    pytest.importorskip("sklearn")
    methods = {"naive": (0.94, 3.0), "bcm": (0.95, 4.0), "early": (best, 1.0)}
    shown = {m: {"accuracy": a, "milliseconds": s} for m, (a, s) in methods.items()}
    save(prediction.cell(SCALE, "covtype", 50, 2), tmp_path, **shown)
    found = section("prediction").conclude(page(["covtype"], tmp_path))
    assert f"most accurate {text} the fastest in 1 of 1 settings" in found
    assert "In the paper it is in 1 and 1 of 1." in found
    assert "in the paper 4.60 % below it (covtype, 50)" in found


@pytest.mark.parametrize(("last", "text"), [(9.0, "takes longer"), (1.0, "does not take longer")])
def test_level_times_say_whether_training_grows(last, text, tmp_path):
    levels = [
        {"level": level, "seconds_clustering": 0.5, "seconds_training": 4.0 - level}
        for level in (3, 2, 1)
    ]
    (cell,) = level_times.cells(SCALE, ["covtype"], 2)
    save(cell, tmp_path, levels=levels, conquer_seconds=last)
    found = section("level_times").conclude(page(["covtype"], tmp_path))
    assert f"Training {text} at every level" in found and found.endswith("too small: level 4.")


def test_convergence_compares_the_solvers_and_the_early_models(tmp_path):
    def point(method, options, **result):
        save(convergence.cell(SCALE, "covtype", method, options, 2), tmp_path, **result)

    point("dcsvm", {"tolerance": 1e-5}, seconds=9.0, accuracy=0.9, objective=-100.0)
    point("dcsvm", {"tolerance": 1e-3}, seconds=2.0, accuracy=0.9, objective=-100.0)
    point("libsvm", {"tolerance": 1e-3}, seconds=5.0, accuracy=0.9, objective=-90.0)
    for share, options in enumerate(convergence.steps(SCALE, "early")):
        point("early", options, seconds=0.5, accuracy=0.91 - 0.01 * share, objective=-90.0)
    text = section("convergence").conclude(page(["covtype"], tmp_path))
    assert "DC-SVM 2.00; LIBSVM 5.00, 2.50 times as long" in text and "CascadeSVM" not in text
    assert "best early model is 1.00 % above the exact solution, after 0.500 s" in text
    assert "10.00 % above the least objective" in text


def test_words():
    assert words.joined(["a"]) == "a"
    assert words.joined(["a", "b", "c"]) == "a, b and c"
    assert words.joined(["a, 1", "b", "c"]) == "a, 1; b and c"
    assert words.relation(1e-6, "it") == "equal to it"
    assert words.relation(-0.0123, "it") == "1.23 % below it"
