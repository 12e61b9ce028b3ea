#!/usr/bin/env bash
# The CUDA examples on a GPU: test_cuda_examples.sh TOOL NET PROGRAM...
# All train on the same batches, to the same loss. Without a GPU each must say so
# in one line and exit 77, and so does this.
set -u

tool=$1 net=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
skipped=0

fail() {
    echo "$1"
    failed=1
}

mkdir -p build/demo
for part in 'train 2000 1' 'test 250 2'; do
    read -r phase count seed <<<"$part"
    "$tool" synth digits --count "$count" --seed "$seed" "build/demo/digits_${phase}_lmdb" >log 2>&1 ||
        fail "no data: $(<log)"
done

for program in "$@"; do
    "$program" "$net" >out 2>err
    status=$?
    if [ "$status" -eq 77 ]; then
        skipped=$((skipped + 1))
        if ! grep -q '^skipped: cuda:0: ' err || [ "$(wc -l <err)" -ne 1 ] || [ -s out ]; then
            fail "$program: does not say why it cannot run: $(<err)"
        fi
        continue
    fi
    if [ "$status" -ne 0 ] || [ -s err ]; then
        fail "$program: exit $status: $(<err)"
    fi
    right=$(sed -n 's/^.*, \([0-9]*\)\.[0-9] % right$/\1/p' out | tail -n 1)
    [ "${right:-0}" -ge 50 ] || fail "$program: learnt too little: $(<out)"
    loss=$(sed -n '/^test:/!s/.*: loss \([0-9.]*\),.*/\1/p' out |
        awk '{ sum += $1 } END { printf "%.3f", sum / NR }')
    : "${first:=$loss}"
    awk -v one="$first" -v other="$loss" 'BEGIN {
        d = one - other
        exit !(d < 0.002 && d > -0.002)
    }' ||
        fail "$program: its loss is $loss, that of $1 $first"
done

[ "$failed" -eq 0 ] || exit 1
[ "$skipped" -eq 0 ] && exit 0
[ "$skipped" -eq $# ] || { echo "only some found a GPU" && exit 1; }
cat err
exit 77
