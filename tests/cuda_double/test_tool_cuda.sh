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
sizes=("${h2d[@]}" --test sizes)
LEAT_DOUBLE_BUS=25,2 "${sizes[@]}" --streams 2 --json >json || failed=1
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
LEAT_DOUBLE_BUS=12.5,0 "$leat" bench h2d --bytes 1M:1025k --streams 1 --test sizes \
    --json >json || failed=1
check "12.5 GB/s: $(rate pinned 1048576 1)" \
    grep -q '"bytes": 1048576, "streams": 1, "gb_per_s": 12.[45]' json
check 'copies of a sample, and that they were held' grep -qE \
    '"kind": "pinned", "bytes": 1048576.*"copies": 256, "samples": [0-9]+, "held": true' json

# The host's calls, of 5 us each, are no part of what is held until all are made.
LEAT_DOUBLE_BUS=25,2 LEAT_DOUBLE_CALL=5 "${sizes[@]}" --streams 2 --json >json || failed=1
for bytes in 4096 16384 65536; do
    for streams in 1 2; do
        check "calls count: pinned, $bytes bytes, $streams streams: $(rate pinned $bytes $streams)" \
            is_bus pinned $bytes $streams
    done
done
check "calls do not count where nothing is held: $(rate pageable 4096 1)" awk \
    -v rate="$(rate pageable 4096 1)" 'BEGIN { exit !(rate > .81 && rate < .83) }'

# Where launches block nothing can be held; and a host that takes too long is told so.
LEAT_DOUBLE_LAUNCH_BLOCKING=1 LEAT_DOUBLE_BUS=25,2 "${sizes[@]}" --streams 1 --json \
    >json || failed=1
check 'launches that block' test "$(grep -o '"held": false' json | wc -l)" -eq 6
check 'why nothing is held' grep -q "cuda:0: the host's calls count" json
# Half as many copies are enqueued in the time that a stream can be held; or none are.
LEAT_DOUBLE_CLOCK=1 LEAT_DOUBLE_BUS=25,2 LEAT_DOUBLE_CALL=9000 "${h2d[@]}" --streams 1 \
    --test sizes --json >json || failed=1
check 'half as many copies' test "$(grep -o '"copies": 128, [^}]*"held": true' json |
    wc -l)" -eq 3
check 'fewer copies are told' grep -q 'samples of fewer copies' json
for bytes in 4096 16384 65536; do
    check "fewer copies of $bytes bytes: $(rate pinned $bytes 1)" is_bus pinned $bytes 1
done
tells 'more than 2 s to enqueue 16 copies' env LEAT_DOUBLE_CLOCK=1 \
    LEAT_DOUBLE_CALL=9000 "${sizes[@]}" --streams 16

LEAT_DOUBLE_BUS=25,2 "${h2d[@]}" --device cuda:1 >table || failed=1
check 'the title' grep -qx 'memcpy CE CPU -> GPU bandwidth (GB/s)' table
check 'the columns' grep -q '^bytes  *| *pinned x1 | .*pageable x4$' table
check 'a row' grep -qE '^64 KiB +( \| +14\.18 \| +9\.90 \| +6\.17){2}$' table
check 'the device' grep -q '^cuda:1: .* at ffff:01:00.0' table
check 'a device whose node is unknown' grep -q '^note: cuda:1: its NUMA node is unknown' table
check 'nothing at once on one device' test -z "$(grep -E '_all_|all_to' table)"

# test_rate NAME DEVICE NODE
test_rate() {
    grep -oE "\"name\": \"$1\", \"device\": \"$2\", \"node\": $3, \"bytes\": [0-9]+, \"gb_per_s\": [0-9.]+" \
        json | sed 's/.*: //'
}
near() {
    # shellcheck disable=SC2317 # called by check
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > .999 * b && a < 1.001 * b) }'
}

# All tests of two devices, on a machine of two nodes: engines pay 2 us a copy, a
# kernel pays nothing. What goes both ways at once has a bus for each way.
mkdir -p root/sys/devices/system/node/node0 root/sys/devices/system/node/node1
echo 0-1 >root/sys/devices/system/node/has_memory
for node in 0 1; do
    awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status \
        >root/sys/devices/system/node/node$node/cpulist
    mkdir -p root/sys/bus/pci/devices/ffff:0$node:00.0
    echo $node >root/sys/bus/pci/devices/ffff:0$node:00.0/numa_node
done
LEAT_DOUBLE_ROOT=$PWD/root LEAT_DOUBLE_BUS=25,2 LEAT_DOUBLE_CALL=5 "${h2d[@]}" --device all \
    --json >json || failed=1
