#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU can show: the GPU tests, these again under
# compute-sanitizer, the bytes of each type of top beside the CPU's, `bench h2d`,
# bench_kernel, and `bench layer` of four workloads with uint8 upload and the
# transform on the GPU. Writes the figures, and which of the thresholds they meet, to
# benchmarks/results/<gpu>.json.
#   gpu_check.sh [BUNDLE [FOLDER]]
# BUNDLE is a folder of scripts/bundle.sh; without one, build/ is packed first. In
# a bundle the script takes that bundle, and FOLDER is results/ in it. Ends with 77
# where there is no GPU, and with 3 where all went well but a threshold is missed.
# LEAT_GPU_CHECK=quick takes small databases and little time: a look, no figures.
set -eu

fail() {
    echo "gpu_check.sh: $1" >&2
    exit "${2:-1}"
}

case ${1-} in
-h | --help)
    sed -n '2,12s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
-*) fail "$1 is no option; see gpu_check.sh --help" 2 ;;
esac
[ $# -le 2 ] || fail "give a bundle and a folder, no more" 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! command -v nvidia-smi >/dev/null ||
    ! gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null |
        head -n 1) || [ -z "$gpu" ]; then
    echo "skipped: there is no NVIDIA GPU on this machine"
    exit 77
fi

if [ $# -gt 0 ]; then
    bundle=$(cd "$1" && pwd)
elif [ -f "$here/BUNDLE" ]; then
    bundle=$here
else
    "$here/bundle.sh" "$here/../build" "$work/bundle"
    bundle=$work/bundle
fi
[ -f "$bundle/BUNDLE" ] || fail "$bundle is no bundle of scripts/bundle.sh"
[ -x "$bundle/bin/bench_kernel" ] ||
    fail "$bundle has no bench_kernel; build with LEAT_BUILD_BENCHMARKS"
[ -s "$bundle/gpu_tests" ] || fail "$bundle has no GPU tests; build with CUDA"
folder=$here/../benchmarks/results
[ ! -f "$here/BUNDLE" ] || folder=$here/results
folder=${2:-$folder}
leat=$bundle/bin/leat
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-600}

