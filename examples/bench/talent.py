"""Print errors of dcsvm-easy beside those that TALENT published for 30 methods.

TALENT (https://github.com/LAMDA-Tabular/TALENT, results/*.md of May 2025) tunes each method by 100
trials on 64 % of the rows of a table and chooses on 16 %; its error rate in percent, or RMSE, is
the mean of 15 seeds on the other 20 %. talent.csv has its numbers for the tables that are also in
PMLB (https://github.com/EpistasisLab/pmlb); its "svm" is LinearSVC. --raw has these tables as
tables/*.tsv.gz with the column `target`; a table that is not there is left out.

dcsvm-easy gets 64 % of the rows, at random, and the last 20 % are its test: its splits are not
TALENT's, so differences of a few percent say nothing.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
import tabular
from easy import Split, easy

PUBLISHED = Path(__file__).with_suffix(".csv")
SHARES = 0.64, 0.8  # ends of the rows to train, and of those that tuning would use
REGRESSIONS_FROM = "cpu_small"  # line of PUBLISHED
OWN = ("rows", "dcsvm-easy", "standard error", "seconds")


def main() -> None:
    parser = measure.parser_of(__doc__, "raw data out redraw only splits", splits=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="--time-limit of dcsvm-easy")
    options = parser.parse_args()
    published = measure.read(PUBLISHED)
    columns = ("set", *OWN, *list(published[0])[2:])
    lines = measure.tabled(options, columns, lines_of(options, published))
    print(measure.heading(columns))
    for line in lines:
        print(measure.markdown(line.values()))
    print(f"geometric mean of dcsvm-easy's errors over those of the column, {len(lines)} tables")
    for column in columns[1 + len(OWN) :]:
        both = [(float(one["dcsvm-easy"]), float(one[column])) for one in lines if one[column]]
        ratio = np.exp(np.mean([np.log(ours / theirs) for ours, theirs in both if ours > 0]))
        print(measure.markdown([column, f"{ratio:.3f}", f"{len(both)} tables"]))


def lines_of(options, published: list[dict[str, str]]) -> Iterator[tuple]:
    names = [line["file"] for line in published]
    regressions = set(names[names.index(REGRESSIONS_FROM) :])
    of_raw = tabular.tables(options.raw, options.data, {}, options.only)
    given = {re.sub(r"^\d+_", "", name): table for name, *table in of_raw}
    if not given:
        sys.exit(f"{options.raw}/tables has no table")
    for line in published:
        if line["file"] not in given:
            continue
        X, y = given[line["file"]]
        is_regression, errors, seconds = line["file"] in regressions, [], []
        for number in range(options.splits):
            split = split_of(line["file"], X, y, number, is_regression=is_regression)
            found = easy(split, options.seconds, None)
            errors.append(found.error * (1 if is_regression else 100))
            seconds.append(found.seconds)
        spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
        own = (len(split.y), f"{np.mean(errors):.4g}", f"{spread:.2g}", f"{np.mean(seconds):.0f}")
        yield line["set"], *own, *list(line.values())[2:]


def split_of(name: str, X, y, number: int, *, is_regression: bool) -> Split:
    order = np.random.default_rng(number).permutation(len(y))
    train, _, test = np.split(order, [int(share * len(y)) for share in SHARES])
    return Split(X[train], y[train], X[test], y[test], Split.texts_of(name, X), is_regression)


if __name__ == "__main__":
    main()