for device in cuda:0 cuda:1; do
    for node in 0 1; do
        for way in host_to_device device_to_host; do
            for name in ${way}_memcpy_ce ${way}_bidirectional_memcpy_ce; do
                check "$name of $device, node $node: $(test_rate "$name" "$device" "$node")" \
                    near "$(test_rate "$name" "$device" "$node")" 14.182
            done
            check "$way of a kernel: $(test_rate ${way}_memcpy_sm $device $node)" \
                near "$(test_rate ${way}_memcpy_sm $device $node)" 25
        done
    done
    for name in host_to_all_memcpy_ce all_to_host_memcpy_ce; do
        check "$name of $device: $(test_rate $name $device null)" \
            near "$(test_rate $name $device null)" 14.182
    done
    check "the node of $device" grep -qE \
        "\"name\": \"$device\", [^}]*\"node\": ${device#cuda:}, \"processors\": [1-9]" json
done
check 'no notes' test -z "$(grep -o '"notes"' json)"
LEAT_DOUBLE_ROOT=$PWD/root LEAT_DOUBLE_BUS=25,2 "${h2d[@]}" --device cuda:0,cuda:1 \
    --test host_to >table || failed=1
check 'the title of a test' test "$(grep -A1 -x host_to_device_memcpy_ce table | tail -n 1)" = \
    'memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)'
check 'its columns' grep -qE '^ +\| +cuda:0 \| +cuda:1$' table
check 'its rows' test "$(grep -A4 -x host_to_device_memcpy_ce table |
    grep -cE '^node [01] +\| +14\.18 \| +14\.18$')" -eq 2
check 'its sum' grep -qx 'SUM host_to_device_memcpy_ce 56.73' table
check 'all at once have a row' test "$(grep -A3 -x host_to_all_memcpy_ce table |
    grep -cE '^own node +\| +14\.18 \| +14\.18$')" -eq 1
check 'the processors' grep -qE '^NUMA node 1, [0-9]+ processors?$' table
check 'no sizes that were not asked for' test -z "$(grep pageable table)"
# A node that the device cannot have memory on is a row without figures.
echo 0,7 >root/sys/devices/system/node/has_memory
: >root/sys/devices/system/node/node0/cpulist
LEAT_DOUBLE_ELSEWHERE=7 LEAT_DOUBLE_ROOT=$PWD/root "${h2d[@]}" --test host_to_device_memcpy_ce \
    >table || failed=1
check 'memory elsewhere' grep -q '^note: cuda:0: memory for NUMA node 7 lies on node 0$' table
check 'a row without figures' grep -qE '^node 7 +\| +-$' table
check 'no processors' grep -q '^note: cuda:0: the process may not run on its NUMA node 0' table

# The model's clock: a copy takes the call, 2 us and its bytes; the call is the host's.
LEAT_DOUBLE_CLOCK=1 LEAT_DOUBLE_BUS=25,2 LEAT_DOUBLE_CALL=3 "$leat" bench h2d \
    --test latency --json >json || failed=1
check 'all latencies' test "$(grep -o copy_us json | wc -l)" -eq 20
for way in device host; do
    latency=$(grep -oE "\"direction\": \"to $way\", \"bytes\": 1048576, [^}]*" json)
    check "the latency of a MiB: $latency" grep -qE '"copy_us": 46\.94.*"submit_us": 3\.0,' <<<"$latency"
    latency=$(grep -oE "\"direction\": \"to $way\", \"bytes\": 4, [^}]*" json)
    check "the latency of 4 bytes: $latency" grep -qE '"copy_us": 5\.0.*"submit_us": 3\.0,' <<<"$latency"
done

# Less memory, on the host or the device: smaller copies, which it says.
for less in LEAT_DOUBLE_PINNABLE=40000 LEAT_DOUBLE_MEMORY=40000; do
    env $less "${h2d[@]}" --json >json || failed=1
    check "$less: smaller copies" grep -q \
        -E 'copies of up to 16 KiB, not (64|32) KiB: there is no more memory' json
    check "$less: sizes that fit" test "$(rate pinned 16384 1)" -a -z "$(rate pinned 65536 1)"
    check "$less: tests that fit" grep -q '"name": "device_to_host_memcpy_sm", .*"bytes": 16384,' json
done

# What came back otherwise than it was sent is no measurement.
tells 'came back changed' env LEAT_DOUBLE_MUTANT=7 "${h2d[@]}"
for name in host_to_device_memcpy_ce device_to_host_bidirectional host_to_device_memcpy_sm; do
    tells 'came back changed' env LEAT_DOUBLE_MUTANT=7 "${h2d[@]}" --test $name
