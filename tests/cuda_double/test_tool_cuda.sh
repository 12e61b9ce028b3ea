#!/usr/bin/env bash
# leat bench on a GPU whose bus is modelled: what it reports is that bus, and
# what fails is told in one line: test_tool_cuda.sh TOOL
set -u
leat=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

# rate KIND BYTES STREAMS: of that case, out of json.
rate() {
    grep -oE "\"kind\": \"$1\", \"bytes\": $2, \"streams\": $3, \"gb_per_s\": [0-9.]+" \
        json | sed 's/.*: //'
}

# The model: each of a copy's parts takes 2 us and its bytes at 25 GB/s.
# shellcheck disable=SC2317  # check calls it
is_bus() {
    awk -v rate="$(rate "$@")" -v bytes="$2" -v streams="$3" 'BEGIN {
        model = bytes / (2000 * streams + bytes / 25)
        exit !(rate > .999 * model && rate < 1.001 * model)
    }'
}

tells() {
    local text=$1
    shift
    "$@" >stdout 2>stderr
    check "the status of $*" test $? -eq 2
    check "$* says '$text'" grep -q -- "$text" stderr
    check "$* says it in one line" test "$(wc -l <stderr)" -eq 1
    check "$* prints nothing" test ! -s stdout
}

h2d=("$leat" bench h2d --bytes 4096:65536)
LEAT_DOUBLE_BUS=25,2 "${h2d[@]}" --streams 2 --json >json || failed=1
check 'one line' test "$(wc -l <json)" -eq 1
check 'all cases' test "$(grep -o gb_per_s json | wc -l)" -eq 12
for kind in pinned pageable; do
    for bytes in 4096 16384 65536; do
        for streams in 1 2; do
            check "$kind, $bytes bytes, $streams streams: $(rate $kind $bytes $streams)" \
                is_bus $kind $bytes $streams
        done
    done
done
for key in samples device name model bus_id driver driver_cuda runtime_cuda \
    capability link speed width most_speed most_width p10 p90 cpu cores version; do
    check "the object lacks $key" grep -q "\"$key\": " json
done
# Another bus, another figure.
LEAT_DOUBLE_BUS=12.5,0 "$leat" bench h2d --bytes 1048576:1048577 --streams 1 \
    --json >json || failed=1
check "12.5 GB/s: $(rate pinned 1048576 1)" \
    grep -q '"bytes": 1048576, "streams": 1, "gb_per_s": 12.[45]' json

LEAT_DOUBLE_BUS=25,2 "${h2d[@]}" --device cuda:1 >table || failed=1
check 'the title' grep -qx 'memcpy CE CPU -> GPU bandwidth (GB/s)' table
check 'the columns' grep -q '^bytes  *| *pinned x1 | .*pageable x4$' table
check 'a row' grep -qE '^64 KiB +( \| +14\.18 \| +9\.90 \| +6\.17){2}$' table
check 'the device' grep -q '^cuda:1: .* at ffff:01:00.0' table

# What came back otherwise than it was sent is no measurement.
tells 'came back changed' env LEAT_DOUBLE_MUTANT=7 "${h2d[@]}"
tells 'no NVIDIA GPU is visible' env LEAT_DOUBLE_DEVICES=0 "${h2d[@]}"
tells 'cuda:0 to cuda:1' "${h2d[@]}" --device cuda:7
tells 'pinning 65536 bytes' env LEAT_DOUBLE_PINNABLE=5000 "${h2d[@]}"
tells 'computes in host memory' "${h2d[@]}" --device cpu
tells 'no size to measure' "$leat" bench h2d --bytes 5000:6000

# A layer that delivers to the GPU: as many bytes as its batches have.
"$leat" synth noise --count 64 --shape 3,32,32 lmdb >/dev/null || failed=1
layer=("$leat" bench layer --reader lmdb:lmdb --batch 16 --seconds 0.3)
LEAT_DOUBLE_BUS=25,2 "${layer[@]}" --device cuda:0 --transform-on DEVICE \
    --overlap --json >json || failed=1
