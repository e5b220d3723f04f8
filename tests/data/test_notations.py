"""Test how texts of numbers, dates and times are read."""

import math

import numpy as np
import pytest

from dcsvm.data.notations import (
    Notation,
    days_of,
    hours_of,
    part_of_date,
    reading_of,
)


def read(*texts, decimal=".", has_gaps=False):
    """Return the kind and the number of each text, None if they are words or codes."""
    counts = {text: texts.count(text) for text in texts}
    reading = reading_of(
        tuple(counts), np.array([*counts.values()]), len(texts), decimal, has_gaps=has_gaps
    )
    if reading is None or reading.is_unclear:
        return None
    return reading.kind, reading.notation.values(texts, reading.kind)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["3,14", "-0,5", "2"], [3.14, -0.5, 2]),
        (["12,345", "1,200", "7"], [12345, 1200, 7]),
        (["0,123", "1,200"], [0.123, 1.2]),
        (["$12,345.67", "$5", "-$3", "$-1"], [12345.67, 5, -3, -1]),
        (["1.234,50 €", "7 €"], [1234.5, 7]),
        (["EUR 12.50", "EUR 1", "0"], [12.5, 1, 0]),
        (["1.234.567", "12"], [1234567, 12]),
        (["1.234,5", "1.234"], [1234.5, 1234]),
        (["12,34,567.5", "1,00,000"], [1234567.5, 100000]),
        (["1 234,5", "2"], [1234.5, 2]),
        (["1\u00a0234.5", "1\u202f234", "1'234", "1’234"], [1234.5, 1234, 1234, 1234]),
        (["12.5%", "3 %", "4"], [12.5, 3, 4]),
        (["12 km", "5km", "7.5 km"], [12, 5, 7.5]),
        (["5 m2", "1e3 m2"], [5, 1000]),
        (["(1,200)", "3,400"], [-1200, 3400]),
        (["($1,200)", "$7", "$(1)"], [-1200, 7, -1]),
        (["\u22125.5", "+3"], [-5.5, 3]),
        (["1.5", "2"], [1.5, 2]),
    ],
)
def test_numbers_in_a_notation(texts, numbers):
    assert read(*texts) == ("number", numbers)


def test_the_decimal_mark_of_a_file_settles_what_cells_leave_open():
    assert read("12,345", "1,200", decimal=",") == ("number", [12.345, 1.2])
    assert read("12,345", "1,234,567", decimal=",") == ("number", [12345, 1234567])
    assert read("1.5", "1.234", "x", "y", "2", "3", decimal=",")[1][:2] == [1.5, 1.234]


@pytest.mark.parametrize(
    "texts",
    [
        ["$5", "€7"], ["5 km", "7 mi"], ["1st", "2nd", *["3rd"] * 5], ["3.14", "3,14"],
        ["1.2.3", "4.5.6"], ["10.0.0.1", "10.0.0.2"], ["+49 30 123456", "+49 40 1234"],
        ["1,234", "1.234"], ["A1", "A2"], ["12ab34", "5c"], ["1_000", "2_000"], ["1-2", "3-4"],
        ["a", "b"], ["1", "2"], ["01", "02"], ["12 34", "5"], ["(1)(2)", "(3)"], ["--5", "(-5)"],
    ],
)  # fmt: skip
def test_texts_that_are_no_numbers(texts):
    assert read(*texts) is None


def test_whole_numbers_of_text_are_codes_unless_each_row_has_its_own_or_words_are_missing():
    assert read("1", "2", has_gaps=True) == ("number", [1, 2])
    many = [str(k) for k in range(30)]
    assert read(*many) == ("number", list(range(30)))
    assert read(*many, *many) is None
    assert read(*many[1:], "07") is None


def test_words_among_numbers_are_missing():
    kind, numbers = read("1.5", "unknown", "2", "-", "#DIV/0!", "3", "4")
    assert kind == "number" and np.isnan(numbers).tolist() == [False, True] + [0, 1, 1, 0, 0]
    assert math.isnan(read("5 km", "6 km", "7 km", "n.a.")[1][3])
    assert read("1", "2", "3", "4", "5", "a", "b", "c", "d") is None  # four words
    assert read("1", "2", "x", "x", "x") is None  # half of the rows
    assert read("1", "2", "3", "3+") is not None
    assert read("0", "low", "high", "0", "0") is None  # more words than numbers
    assert read("01", "02", "A") is None and read("007", "1", "2", "x") is None


def test_a_notation_reads_its_own_cells_and_plain_numbers():
    price = Notation(".", ",", "$")
    assert price.values(["$1,234.5", "12", "-3e2", "(7)"], "number") == [1234.5, 12, -300, -7]
    assert price.values(["€5", "x", "12,34", ""], "number") == [None] * 4
    comma = Notation(",")
    assert comma.values(["1,5", "1.5", "1.234", "1.234,5"], "number") == [1.5, 1.5, 1.234, 1234.5]
    assert Notation(",", ".").values(["1.234", "1.5"], "number") == [1234, 1.5]
    assert Notation().values(["1,5", "5 km"], "number") == [None, None]
    assert Notation().values(["TRUE", "false"], "boolean") == [1, 0]


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2020-01-31", "2020/02/01", "2020-02-01 06:00:00"], [18292, 18293, 18293.25]),
        (["2020-01-31T12:00Z", "2020-01-31T12:00:00.0+12:00"], [18292.5, 18292]),
        (["31.01.2020", "1.2.2020"], [18292, 18293]),
        (["31/01/2020", "01/02/2020"], [18292, 18293]),
        (["01/31/2020", "02/01/2020 6:00 PM"], [18292, 18293.75]),
        (["31-01-2020", "2020-02-01"], [18292, 18293]),
    ],
)
def test_dates(texts, days):
    assert read(*texts) == ("date", days)


def test_times_and_durations_are_hours():
    assert read("10:30", "9:15:36", "12:00 AM", "1:00 pm")[1] == pytest.approx([10.5, 9.26, 0, 13])
    assert read("1 days 02:00:00", "1 day, 3:00:00", "36:30") == ("time", [26, 27, 36.5])


@pytest.mark.parametrize(
    "texts", [["2020-13-01", "2020-02-30"], ["01/02/2020", "03/04/2020"], ["25:61", "x"],
              ["2020-01-01 25:00", "2020-01-01 24:00"]],
)  # fmt: skip
def test_texts_that_are_no_dates(texts):
    assert read(*texts) is None


def test_one_date_of_another_order_does_not_make_the_column_unclear():
    assert read(*[f"{d:02d}/12/2020" for d in range(1, 14)])[0] == "date"
    words = read("2020-01-01", "unknown", "2020-01-03", "2020-01-04")
    assert words[0] == "date" and math.isnan(words[1][1])


def test_parts_of_dates():
    dates = np.array(["1969-12-31T18:30", "2020-02-29", "NaT"], "M8[s]")
    days = days_of(dates)
    assert np.isnan(days[2]) and days[:2].tolist() == [-5.5 / 24, 18321]
    parts = {part: part_of_date(days[:2], part).tolist() for part in ("year", "month", "weekday")}
    assert parts == {"year": [1969, 2020], "month": [12, 2], "weekday": [2, 5]}
    assert part_of_date(days[:2], "hour").tolist() == [18.5, 0]
    assert part_of_date(days[:2], "days", 18320.0)[1] == 1
    assert hours_of(np.array([90, "NaT"], "m8[m]"))[0] == 1.5