done
tells 'no NVIDIA GPU is visible' env LEAT_DOUBLE_DEVICES=0 "${h2d[@]}"
tells 'no NVIDIA GPU is visible' env LEAT_DOUBLE_DEVICES=0 "${h2d[@]}" --device all
tells 'cuda:0 to cuda:1' "${h2d[@]}" --device cuda:7
tells 'pinning 4096 bytes' env LEAT_DOUBLE_PINNABLE=5000 "${h2d[@]}"
tells 'no test that was asked for is for cpu' "${h2d[@]}" --device cpu --test host_to
tells 'no size to measure' "$leat" bench h2d --bytes 5000:6000

# One signal ends it, within a sample, and prints no figures.
catches() {
    local mask
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ "/proc/$1/exe" -ef "$leat" ] && [ $((16#${mask: -4} & 0x4000)) -ne 0 ]
}
"$leat" bench h2d --bytes 4K:16M >stdout 2>stderr &
pid=$!
until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -TERM $pid
timeout 60 tail --pid=$pid -f /dev/null || kill -KILL $pid
wait $pid 2>/dev/null
check 'the status after a signal' test $? -eq 143
check 'no figures after a signal' test ! -s stdout

# A layer that delivers to the GPU: as many bytes as its batches have.
"$leat" synth noise --count 64 --shape 3,32,32 lmdb >/dev/null || failed=1
layer=("$leat" bench layer --reader lmdb:lmdb --batch 4 --seconds 0.3)
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
# 4 images of 3072 bytes, labels and choices: little more than that. Some batches
# were copied before the first was delivered, or are not delivered yet.
check 'the bytes of all batches' awk -v rate="$(number bus_bytes_per_s)" \
    -v seconds="$(number seconds)" -v batches="$(number batches)" 'BEGIN {
        bytes = rate * seconds
        exit !(bytes >= 12288 * (batches - 8) && bytes < 14000 * (batches + 8))
    }'
check "a copy of $(number copy_bytes) bytes" test "$(number copy_bytes)" -ge 12288 -a \
    "$(number copy_bytes)" -lt 14000
# In the model's time: a batch of some 12 KiB takes 2 us and its bytes at 25 GB/s.
check 'the copies of the overlap' awk -v ms="$(number copies)" \
    -v bytes="$(number copy_bytes)" 'BEGIN {
        model = 1e3 * (2e-6 + bytes / 25e9)
        exit !(ms > .95 * model && ms < 1.05 * model)
    }'
check 'kernels as long as copies' \
    awk -v a="$(number copies)" -v b="$(number kernels)" \
    'BEGIN { exit !(b > .99 * a && b < 1.01 * a) }'
check "$(number overlap) of the copies are hidden" \
    awk -v share="$(number overlap)" 'BEGIN { exit !(share >= .95) }'
check 'no call of the driver without a pause' test -z "$(grep driver_call_us json)"
# These have no memory for the large copies, which would take longest.
unpinned=(env "LEAT_DOUBLE_BUS=25,2" LEAT_DOUBLE_PINNABLE=4000000 "${layer[@]}"
    --device cuda:0)
# What a call takes after a pause, and a pause that is too long to repeat.
"${unpinned[@]}" --compute-ms 1 --json >json || failed=1
check "a call of the driver: $(number driver_call_us)" \
    awk -v us="$(number driver_call_us)" 'BEGIN { exit !(us > 0) }'
"${unpinned[@]}" --sleep-ms 1 >table || failed=1
check 'its line' grep -qE '^a call of the driver +[0-9.]+ [num]s alone, after the same pause' table
"${unpinned[@]}" --sleep-ms 51 --json >json || failed=1
check 'no call after a long pause' test -z "$(grep driver_call_us json)"
unpinned+=(--overlap)
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

# Each call that fails ends in one line, or did not matter, as one that puts back a
# caller's context: up to a third of them. A busy machine makes a few more calls.
n=0
told=0
while [ $n -lt 3000 ]; do
    if ! LEAT_DOUBLE_FAIL=$n "$leat" bench h2d --bytes 4096:4097 --streams 2 --device all \
        --test host,sizes >stdout 2>stderr; then
        check "call $n is told in one line" test "$(wc -l <stderr)" -eq 1
        check "call $n prints nothing" test ! -s stdout
        told=$((told + 1))
    fi
    n=$((n < 120 ? n + 17 : n + 313))
done
check "$told of 18 failing calls are told" test $told -ge 9
exit $failed
