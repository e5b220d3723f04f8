"""Test pictures of scores: every shape of grid has one, with the right text."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from dcsvm.cli.grid import main
from dcsvm.cli.grid_file import save_picture
from dcsvm.model.metrics import DEFINITIONS
from dcsvm.training.grid import GridSearch
from dcsvm.training.held_out import Grid, Score, Setting, best_of

image = pytest.importorskip("matplotlib.image")


def draw(path, scores, *, title, metric):
    """Draw the scores of a search by a metric."""
    search = SimpleNamespace(scores=scores, metric=metric, definition=DEFINITIONS[metric],
                             best_of=GridSearch.best_of)  # fmt: skip
    save_picture(path, search, title=title)


# matplotlib may call deprecated functions of other packages
WITHOUT_WARNINGS = pytest.mark.filterwarnings("error", "ignore::DeprecationWarning")


def powers(*exponents):
    return tuple(2.0**k for k in exponents)


def score(setting, loss, *, is_complete=True):
    n_rows = 1000 if is_complete else 200
    return Score(setting, loss, (loss,), n_rows, n_rows, is_complete, True, None, 0.0)


def valley(setting):
    """Return a loss with its minimum at C = 8, gamma = 1/2 and the smallest epsilon."""
    x, y = math.log2(setting.C) - 3, math.log2(setting.gamma or 0.5) + 1
    return 0.02 + 0.4 * (1 - math.exp(-(x * x + x * y + y * y) / 40)) + (setting.epsilon or 0) / 10


def scored(grid):
    return [score(setting, valley(setting)) for setting in grid.settings]


SQUARE = Grid(powers(*range(-5, 16, 2)), powers(*range(-15, 4, 2)))
COARSE = [replace(one, is_complete=one.loss < 0.1) for one in scored(SQUARE)]
SHAPES = {
    "square": scored(SQUARE),
    "left early": COARSE,
    "fine": COARSE + scored(SQUARE.around(best_of(COARSE).setting)),
    "one gamma": scored(Grid(SQUARE.Cs, (0.25,))),
    "no gamma": scored(Grid(SQUARE.Cs)),
    "gamma 0": scored(Grid(SQUARE.Cs, (0.0,))),
    "gamma 0 too": scored(Grid(SQUARE.Cs, (0.0, 0.5, 1.0))),
    "one setting": scored(Grid((3.0,), (0.25,))),
    "three aslant": [score(Setting(k, k), 0.1 * k) for k in (1.0, 2.0, 4.0)],
    "constant": [score(setting, 0.25) for setting in SQUARE.settings],
    "epsilons": scored(replace(SQUARE, epsilons=(0.0, 0.1, 0.5))),
    "huge losses": [score(setting, 10.0 ** (6 * valley(setting))) for setting in SQUARE.settings],
    "with nan": [score(setting, math.nan) for setting in SQUARE.settings[:20]]
    + scored(SQUARE)[20:],
    "without rows": [replace(one, n_rows=0) for one in COARSE[:5]] + COARSE[5:],
    "an estimate below the best": [
        score(one.setting, one.loss if one.is_complete else 0.001, is_complete=one.is_complete)
        for one in COARSE
    ],
    "steps that are no powers": scored(Grid((1.0, 1.1, 1.3), (0.3, 0.31, 0.33))),
}


def pixels(path):
    return image.imread(path, format="png")


def has_colour(picture, colour):
    return (np.abs(picture[:, :, :3] - colour).max(axis=2) < 0.02).any()


@WITHOUT_WARNINGS
@pytest.mark.parametrize("metric", ["accuracy", "mse", "log-loss", "r2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_a_picture(shape, metric, tmp_path):
    path = tmp_path / "grid.png"
    draw(path, SHAPES[shape], title=shape, metric=metric)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert list(tmp_path.iterdir()) == [path]
    picture = pixels(path)
    assert picture.shape[:2] == (800, 1000)
    assert has_colour(picture, (1, 0, 0)), "the star"


@pytest.mark.parametrize("metric", ["accuracy", "mse", "log-loss", "r2"])
def test_the_bands_leave_no_place_white(metric, tmp_path):
    flat = [score(one.setting, min(max(one.loss, 0.1), 0.3)) for one in scored(SQUARE)]
    for scores in (flat, SHAPES["constant"]):
        draw(tmp_path / "a", scores, title="", metric=metric)
        inside = pixels(tmp_path / "a")[120:620, 120:740, :3]
        has_halo = scores is flat  # numbers on lines have a white edge
        assert (inside.min(axis=2) > 0.99).mean() < (0.02 if has_halo else 1e-9)


def test_of_several_epsilons_the_best_is_drawn(tmp_path):
    names = tmp_path / "a", tmp_path / "b"
    several = scored(replace(SQUARE, epsilons=(0.0, 0.1, 0.5)))
    for name, scores in zip(names, (several, several[::3]), strict=True):
        draw(name, scores, title="", metric="mse")
    assert names[0].read_bytes() == names[1].read_bytes()


@WITHOUT_WARNINGS
@pytest.mark.parametrize("title", ["", "a$b_{c", "two\nlines\t", "x" * 300, "数据", "\udcff\x00"])
def test_a_title_may_be_any_name_of_a_file(title, tmp_path):
    draw(tmp_path / "a", SHAPES["one gamma"], title=title, metric="accuracy")
    assert pixels(tmp_path / "a").shape[:2] == (800, 1000)


def test_nothing_to_draw_is_an_error(tmp_path):
    nothing = [score(Setting(1.0, 1.0), math.nan), replace(COARSE[0], n_rows=0)]
    for scores in ([], nothing):
        with pytest.raises(ValueError, match="no setting has a score to draw"):
            draw(tmp_path / "a", scores, title="", metric="accuracy")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_an_error_with_its_name(tmp_path):
    path = tmp_path / "none" / "grid.png"
    with pytest.raises(OSError, match="grid.png"):
        draw(path, COARSE, title="", metric="accuracy")


def test_without_matplotlib_the_grid_is_not_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "data").write_text("1 1:1\n-1 1:0\n" * 10)
    done = CliRunner().invoke(main, ["-q", "-png", "grid.png", "data"])
    assert done.exit_code == 1
    assert done.output == "error: -png requires matplotlib: pip install 'dcsvm[plot]'\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_picture_needs_no_display_and_changes_no_settings_of_matplotlib(tmp_path):
    (tmp_path / "data").write_text("1 1:1 2:0.5\n-1 1:0\n" * 10)
    program = """
import matplotlib
from dcsvm.cli.grid import main
before = dict(matplotlib.rcParams)
main("-q -log2c 0,4,2 -log2g 0,2,1 -png grid.png data".split(), standalone_mode=False)
import sys
assert "matplotlib.pyplot" not in sys.modules and dict(matplotlib.rcParams) == before
"""
    environment = {name: x for name, x in os.environ.items() if name != "DISPLAY"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path,
                   env=environment | {"MPLBACKEND": "TkAgg"})  # fmt: skip
    assert pixels(tmp_path / "grid.png").shape[:2] == (800, 1000)
