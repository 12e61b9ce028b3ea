#!/usr/bin/env bash
# Measures the four workloads, layer and limit in one run each, and writes
# benchmarks/RESULTS.md: bench.sh [--runs N] [--seconds S]. Needs a quiet machine.
set -eu
cd "$(dirname "$0")/.."

runs=5
seconds=3
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 ;;
    --seconds) seconds=$2 ;;
    *)
        echo "bench.sh: $1 is no option; see the head of the script" >&2
        exit 2
        ;;
    esac
    shift 2
done

scripts/build.sh
command -v jq >/dev/null || scripts/deps.sh test
leat=build/leat
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "making the databases ..." >&2
$leat synth noise --count 60000 --shape 1,28,28 --seed 1 "$work/mnist"
$leat synth noise --count 50000 --shape 3,32,32 --seed 2 "$work/cifar"
$leat mean "$work/cifar" "$work/cifar.binaryproto"
$leat synth noise --count 2000 --shape 3,256,256 --seed 3 "$work/raw"
$leat synth noise --count 4000 --shape 3,256,256 --jpeg 90 --seed 4 "$work/jpeg"

# measure NAME ARGUMENT...: one JSON object a run.
measure() {
    local name=$1
    shift
    for _ in $(seq "$runs"); do
        $leat bench layer "$@" --seconds "$seconds" --limit --json
    done >"$work/$name.json"
}

measure "MNIST-like 1x28x28, batch 64, scale" --reader "lmdb:$work/mnist" \
    --batch 64 --scale 0.00390625
measure "CIFAR-like 3x32x32, batch 100, mean_file" --reader "lmdb:$work/cifar" \
    --batch 100 --mean-file "$work/cifar.binaryproto"
measure "raw 3x256x256 to 227, crop, mirror, mean_value, batch 64" \
    --reader "lmdb:$work/raw" --batch 64 --crop 227 --mirror \
    --mean-value 104,117,123
measure "JPEG 256x256 to 227, crop, mirror, batch 64" \
    --reader "lmdb:$work/jpeg" --batch 64 --crop 227 --mirror

# A table row of medians from the runs in a file.
row() {
    jq -rs --arg name "$1" '
        def median: sort | .[length / 2 | floor];
        def low: sort | first;
        def high: sort | last;
        [$name,
         (map(.images_per_s) | median | round),
         (map(.limit_images_per_s) | median | round),
         (map(.limit_share * 100) | "\(median | round) (\(low | round) to \(high | round))"),
         (map(.first_batch_ms) | median * 10 | round / 10),
         (map(.wait_us.p50) | median * 10 | round / 10),
         (map(.wait_us.p99) | median * 10 | round / 10),
         (map(.steady_allocations) | max)]
        | map(tostring) | "| " + join(" | ") + " |"' "$work/$1.json"
}

results=benchmarks/RESULTS.md
table=$(
    for file in "$work"/*.json; do
        row "$(basename "$file" .json)"
    done
)
cat >"$results" <<EOF
# What was measured

By \`scripts/bench.sh --runs $runs --seconds $seconds\`, which makes its own databases with
\`leat synth noise\`. Page cache warm; medians of $runs runs. The share is of the limit
measured in the same run, in alternation: all cores walking and transforming the same
records without queues (\`leat bench limit\`); its range over the runs is in brackets.

- machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(date -u +%Y-%m-%d)
- compiler: $(cc --version | head -n 1), Release
- commit: $(git rev-parse --short HEAD)$(git diff --quiet || echo ", changed")

| case | images/s | limit | share, % | first batch, ms | wait p50, us | wait p99, us | allocations |
| --- | --- | --- | --- | --- | --- | --- | --- |
$table
EOF
cat "$results"

tests/docs/documents.sh --update
