#!/usr/bin/env bash
# Train on a LIBSVM file by divide and conquer, and test the model, exactly and early.
#
#   train.sh [TRAINING_FILE [TEST_FILE [C [gamma]]]]
#
# Without arguments it runs
#
#   dcsvm-train -c 32 -g 2 -l 4 covtype.tr
#   dcsvm-predict covtype.te covtype.tr.model exact.out
#   dcsvm-predict --early covtype.te covtype.tr.model early.out
set -euo pipefail

train=${1:-covtype.tr} test=${2:-covtype.te} C=${3:-32} gamma=${4:-2}
model=$(basename "$train").model

dcsvm-train -c "$C" -g "$gamma" -l 4 "$train" "$model"
dcsvm-predict "$test" "$model" exact.out
dcsvm-predict --early "$test" "$model" early.out || echo "no early level: too few rows for clusters"
