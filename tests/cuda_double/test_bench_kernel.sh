#!/usr/bin/env bash
# bench_kernel on a GPU whose memory is modelled: test_bench_kernel.sh PROGRAM
set -u
bench=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

tells() {
    local text=$1
    shift
    "$@" >stdout 2>stderr
    check "the status of $*" test $? -eq 1
    check "$* says '$text'" grep -q -- "$text" stderr
    check "$* says it in one line" test "$(wc -l <stderr)" -eq 1
    check "$* prints nothing" test ! -s stdout
}

# The kernel's bytes and the copy's, at the model's rate.
# More pixels than the cache could hold, if it tells: four times 70000 bytes are 2
# images of 154587.
LEAT_DOUBLE_MEMORY_BUS=400 LEAT_DOUBLE_L2=70000 "$bench" --json >json ||
    failed=1
check 'images for the cache' \
    grep -q '"images": 2, "pixel_bytes": 309174, "l2_bytes": 70000' json
check 'the kernels' test "$(grep -o '"copy_share": ' json | wc -l)" -eq 15
for key in copy_gb_per_s gb_per_s; do
    rate=$(grep -oE "\"$key\": [0-9.e+]+" json | head -n 1 | sed 's/.*: //')
    check "$key of $rate" awk -v rate="$rate" \
        'BEGIN { exit !(rate > 399 && rate < 401) }'
done
# The yardstick is the faster copy, of one before all cases and one after them.
copies() {
    # shellcheck disable=SC2317 # called by check
    jq -e '[.copy_before_gb_per_s, .copy_after_gb_per_s] as $copies |
        .copy_gb_per_s == ($copies | max) and ($copies | min) > 399 and
        (.results[-1].copy_share * .copy_gb_per_s / .results[-1].gb_per_s - 1 |
            fabs) < 1e-6' json >/dev/null
}
check 'both copies' copies
LEAT_DOUBLE_MEMORY_BUS=400 "$bench" --batch 1 >table || failed=1
check 'a row of kernels' \
    grep -qE '^float16, NHWC to NCHW .*\| +100\.0$' table
tells 'no transform' "$bench" --device cpu
tells 'out of memory' env LEAT_DOUBLE_MEMORY=1000000 "$bench" --batch 9
exit $failed
