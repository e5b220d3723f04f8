#!/usr/bin/env bash
# Try values of C with early models on a part of the training file, then train exactly with the best.
#
#   sweep_c.sh TRAINING_FILE [gamma [C ...]]
#
# One row in five is held out for choosing.
set -euo pipefail

train=${1:?training file} gamma=${2:-2}
shift $(($# < 2 ? $# : 2))
values=("$@")
((${#values[@]})) || values=(0.125 0.5 2 8 32 128)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -v kept="$work/kept" -v held="$work/held" \
    'BEGIN { srand(0) } { print > (rand() < 0.2 ? held : kept) }' "$train"

best=0 best_C=${values[0]}
for C in "${values[@]}"; do
    dcsvm-train -q --early -c "$C" -g "$gamma" "$work/kept" "$work/model" >"$work/log"
    accuracy=$(dcsvm-predict --early "$work/held" "$work/model" "$work/out" |
        sed -n 's/^Accuracy = \([0-9.]*\)%.*/\1/p')
    echo "C=$C: $accuracy %"
    if awk "BEGIN { exit !($accuracy > $best) }"; then best=$accuracy best_C=$C; fi
done

echo "training on all rows with C=$best_C"
dcsvm-train -c "$best_C" -g "$gamma" "$train" "$(basename "$train").model"
