#!/usr/bin/env bash
# Train only as far as the early level, a fraction of the time, and predict with it.
#
#   predict_early.sh TRAINING_FILE TEST_FILE [C [gamma [levels]]]
set -euo pipefail

train=${1:?training file} test=${2:?test file} C=${3:-32} gamma=${4:-2} levels=${5:-3}
model=$(basename "$train").early.model

dcsvm-train --early -l "$levels" -c "$C" -g "$gamma" "$train" "$model"
dcsvm-predict --early "$test" "$model" early.out
