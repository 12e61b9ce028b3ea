#!/usr/bin/env bash
# The CUDA examples on a GPU: test_cuda_examples.sh TOOL NET PROGRAM...
# All train on the same batches, to the same loss. Without a GPU each must say so
# in one line and exit 77, and so does this. Part of the bundle, so it needs bash
# and coreutils alone.
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
        mapfile -t lines <err
        if [[ ${lines[0]-} != 'skipped: cuda:0: '* ]] || [ ${#lines[@]} -ne 1 ] ||
            [ -s out ]; then
            fail "$program: does not say why it cannot run: $(<err)"
        fi
        continue
    fi
    if [ "$status" -ne 0 ] || [ -s err ]; then
        fail "$program: exit $status: $(<err)"
    fi
    right=0 sum=0 n=0
    while read -r line; do
        [[ ! $line =~ ,\ ([0-9]+)\.[0-9]\ %\ right$ ]] || right=${BASH_REMATCH[1]}
        if [[ $line != test:* && $line =~ :\ loss\ ([0-9]+)\.([0-9]{3}) ]]; then
            sum=$((sum + 10#${BASH_REMATCH[1]}${BASH_REMATCH[2]})) n=$((n + 1))
        fi
    done <out
    [ "$right" -ge 50 ] || fail "$program: learnt too little: $(<out)"
    [ "$n" -gt 0 ] || fail "$program: no loss: $(<out)"
    loss=$((n ? sum / n : 0)) # in thousandths
    : "${first:=$loss}"
    [ "$((loss > first ? loss - first : first - loss))" -le 2 ] ||
        fail "$program: its loss is 0.$loss, that of $1 0.$first"
done

[ "$failed" -eq 0 ] || exit 1
[ "$skipped" -eq 0 ] && exit 0
[ "$skipped" -eq $# ] || { echo "only some found a GPU" && exit 1; }
cat err
exit 77
