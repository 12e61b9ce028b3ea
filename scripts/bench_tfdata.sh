#!/usr/bin/env bash
# Compares chains with tf.data's, in alternation: bench_tfdata.sh [--runs N]
# [--seconds S] [PYTHON]. PYTHON has TensorFlow: python3, or one of a virtual
# environment (pip install tensorflow-cpu). Prints the samples a second of both, as
# batches of 64 examples of 3072 pixels and a label, parsed and decoded to uint8;
# and the ratios of the pairs of runs, their median and range.
set -eu
cd "$(dirname "$0")/.."

runs=5
seconds=3
python=python3
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    -*)
        echo "bench_tfdata.sh: $1 is no option; see the head of the script" >&2
        exit 2
        ;;
    *) python=$1 ;;
    esac
    shift
done
version=$("$python" benchmarks/bench_tfdata.py version) || {
    echo "bench_tfdata.sh: $python has no TensorFlow: pip install tensorflow-cpu" >&2
    exit 1
}
scripts/build.sh >/dev/null
leat=build/leat
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-tfdata.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$python" benchmarks/bench_tfdata.py make "$work"

parse='example:image=uint8[3072],label=int64'
first="$work/train-0[0-7].tfr"
last="$work/train-0[89].tfr,$work/train-1*.tfr"
declare -A text=(
    [shuffle]="tfrecord:$work/train-*.tfr | shuffle:10000 | $parse"
    [zip]="(tfrecord:$first | $parse) (tfrecord:$last | $parse) | zip:prefix=(a_,b_)"
    [interleave]="files:$work/train-*.tfr | interleave:(tfrecord:{}),cycle=16 | $parse"
)

# What a data layer delivers: both images of a pair.
ours() {
    local tops=()
    [ "$1" != zip ] || tops=(--net "$work/zip.prototxt" --phase TRAIN)
    [ "$1" = zip ] || tops=(--reader "${text[$1]}" --batch 64 --top-type UINT8
        --label-type INT64)
    "$leat" bench layer "${tops[@]}" --seconds "$seconds" --json | jq .images_per_s
}
cat >"$work/zip.prototxt" <<END
layer {
  name: "pairs" type: "Data"
  top: "a_image" top: "a_label" top: "b_image" top: "b_label"
  data_param { batch_size: 64 }
  leat_param {
    reader: "${text[zip]}"
    top { name: "a_image" dtype: UINT8 } top { name: "a_label" dtype: INT64 }
    top { name: "b_image" dtype: UINT8 } top { name: "b_label" dtype: INT64 }
  }
}
END
theirs() {
    "$python" benchmarks/bench_tfdata.py measure "$work" "$1" "$seconds"
}

cat <<END
- machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(date -u +%Y-%m-%d)
- compiler: $(cc --version | head -n 1), Release; commit $(git rev-parse --short HEAD)$(git diff --quiet || echo ", changed"); TensorFlow $version

| chain | samples/s | tf.data's | ratio of pairs |
| --- | --- | --- | --- |
END
for chain in shuffle zip interleave; do
    for run in $(seq "$runs"); do
        [ $((run % 2)) -eq 1 ] || our=$(ours $chain)
        their=$(theirs $chain)
        [ $((run % 2)) -eq 0 ] || our=$(ours $chain)
        echo "$our $their"
    done | jq -rRs --arg chain "$chain" '
        def median: sort | .[length / 2 | floor];
        def places(n): . * pow(10; n) | round / pow(10; n);
        [splits("\n") | select(. != "") | split(" ") | map(tonumber)]
        | map(.[0] / .[1]) as $ratios
        | "| \($chain) | \(map(.[0]) | median | round) | \(map(.[1]) | median | round)"
        + " | \($ratios | median | places(2)) (\($ratios | min | places(2)) to \($ratios | max | places(2))) |"'
done
