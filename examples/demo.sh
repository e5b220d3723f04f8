#!/usr/bin/env bash
# Make a data set, train, predict exactly and early, in the folder demo/. `make demo` runs this;
# by hand it wants an environment with dcsvm installed first in PATH.
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)
mkdir -p demo
cd demo

say() { printf '\n%s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "Make a checkerboard of 20,000 training and 5,000 test rows, 2 % of the labels wrong"
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