# run_tests [COMMAND...]: each GPU test, behind COMMAND; a skip is no pass here.
run_tests() {
    local line word words
    while read -r line; do
        words=()
        for word in $line; do
            case $word in
            bin/* | data/*) word=$bundle/$word ;;
            esac
            words+=("$word")
        done
        echo "test: $line" >&2
        "$@" "$bundle/bin/${words[0]}" "${words[@]:1}" >&2 </dev/null ||
            return 1
    done <"$bundle/gpu_tests"
}

# number KEY FILE [WORD]: the first number of that key, behind the key WORD.
number() {
    { if [ -n "${3-}" ]; then sed "s/.*\"$3\"//" "$2"; else cat "$2"; fi; } |
        grep -oE "\"$1\": -?[0-9.]+(e[-+]?[0-9]+)?" | head -n 1 | sed 's/.*: //'
}

# word KEY FILE: the first text of that key.
word() {
    grep -oE "\"$1\": \"[^\"]*\"" "$2" | head -n 1 | sed 's/.*: "\(.*\)"/\1/'
}

# judge WHAT VALUE at-least|under LIMIT UNIT: says, and notes, whether it is met.
missed=0
: >"$work/thresholds"
judge() {
    local verdict=met
    awk -v value="$2" -v limit="$4" -v way="$3" 'BEGIN {
        exit !(value != "" && (way == "under" ? value + 0 < limit : value + 0 >= limit))
    }' || verdict=missed
    [ $verdict = met ] || missed=$((missed + 1))
    printf '%-6s  %-52s %s %s (%s %s)\n' "$verdict" "$1" "${2:-no figure}" "$5" \
        "${3/-/ }" "$4"
    [ ! -s "$work/thresholds" ] || printf ',\n  ' >>"$work/thresholds"
    printf '{"what": "%s", "value": %s, "%s": %s, "unit": "%s", "met": %s}' \
        "$1" "${2:-null}" "${3/-/_}" "$4" "$5" \
        "$([ $verdict = met ] && echo true || echo false)" >>"$work/thresholds"
}

run_tests || fail "a GPU test failed or was skipped"

# It may be missing, or not work under this driver or in this container.
sanitizer=(compute-sanitizer --target-processes all --error-exitcode 99)
memcheck="skipped: there is no compute-sanitizer"
if command -v compute-sanitizer >/dev/null; then
    if compute-sanitizer "$leat" bench h2d --bytes 4096:4097 --streams 1 \
        >"$work/sanitizer" 2>&1; then
        run_tests "${sanitizer[@]}" || fail "compute-sanitizer found an error"
        memcheck=passed
    else
        memcheck="skipped: compute-sanitizer does not work here"
        tail -n 5 "$work/sanitizer" >&2
    fi
fi
echo "compute-sanitizer: $memcheck"

seconds=5
share=1
sizes=4096:268435456
images=0
batches=(1024 1000 256)
if [ "${LEAT_GPU_CHECK-}" = quick ]; then
    seconds=0.1
    share=32
    sizes=4096:65536
    images=1
    batches=(16 16 1)
fi
echo "making the databases ..." >&2
synth() {
    "$leat" synth noise "$@" >/dev/null
}
synth --count $((60000 / share)) --shape 1,28,28 --seed 1 "$work/mnist"
synth --count $((50000 / share)) --shape 3,32,32 --seed 2 "$work/cifar"
synth --count $((8192 / share)) --shape 3,256,256 --seed 3 "$work/raw"
synth --count $((8192 / share)) --shape 3,256,256 --jpeg 90 --seed 4 "$work/jpeg"
"$leat" mean "$work/cifar" "$work/cifar.binaryproto" >/dev/null
synth --count 48 --shape 3,64,64 --seed 5 "$work/small"
synth --count 48 --shape 3,64,64 --jpeg 90 --seed 6 "$work/small_jpeg"

# deliver SOURCE TYPE LAYOUT FOLDER [OPTION...]: two passes, and what follows.
deliver() {
    local arithmetic=(--mean-value "104,117,123" --scale 0.0078125)
    [ "$2" != uint8 ] || arithmetic=()
    "$leat" dump --reader "lmdb:$work/$1" --top-type "$2" --layout "$3" --seed 7 \
        --batch 20 --batches 5 --crop 57 --mirror --out "$work/dumped_$4" \
        "${arithmetic[@]}" "${@:5}" >/dev/null
}

# differing TYPE: how many dumps by way of cuda:0 are not the CPU's.
differing() {
    local n=0 source layout
    for source in small small_jpeg; do
        for layout in NCHW NHWC; do
            deliver $source "$1" $layout cpu --device cpu
            deliver $source "$1" $layout gpu --device cuda:0 --transform-on DEVICE
            diff -r "$work/dumped_cpu" "$work/dumped_gpu" >&2 || n=$((n + 1))
            rm -r "$work/dumped_cpu" "$work/dumped_gpu"
        done
    done
    echo $n
}

types=(float32 float16 bfloat16 uint8)
echo "comparing with the CPU ..." >&2
for type in "${types[@]}"; do
    differing "$type" >"$work/differing_$type"
done

echo "measuring ..." >&2
"$leat" bench h2d --bytes $sizes --json >"$work/h2d"
"$bundle/bin/bench_kernel" --batch $images --json >"$work/kernel"

# measure WORKLOAD ARGUMENT...: its layer, one JSON object.
measure() {
    local workload=$1
    shift
    case $workload in
    mnist) set -- --batch "${batches[0]}" --scale 0.00390625 "$@" ;;
    cifar) set -- --batch "${batches[1]}" \
        --mean-file "$work/cifar.binaryproto" "$@" ;;
    *) set -- --batch "${batches[2]}" --crop 227 --mirror \
        --mean-value 104,117,123 "$@" ;;
    esac
    "$leat" bench layer --device cuda:0 --reader "lmdb:$work/$workload" \
        --transform-on DEVICE --seconds $seconds --json "$@"
}

# Undisturbed, with the overlap behind it; and with a caller that leaves the layer
# time, so that forward is what forward takes and not what is waited for.
workloads=(mnist cifar raw jpeg)
for workload in "${workloads[@]}"; do
    measure "$workload" --overlap >"$work/layer_$workload"
    measure "$workload" --sleep-ms 20 >"$work/forward_$workload"
done

for type in "${types[@]}"; do
    judge "dump: $type, unlike the CPU's" "$(cat "$work/differing_$type")" under 1 \
        'of 4'
done
# Decoding on the CPU bounds jpeg's feed, so only what the caller pays is judged.
for workload in "${workloads[@]}"; do
    layer=$work/layer_$workload
    if [ "$workload" = jpeg ]; then
        echo "none    jpeg: bound by decoding: share of h2d" \
            "$(number h2d_share "$layer"), overlap $(number overlap "$layer")"
    else
        judge "$workload: share of h2d, by copies of its size" \
            "$(number h2d_share "$layer")" at-least 0.97 ''
        judge "$workload: overlap" "$(number overlap "$layer")" at-least 0.95 ''
    fi
    judge "$workload: forward, median" \
        "$(number p50 "$work/forward_$workload" wait_us)" under 10 us
done
while IFS='|' read -r type order value; do
    judge "kernel: $type, $order, share of a copy" "$value" at-least 0.70 ''
done < <(grep -oE '\{"type"[^}]*\}' "$work/kernel" | sed \
    's/.*"type": "\([^"]*\)", "case": "\([^"]*\)".*"copy_share": \([-0-9.e+]*\).*/\1|\2|\3/')

# quoted TEXT: as a string of JSON.
quoted() {
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

# What `bench` measured is cuda:0, which need not be the first of nvidia-smi.
model=$(word model "$work/h2d")
if [ -z "$model" ] || [ "$model" = unknown ]; then
    model=$(nvidia-smi -i "$(word bus_id "$work/h2d")" --query-gpu=name \
        --format=csv,noheader 2>/dev/null | head -n 1) || model=
fi
gpu=${model:-$gpu}
name=$(tr -cs 'A-Za-z0-9\n' _ <<<"$gpu" | tr '[:upper:]' '[:lower:]')
{
    printf '{"gpu": %s,\n' "$(quoted "$gpu")"
    printf ' "commit": %s,\n' \
        "$(quoted "$(sed -n 's/^commit: //p' "$bundle/BUNDLE")")"
    printf ' "gpu_tests": "passed",\n "compute_sanitizer": %s,\n' \
        "$(quoted "$memcheck")"
    printf ' "quick": %s,\n' \
        "$([ "${LEAT_GPU_CHECK-}" = quick ] && echo true || echo false)"
    printf ' "thresholds": [\n  %s],\n' "$(cat "$work/thresholds")"
    for workload in "${workloads[@]}"; do
        for what in layer forward; do
            printf ' "%s_%s": %s,\n' "$what" "$workload" \
                "$(cat "$work/${what}_$workload")"
        done
    done
    printf ' "kernel": %s,\n' "$(cat "$work/kernel")"
    printf ' "h2d": %s}\n' "$(cat "$work/h2d")"
} >"$work/result"
mkdir -p "$folder"
cp "$work/result" "$folder/$name.json"
echo "$folder/$name.json"
[ $missed -eq 0 ] || {
    echo "$missed thresholds are missed"
    exit 3
}