for key in device bus_bytes_per_s h2d_bytes_per_s h2d_share h2d_copies copy_bytes \
    samples p10 p90 best_bytes_per_s best_share overlap overlap_ms; do
    check "the layer's object lacks $key" grep -q "\"$key\": " json
done
# Large copies are what reaches most.
check 'the bus' grep -qE '"best_bytes_per_s": 2\.?498' json
number() {
    grep -oE "\"$1\": [0-9.e+]+" json | head -n 1 | sed 's/.*: //'
}
# Copies of that size pay 2 us each.
check "the bus of the layer: $(number h2d_bytes_per_s)" \
    awk -v rate="$(number h2d_bytes_per_s)" -v bytes="$(number copy_bytes)" 'BEGIN {
        model = 1e9 * bytes / (2000 + bytes / 25)
        exit !(rate > .999 * model && rate < 1.001 * model)
    }'
# 16 crops of 3072 bytes, labels and choices: little more than that.
check 'the bytes of a batch' awk -v rate="$(number bus_bytes_per_s)" \
    -v seconds="$(number seconds)" -v batches="$(number batches)" 'BEGIN {
        bytes = rate * seconds / batches
        exit !(bytes >= 49152 && bytes < 55000)
    }'
check "a copy of $(number copy_bytes) bytes" test "$(number copy_bytes)" -ge 49152 -a \
    "$(number copy_bytes)" -lt 55000
# In the model's time: a batch of some 50 KiB takes 2 us and its bytes at 25 GB/s.
check 'the copies of the overlap' awk -v ms="$(number copies)" \
    -v rate="$(number bus_bytes_per_s)" -v seconds="$(number seconds)" \
    -v batches="$(number batches)" 'BEGIN {
        model = 1e3 * (2e-6 + rate * seconds / batches / 25e9)
        exit !(ms > .95 * model && ms < 1.05 * model)
    }'
check 'kernels as long as copies' \
    awk -v a="$(number copies)" -v b="$(number kernels)" \
    'BEGIN { exit !(b > .99 * a && b < 1.01 * a) }'
check "$(number overlap) of the copies are hidden" \
    awk -v share="$(number overlap)" 'BEGIN { exit !(share >= .95) }'
# These have no memory for the large copies, which would take longest.
unpinned=(env "LEAT_DOUBLE_BUS=25,2" LEAT_DOUBLE_PINNABLE=4000000 "${layer[@]}"
    --device cuda:0 --overlap)
"${unpinned[@]}" --kernel-ms 0.5 --json >json || failed=1
check 'kernels of half a millisecond' awk -v ms="$(number kernels)" \
    -v both="$(number together)" 'BEGIN {
        exit !(ms > .4999 && ms < .5001 && both >= ms && both < 1.05 * ms)
    }'
LEAT_DOUBLE_ONE_ENGINE=1 "${unpinned[@]}" --json >json || failed=1
check "$(number overlap) is hidden where all goes on by turns" \
    awk -v share="$(number overlap)" 'BEGIN { exit !(share < .1) }'
tells_misuse=$("$leat" bench layer --reader lmdb:lmdb --batch 1 --overlap 2>&1)
check 'an overlap of what' grep -q 'needs a --device' <<<"$tells_misuse"
LEAT_DOUBLE_BUS=25,2 "${layer[@]}" --device cuda:0 >table || failed=1
check 'the share' grep -q '^share of h2d .* %$' table
check 'no overlap that was not asked for' test -z "$(grep '^overlap' table)"
"${unpinned[@]}" >table || failed=1
check 'the overlap' grep -q '^overlap .* %, copies .* together' table
"${layer[@]}" --device cpu --json >json || failed=1
check 'the CPU has no bus' test -z "$(grep bus_bytes json)"
tells 'no NVIDIA GPU is visible' env LEAT_DOUBLE_DEVICES=0 "${layer[@]}" \
    --device cuda:0

