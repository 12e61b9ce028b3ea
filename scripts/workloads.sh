# shellcheck shell=bash disable=SC2034,SC2154
# The workloads of which this project tells figures: sourced by what measures.
# `work` is a folder of the caller's, `leat` the tool; `counter` may be the library
# that counts allocations.

names=(
    "MNIST-like 1x28x28, batch 64, scale"
    "CIFAR-like 3x32x32, batch 100, mean_file"
    "raw 3x256x256 to 227, crop, mirror, mean_value, batch 64"
    "JPEG 256x256 to 227, crop, mirror, batch 64"
)
crops="raw 3x256x256 to 227 as uint8, crop, mirror, batch 64"

make_databases() {
    echo "making the databases ..." >&2
    $leat synth noise --count 60000 --shape 1,28,28 --seed 1 "$work/mnist" >&2
    $leat synth noise --count 50000 --shape 3,32,32 --seed 2 "$work/cifar" >&2
    $leat mean "$work/cifar" "$work/cifar.binaryproto" >&2
    $leat synth noise --count 2000 --shape 3,256,256 --seed 3 "$work/raw" >&2
    $leat synth noise --count 4000 --shape 3,256,256 --jpeg 90 --seed 4 "$work/jpeg" >&2
}

# warm DATABASE: into the page cache, which a shared machine may empty at any time;
# a layer that finds a page missing at its start reads by a thread of its own.
warm() {
    cat "$work/$1/data.mdb" >/dev/null
}

# measure LEAT N ARGUMENT...: the layer of workload N, one JSON object.
measure() {
    local tool=$1 n=$2 database=raw
    shift 2
    case $n in
    0) database=mnist && set -- --batch 64 --scale 0.00390625 "$@" ;;
    1) database=cifar && set -- --batch 100 \
        --mean-file "$work/cifar.binaryproto" "$@" ;;
    2) set -- --batch 64 --crop 227 --mirror --mean-value 104,117,123 "$@" ;;
    3) database=jpeg && set -- --batch 64 --crop 227 --mirror "$@" ;;
    crops) set -- --batch 64 --crop 227 --mirror --top-type uint8 "$@" ;;
    esac
    warm "$database"
    LD_PRELOAD=${counter-} ${pinned:+taskset -c 0} "$tool" bench layer --reader "lmdb:$work/$database" \
        "$@" --json
}
