#!/usr/bin/env bash
# scripts/gpu_check.sh without a GPU, and with one that the double plays:
# test_gpu_check.sh TOOL
set -eu
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
check=$(cd "$(dirname "$0")/../.." && pwd)/scripts/gpu_check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$1" >&2
    exit 1
}

mkdir -p path bundle/bin
printf '#!/bin/sh\nexit 1\n' >path/nvidia-smi
chmod +x path/nvidia-smi
status=0
PATH=$work/path:$PATH "$check" bundle results >output 2>&1 || status=$?
[ $status -eq 77 ] || fail "without a GPU the status is $status, not 77"
grep -q '^skipped: ' output || fail "without a GPU it does not say so"
[ ! -e results ] || fail "figures were written without a GPU"

# A GPU test and a sanitizer that do as they are told.
printf '#!/bin/sh\necho "NVIDIA Double 9000"\n' >path/nvidia-smi
printf '#!/bin/sh\nexit 1\n' >path/compute-sanitizer
printf '#!/bin/sh\nread -r status <%s/status\nexit "$%s"\n' "$work" status \
    >bundle/bin/test_one
chmod +x path/compute-sanitizer bundle/bin/test_one
ln -s "$leat" bundle/bin/leat
echo 'commit: abc' >bundle/BUNDLE
echo 'test_one cuda:0' >bundle/gpu_tests
export LEAT_DOUBLE_BUS=25,2
for bad in 1 77; do
    echo $bad >status
    if PATH=$work/path:$PATH "$check" bundle results >output 2>&1; then
        fail "a GPU test that ends with $bad passed"
    fi
    [ ! -e results ] || fail "figures were written behind a test that failed"
done

# What the double cannot do is told as missed, in the table and in the file: its
# host is not as fast as its bus is said to be, and it does one thing at a time.
echo 0 >status
[ "${LEAT_GPU_CHECK_LONG-}" ] || export LEAT_GPU_CHECK=quick
export LEAT_DOUBLE_BUS=25,2 LEAT_DOUBLE_MEMORY_BUS=400 LEAT_DOUBLE_ONE_ENGINE=1
status=0
PATH=$work/path:$PATH "$check" bundle results >output 2>&1 || status=$?
[ $status -eq 3 ] || {
    cat output
    fail "with thresholds missed the status is $status, not 3"
}
json=results/nvidia_double_9000.json
grep -q 'compute-sanitizer: skipped' output || fail "the skip is not told"
jq -e . "$json" >/dev/null || fail "the figures are no JSON"
for workload in mnist cifar raw; do
    grep -q "^missed  $workload: share of h2d " output || fail "no share of $workload"
done
for workload in mnist cifar raw jpeg; do
    grep -q "^missed  $workload: overlap " output || fail "no overlap of $workload"
    grep -qE "^(met|missed) +$workload: forward" output || fail "no forward of $workload"
done
[ "$(grep -c '^met     kernel: .*share of a copy' output)" -eq 15 ] ||
    fail "the kernels are not judged"
[ "$(jq '.thresholds | length' "$json")" -eq 26 ] || fail "not all is noted"
[ "$(jq '[.thresholds[] | select(.met | not)] | length' "$json")" -eq \
    "$(grep -c ^missed output)" ] || fail "what is missed is noted otherwise"
jq -e '.thresholds[] | select(.what == "raw: overlap") | .value' "$json" |
    cmp - <(jq '.layer_raw.overlap' "$json") || fail "the overlap is another one"
