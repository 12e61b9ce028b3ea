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
[ "${LEAT_GPU_CHECK_LONG-}" ] || exit 0
echo 0 >status
PATH=$work/path:$PATH "$check" bundle results >output 2>&1 || {
    cat output
    fail "a machine with a GPU fails"
}
grep -q 'compute-sanitizer: skipped' output || fail "the skip is not told"
python3 -m json.tool results/nvidia_double_9000.json >/dev/null
