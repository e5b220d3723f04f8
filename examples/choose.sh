#!/usr/bin/env bash
# Find C and gamma with early models, then train exactly with them.
#
#   choose.sh TRAINING_FILE [options of dcsvm-grid ...]
set -euo pipefail

train=${1:?training file}
shift
best=$(dcsvm-grid --early --refine "$@" "$train" | tail -n 1)
read -r C gamma rate <<<"$best"
echo "C=$C gamma=$gamma: $rate % of the rows held out are right"
dcsvm-train -c "$C" -g "$gamma" "$train" "$(basename "$train").model"
