#!/usr/bin/env bash
# scripts/gpu_check.sh without a GPU, and with one that the double plays:
# test_gpu_check.sh TOOL BENCH_KERNEL
set -eu
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
kernel=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
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

# A GPU test and a sanitizer that do as they are told. The GPU that is measured is
# not the first of nvidia-smi.
cat >path/nvidia-smi <<'SMI'
#!/bin/sh
case " $*" in
*" -i ffff:00:00.0 "*) echo "NVIDIA Double 9000" ;;
*) echo "Some other GPU" ;;
esac
SMI
printf '#!/bin/sh\nexit 1\n' >path/compute-sanitizer
printf '#!/bin/sh\nread -r status <%s/status\nexit "$%s"\n' "$work" status \
    >bundle/bin/test_one
chmod +x path/compute-sanitizer bundle/bin/test_one
# The tool; what `model` says is the model, and `mutant` is broken where it dumps.
cat >bundle/bin/leat <<TOOL
#!/bin/sh
if [ "\$1" = dump ]; then
    LEAT_DOUBLE_MUTANT=\$(cat "$work/mutant")
    export LEAT_DOUBLE_MUTANT
fi
[ "\$1 \$2" = "bench h2d" ] || exec "$leat" "\$@"
"$leat" "\$@" >"$work/h2d" || exit
sed "s/\"model\": \"unknown\"/\"model\": \"\$(cat "$work/model")\"/" "$work/h2d"
TOOL
chmod +x bundle/bin/leat
ln -s "$kernel" bundle/bin/bench_kernel
echo unknown >model
echo 0 >mutant
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
# run_check MODEL MUTANT: with thresholds missed.
run_check() {
    local status=0
    echo "$1" >model
    echo "$2" >mutant
    PATH=$work/path:$PATH "$check" bundle results >output 2>&1 || status=$?
    [ $status -eq 3 ] || {
        cat output
        fail "with thresholds missed the status is $status, not 3"
    }
}
run_check unknown 0
json=results/nvidia_double_9000.json
[ -f $json ] || fail "the GPU measured is not named: $(ls results)"
grep -q 'compute-sanitizer: skipped' output || fail "the skip is not told"
jq -e . "$json" >/dev/null || fail "the figures are no JSON"
for workload in mnist cifar raw; do
    grep -q "^missed  $workload: share of h2d, by copies of its size " output ||
        fail "no share of $workload"
    grep -q "^missed  $workload: overlap " output || fail "no overlap of $workload"
done
for workload in mnist cifar raw jpeg; do
    grep -qE "^(met|missed) +$workload: forward" output || fail "no forward of $workload"
done
grep -qE '^none +jpeg: bound by decoding: share of h2d [0-9.e+-]+, overlap [0-9.]+$' \
    output || fail "jpeg's figures are not told"
grep -qE '^(met|missed) +jpeg: (share|overlap)' output &&
    fail "jpeg is judged by what bounds it"
for type in float32 float16 bfloat16 uint8; do
    grep -qE "^met +dump: $type, unlike the CPU's +0 of 4 " output ||
        fail "$type is not compared with the CPU"
done
[ "$(grep -c '^met     kernel: .*share of a copy' output)" -eq 15 ] ||
    fail "the kernels are not judged"
[ "$(jq '.thresholds | length' "$json")" -eq 29 ] || fail "not all is noted"
[ "$(jq '[.thresholds[] | select(.met | not)] | length' "$json")" -eq \
    "$(grep -c ^missed output)" ] || fail "what is missed is noted otherwise"
jq -e '.thresholds[] | select(.what == "raw: overlap") | .value' "$json" |
    cmp - <(jq '.layer_raw.overlap' "$json") || fail "the overlap is another one"
jq -e '.layer_cifar | (.bus_bytes_per_s / .h2d_bytes_per_s / .h2d_share - 1 | fabs) < 1e-6
    and .h2d_copies.copy_bytes > 16 * 3072 and .h2d_copies.copy_bytes < 16 * 3400' \
    "$json" >/dev/null || fail "the ceiling is not that of the layer's copies"

# Batches that are fetched before they are there: other bytes than the CPU's. And
# the model is the one that was measured, where its driver tells.
run_check 'Double of H2D' 4
json=results/double_of_h2d.json
jq -e '.gpu == "Double of H2D"' "$json" >/dev/null || fail "the model is another one"
for type in float32 float16 bfloat16 uint8; do
    grep -qE "^missed +dump: $type, unlike the CPU's +[1-4] of 4 " output ||
        fail "$type that differs is not noticed"
done
[ "$(jq '[.thresholds[] | select((.what | startswith("dump: ")) and .value > 0 and
    (.met | not))] | length' "$json")" -eq 4 ] || fail "what differs is not noted"
