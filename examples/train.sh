#!/usr/bin/env bash
# Train on a LIBSVM file and test the model, exactly and early.
#
#   train.sh TRAINING_FILE TEST_FILE [C [gamma]]
set -euo pipefail

train=${1:?training file} test=${2:?test file} C=${3:-32} gamma=${4:-2}
model=$(basename "$train").model

dcsvm-train -c "$C" -g "$gamma" "$train" "$model"
dcsvm-predict "$test" "$model" exact.out
dcsvm-predict --early "$test" "$model" early.out || echo "no early level: too few rows for clusters"
