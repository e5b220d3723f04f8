#!/usr/bin/env bash
# Train an early model alone, much faster where rows are many, and predict with it. Training finds
# how many clusters it has.
#
#   predict_early.sh TRAINING_FILE TEST_FILE [C [gamma]]
set -euo pipefail

train=${1:?training file} test=${2:?test file} C=${3:-32} gamma=${4:-2}
model=$(basename "$train").early.model

dcsvm-train --early -c "$C" -g "$gamma" "$train" "$model"
dcsvm-predict --early "$test" "$model" early.out