# Where nothing can be pinned there is no ceiling to tell the share of.
LEAT_DOUBLE_PINNABLE=0 "${layer[@]}" --device cuda:0 --json >json 2>stderr || failed=1
for key in h2d_bytes_per_s h2d_share best_bytes_per_s best_share; do
    check "$key is unknown" grep -q "\"$key\": null" json
done
check 'the bytes are known' grep -qE '"bus_bytes_per_s": [1-9]' json
check 'they are pageable' grep -qE '"pinned": 0, "pageable": [1-9]' json
LEAT_DOUBLE_PINNABLE=0 "${layer[@]}" --device cuda:0 >table 2>stderr || failed=1
check 'why' grep -q '^h2d, pinned *unknown: .*pinning 67108864 bytes' table
check 'no share' test -z "$(grep '^share of h2d' table)"

# Two devices that one reader feeds: the sum, and the half of it on each.
"${layer[@]}" --device cuda:0,cuda:1 --json >json || failed=1
for key in images_per_s devices bus_bytes_per_s device_node host_node bound_by; do
    check "the group's object lacks $key" grep -q "\"$key\": " json
done
check 'both devices' grep -q '"device": "cuda:0".*"device": "cuda:1"' json
# The sum comes first, then each.
read -ra batches < <(grep -oE '"batches": [0-9]+' json | sed 's/.*: //' | tr '\n' ' ')
check "each has half of the batches: ${batches[*]}" test "${batches[0]}" -gt 0 \
    -a "${batches[0]}" -eq $((2 * batches[1])) \
    -a "${batches[0]}" -eq $((2 * batches[2]))
"${layer[@]}" --device cpu,cuda:1 >table || failed=1
check 'the sum' grep -q '^images .* images/s on 2 devices$' table
check 'each' test "$(grep -cE '^(cpu|cuda:1) .* images/s, .* ([kMG]B|bytes)/s over the bus' table)" -eq 2
tells 'cuda:0 to cuda:1' "${layer[@]}" --device cuda:0,cuda:7
tells 'ends with a comma' "${layer[@]}" --device cuda:0,
"${layer[@]}" --device cuda:0,cuda:1 --limit >stdout 2>stderr
check 'no limit for several' test $? -eq 64

# What the device's memory holds is what the CPU delivers; whoever reads it before the
# copy is there shows, so it is not the host's side that is written.
dump=("$leat" dump --reader lmdb:lmdb --batch 16 --crop 24 --mirror --seed 3
    --mean-value 100 --batches 6)
"${dump[@]}" --out from_cpu >/dev/null || failed=1
for place in CPU DEVICE; do
    "${dump[@]}" --device cuda:1 --transform-on $place --out "from_$place" \
        >/dev/null || failed=1
    check "dump by way of cuda:1, transform on $place" \
        diff -r from_cpu "from_$place"
done
LEAT_DOUBLE_MUTANT=4 "${dump[@]}" --device cuda:1 --out early >/dev/null
check 'dump reads the device' test -n "$(diff -rq from_cpu early)"
tells 'no NVIDIA GPU is visible' env LEAT_DOUBLE_DEVICES=0 "${dump[@]}" \
    --device cuda:0 --out none
check 'no folder without a device' test ! -e none

# Each call that fails ends in one line, or did not matter.
n=0
told=0
while [ $n -lt 119 ]; do
    if ! LEAT_DOUBLE_FAIL=$n "$leat" bench h2d --bytes 4096:4097 --streams 1 \
        >stdout 2>stderr; then
        check "call $n is told in one line" test "$(wc -l <stderr)" -eq 1
        check "call $n prints nothing" test ! -s stdout
        told=$((told + 1))
    fi
    n=$((n + 17))
done
check "$told of 7 failing calls are told" test $told -ge 5
exit $failed
