"""Test the settings of a grid: their order, finer grids, and which of them is best."""

from itertools import product

from dcsvm.training.held_out import Grid, Score, Setting, best_of


def test_the_order_of_a_grid_is_from_coarse_to_fine():
    grid = Grid((1.0, 2.0, 4.0), (1.0, 2.0, 4.0))
    order = grid.coarse_to_fine()
    assert order[0] == Setting(2.0, 2.0) and set(order) == set(grid.settings)
    assert set(order[:4]) == {Setting(*pair) for pair in product((1.0, 2.0), repeat=2)}


def test_the_grid_around_a_setting_is_four_times_finer():
    fine = Grid((1.0, 4.0, 16.0), (1.0, 4.0)).around(Setting(4.0, 4.0))
    assert fine.Cs == fine.gammas == (2.0, 2.0**1.5, 4.0, 2.0**2.5, 8.0)
    assert Grid((3.0,), (None,)).around(Setting(3.0)) == Grid((3.0,), (None,))


def test_edges_are_named():
    grid = Grid((1.0, 2.0, 4.0), (1.0, 2.0, 4.0))
    assert grid.edges(Setting(2.0, 2.0)) == []
    assert grid.edges(Setting(1.0, 4.0)) == ["the smallest C", "the largest gamma"]


def test_of_equal_losses_the_smaller_C_is_best():
    def score(C, loss, converged=True, is_complete=True):
        return Score(Setting(C, 1.0), loss, (), 10, 10.0, is_complete, converged, 1, 0.0)

    assert best_of([score(4, 0.1), score(1, 0.1), score(2, 0.1)]).setting.C == 1
    assert best_of([score(1, 0.0, converged=False), score(2, 0.3)]).setting.C == 2
    assert best_of([score(1, 0.0, is_complete=False), score(2, 0.3)]).setting.C == 2
    assert best_of([score(3, 0.2, converged=False)]).setting.C == 3
    assert best_of([]) is None
