"""Test the words of options in other docstrings and errors."""

from dataclasses import fields

from dcsvm.problem.option_table import keyword_line
from dcsvm.problem.options import SearchOptions, TrainOptions


def test_an_option_has_its_type_and_sentence():
    assert TrainOptions.text("levels") == (
        "int or None: number of cluster levels, 0 for none; from 0 to 30; None: by number of rows"
    )
    sentence = SearchOptions.text("refine").removeprefix("bool: ")
    assert f"- refine (bool, False): {sentence}" in map(keyword_line, fields(SearchOptions))


def test_a_rule_has_its_values_in_words():
    assert TrainOptions.words("levels") == "a whole number, from 0 to 30 or None"
    assert TrainOptions.words("nu") == "a number, above 0 and at most 1"
    assert TrainOptions.words("early") == "True or False"
