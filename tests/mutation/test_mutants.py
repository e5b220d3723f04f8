"""Test the table of mutants against today's code; `make mutants` tests the tests with it."""

from mutate import ROOT, every_mutant, places_of


def test_every_mutant_fits_the_code_once():
    mutants = every_mutant()
    wrong = [str(one) for one in mutants if places_of(one, ROOT)[1] != 1]
    assert mutants and not wrong


def test_every_mutant_changes_the_code_and_has_tests_that_exist_or_a_reason():
    for one in every_mutant():
        assert one.before != one.after, one
        assert bool(one.tests) != bool(one.reason), one
        assert all((ROOT / test.split("::")[0]).exists() for test in one.tests), one
