#!/usr/bin/env bash
# From a CSV file to predictions, then a made data set: train, predict exactly and early, draw.
# The files are in the folder demo/. `make demo` runs this; by hand it wants an environment with
# dcsvm, scikit-learn, pyarrow and matplotlib first in PATH.
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)
mkdir -p demo
cd demo

say() { printf '\n%s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "Real data: 1,797 handwritten digits of 8 by 8 pixels (UCI), a file of scikit-learn;"
echo "the last 497 are for the test."
python - <<'END'
import gzip
from importlib.resources import files
from pathlib import Path

packed = files("sklearn.datasets.data").joinpath("digits.csv.gz").read_bytes()
rows = gzip.decompress(packed).decode().splitlines()
header = ",".join([*(f"pixel{k}" for k in range(64)), "digit"])
for name, some in (("digits.csv", rows[:1300]), ("digits.t.csv", rows[1300:])):
    Path(name).write_text("\n".join([header, *some]) + "\n")
END

say "Choose kernel, scaling, C and gamma in 10 s, train, and predict the test rows"
run dcsvm-easy --time-limit 10 digits.csv digits.t.csv

say "Make a checkerboard of 20,000 training and 5,000 test rows, 2 % of the labels wrong"
echo "(the formula is in examples/made/checkerboard.py)"
python "$examples/make_data.py" checkerboard .

say "Train. Levels of 64, 16 and 4 clusters are solved, each starting from the one before;"
echo "then their support vectors (refine), then all rows (conquer): the exact solution."
run dcsvm-train -c 32 -g 16 -l 3 --report report.json train.txt board.model

say "Predict with the exact solution"
run dcsvm-predict test.txt board.model exact.txt

say "Predict early: each row only by the model of its own cluster, one of 64 of level 3"
run dcsvm-predict --early test.txt board.model early.txt

say "Train an early model alone: the number of clusters is found, by the rows left out one by one,"
echo "and rows near a border learn in the clusters on both sides of it."
run dcsvm-train -c 32 -g 16 --early train.txt early.model

say "Predict with it: rows near a border by both models"
run dcsvm-predict test.txt early.model early-only.txt

say "In demo/: the models, the predictions, and report.json with what the first training did:"
python - <<'END'
import json

report = json.load(open("report.json"))
for name in ("objective", "violation", "duality_gap", "n_sv", "converged", "kernel_evaluations"):
    print(f"  {name:20}{report[name]}")
print(f"  {'seconds':20}{report['seconds']['total']:.2f}, {report['threads']} threads")
END

say "Draw what both parts of board.model have learned"
python "$examples/board_picture.py" board.model test.txt board.png
