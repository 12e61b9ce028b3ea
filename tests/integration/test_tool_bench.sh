#!/usr/bin/env bash
# leat bench: what it prints, what it refuses, and that a caller that computes
# does: test_tool_bench.sh TOOL
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

# value KEY: the first number of that name in the object.
value() {
    grep -oE "\"$1\": [-0-9.e+]+" json | head -n 1 | sed 's/.*: //'
}

# holds CONDITION: of numbers, as awk has it.
# shellcheck disable=SC2317  # check calls it
holds() {
    awk "BEGIN { exit !($1) }"
}

has_keys() {
    local key
    for key in "${@:2}"; do
        check "$1 lacks $key" grep -q "\"$key\": " json
    done
    check "$1 prints one line" test "$(wc -l <json)" -eq 1
}

refuses() {
    local status=$1 text=$2
    shift 2
    "$leat" bench "$@" >stdout 2>stderr
    check "the status of bench $*" test $? -eq "$status"
    check "bench $* says '$text'" grep -q -- "$text" stderr
    check "bench $* says it in one line" test "$(wc -l <stderr)" -eq 1
    check "bench $* prints nothing" test ! -s stdout
}

"$leat" synth noise --count 40 --shape 3,32,32 raw >/dev/null || exit 1
"$leat" synth noise --count 10 --shape 3,32,32 --jpeg 80 jpegs >/dev/null
"$leat" synth noise --count 0 none >/dev/null

# reader
"$leat" bench reader --reader lmdb:raw --workers 2 --touch --seconds 0.1 --json \
    >json || failed=1
has_keys 'bench reader' results case batch threads records_per_s median p10 \
    p90 bytes_per_s ns_per_record random_access touched records cpu cores version
check 'the records' test "$(value records)" = 40
check 'both batch sizes' test \
    "$(grep -oE '"batch": (1|64),' json | sort -u | wc -l)" -eq 2
check 'one thread and two' test \
    "$(grep -oE '"threads": [12],' json | sort -u | wc -l)" -eq 2
for name in next 'read_at in order' 'read_at shuffled'; do
    check "the case $name" grep -q "\"case\": \"$name\"" json
done
# Raw records of 3072 bytes and a label of 4.
check 'the bytes of a record' holds \
    "$(value bytes_per_s) / $(value median) > 3075.9 &&
     $(value bytes_per_s) / $(value median) < 3076.1"
"$leat" bench reader --reader lmdb:raw --seconds 0.05 >text || failed=1
check 'no list of a reader alone' test "$(grep -cE '^reader |"readers"' text json)" = \
    $'text:0\njson:0'
"$leat" bench reader --reader 'lmdb:raw | cache:dir=kept' --workers 2 --seconds 0.05 \
    >cached || failed=1
check 'a bench of a cache that it makes' grep -q '^reader cache/lmdb:' cached
"$leat" bench reader --reader 'lmdb:raw | cache:dir=part | take:5' --workers 2 \
    --seconds 0.05 >cached 2>said || failed=1
check 'a bench of a cache that no pass completes' grep -q '^next' cached
check 'which says so' grep -qx \
    'leat: one thread alone reads: no pass of this pipeline completes its cache:dir, .*' said
"$leat" bench limit --reader 'lmdb:raw | take:30 | cache:dir=kept.limit' --batch 4 --workers 2 \
    --seconds 0.05 --json >json 2>said || failed=1
check 'a limit of a cache that it makes' holds "$(value threads) == 2 && $(value images) > 0"
check 'which says nothing' test ! -s said
"$leat" bench limit --reader 'lmdb:raw | cache:dir=part.limit | take:5' --batch 4 --workers 2 \
    --seconds 0.05 --json >json 2>said || failed=1
check 'a limit of a cache that no pass completes' holds "$(value threads) == 1 && $(value images) > 0"
check 'which says that, too' grep -qx \
    'leat: one thread alone reads: no pass of this pipeline completes its cache:dir, .*' said
check 'a table of bench reader' grep -qE '^next  .*\| +1 \| +1 \|' text
refuses 2 'no records' reader --reader lmdb:none --seconds 0.05
refuses 2 'absent' reader --reader lmdb:absent --seconds 0.05
refuses 64 '--reader' reader

# layer: a caller that computes is no part of what the feed costs.
"$leat" bench layer --reader lmdb:raw --batch 4 --compute-ms 20 --seconds 0.3 \
    --json >json || failed=1
check 'computing takes its time' holds \
    "$(value batches) >= 1 && $(value seconds) / $(value batches) > 0.019"
check 'computing is not counted' holds \
    "$(value cpu_seconds) < 0.01 * $(value batches)"
"$leat" bench layer --reader lmdb:raw --batch 4 --sleep-ms 20 --seconds 0.3 \
    --json >json || failed=1
check 'sleeping takes its time' holds \
    "$(value batches) >= 1 && $(value seconds) / $(value batches) > 0.019"

# Of a core that another program runs on there is half.
core=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
taskset -c "$core" bash -c 'while :; do :; done' &
other=$!
taskset -c "$core" "$leat" bench layer --reader 'random:100000,shape=3x64x64,dtype=uint8' \
    --batch 4 --seconds 0.5 >text || failed=1
kill $other
wait $other 2>/dev/null
[ ! -s /proc/self/schedstat ] ||
    check 'other programs are told of' grep -qE '^cores were busy .* other programs ran' text

# layer: no allocation in the steady state, where something counts them. On a busy
# machine a worker may decode for the first time, and take memory, when the warm-up is
# over; so a run counts in which none did.
check 'no count without the preload' test -z "$(grep -o steady_allocations json)"
if [ -n "${LEAT_ALLOCATION_COUNT-}" ]; then
    for database in raw jpegs; do
        for _ in 1 2 3 4 5; do
            LD_PRELOAD=$LEAT_ALLOCATION_COUNT "$leat" bench layer \
                --reader lmdb:$database --batch 4 --seconds 0.3 --json >json || failed=1
            [ "$(value steady_allocations)" != 0 ] || break
        done
        check "no allocation of $database" test "$(value steady_allocations)" = 0
    done
    LD_PRELOAD=$LEAT_ALLOCATION_COUNT "$leat" bench layer --reader lmdb:raw --batch 4 \
        --seconds 0.1 >text || failed=1
    check 'allocations in the table' grep -qE '^allocations +[0-9]+$' text
else
    echo 'left out: allocations, for a sanitizer has a malloc of its own'
fi

# layer: epochs, and the limits.
"$leat" bench layer --reader lmdb:raw --batch 4 --epochs 3 --json >json ||
    failed=1
check 'three epochs' holds "$(value batches) == 30"
"$leat" bench layer --reader lmdb:raw --batch 40 --epochs 2 --json >json || failed=1
check 'two epochs of a batch' holds "$(value batches) == 2"
check 'its reader' grep -qE '"readers": \[' json
check 'the path of its reader' grep -qE '"path": "lmdb"' json
# An address of each record.
check 'the memory of its readers' holds "$(value readers) >= 8 * 40 && $(value readers) < 8 * 40 + 64"
"$leat" bench layer --reader lmdb:raw --batch 4 --crop 24 --top-type uint8 \
    --limit --row-copy --seconds 0.1 --json >json || failed=1
has_keys 'bench layer' limit_images_per_s limit_share limit_cpu_us_per_image \
    cpu_us_per_image
check 'a limit that copies' holds "$(value limit_images_per_s) > 100"
refuses 2 'uint8 tops' limit --reader lmdb:raw --batch 4 --row-copy
refuses 2 'raw uint8' limit --reader lmdb:jpegs --batch 4 --row-copy \
    --top-type uint8
refuses 64 'row-copy needs --limit' layer --reader lmdb:raw --batch 4 \
    --top-type uint8 --row-copy
refuses 2 'uint8 tops' layer --reader lmdb:raw --batch 4 --limit --row-copy
refuses 2 'raw uint8' layer --reader lmdb:jpegs --batch 4 --limit --row-copy \
    --top-type uint8

# A small stack is enough, or too small in words.
(ulimit -s 128 && "$leat" bench layer --reader lmdb:raw --batch 4 --seconds 0.02 >text 2>&1)
status=$?
check "a small stack ends with $status: $(tail -n 1 text)" test $status -le 2

refuses 64 'kittens' kittens
# h2d: without that GPU, whatever the build and the machine
refuses 2 'cuda:4096' h2d --device cuda:4096
refuses 2 'no size to measure' h2d --device cpu --bytes 1:4095
refuses 2 'no test that was asked for is for cpu' h2d --device cpu --test host_to
refuses 64 "no test is called 'latencies'; did you mean latency" h2d --test latencies
refuses 64 '--test' h2d --test ''
refuses 2 'is not a list of devices' h2d --device cpu,
refuses 64 '--bytes' h2d --bytes 4096
refuses 64 "unknown.*'--reader'" h2d --reader lmdb:raw
# h2d of host memory: a memcpy
"$leat" bench h2d --device cpu --bytes 4K:64K --json >json || failed=1
has_keys 'bench h2d' results kind bytes streams gb_per_s p10 p90 latency copy_us \
    submit_us tests name node devices samples
check 'three sizes of memory, which is not pinned' \
    test "$(grep -o '"kind": "pageable"' json | wc -l)" -eq 3
check 'one size alone' test "$("$leat" bench h2d --device cpu --bytes 16K:16K --json |
    grep -o '"kind": "pageable"' | wc -l)" -eq 1
check 'no test of a GPU' test "$(grep -oE '"name": "[a-z_]*memcpy[a-z_]*"' json |
    sort -u)" = '"name": "host_memcpy"'
check 'a memcpy takes its time' holds "$(value gb_per_s) > 0.01"
"$leat" bench h2d --device cpu --bytes 4K:64K --test sizes,host >text || failed=1
check 'the size of a memcpy' grep -qE '^64 KiB +\| +[0-9.]+$' text
check 'its test' grep -qE '^SUM host_memcpy [0-9.]+$' text
check 'no latency that was not asked for' test -z "$(grep latency text)"
refuses 64 "unknown.*'--device'" reader --reader lmdb:raw --device cuda:0
refuses 64 "unknown.*'--batch'" reader --reader lmdb:raw --batch 1
refuses 64 "unknown.*'--epochs'" limit --reader lmdb:raw --batch 1 --epochs 1
for counted in 'lmdb:raw' 'lmdb:raw | where:label=0..'; do
    refuses 2 'has no end' layer --reader "$counted | repeat" --batch 1 --epochs 1
done

# Each command has its own options and no others.
tells() {
    local command=$1 found
    shift
    "$leat" bench "$command" --help >help || failed=1
    check "the usage of bench $command" grep -q "^Usage: leat bench $command " help
    found=$(sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' help)
    check "the options of bench $command: $found" test "$(sort <<<"$found")" = \
        "$(printf '%s\n' "$@" help json | sort)"
}
layer=(net phase layer stage level source reader batch crop mirror scale mean-file
    mean-value top color gray top-type layout transform-on rng seed workers prefetch
    rank world-size launcher shard-test global-batch label-type top-mode reader-thread
    epoch-end caller-helps max-memory must-pin on-error max-errors bad-record-file max-image-bytes
    seconds row-copy)
tells layer "${layer[@]}" epochs compute-ms sleep-ms overlap kernel-ms limit \
    device
tells limit "${layer[@]}"
tells reader reader workers seconds touch
tells h2d device bytes streams test
"$leat" bench --help >help || failed=1
for command in layer limit reader h2d; do
    check "leat bench --help names $command" grep -q "^  $command  " help
done

refuses 2 'overlap is for a device with memory of its own' layer --reader lmdb:raw \
    --batch 4 --seconds 0.01 --overlap --device cpu
refuses 64 '--kernel-ms needs --overlap' layer --reader lmdb:raw --batch 4 --kernel-ms 1

# What is told of the layer is told of the same images, and by whom.
"$leat" bench layer --reader lmdb:raw --batch 4 --epochs 1 --json >json || failed=1
check 'the payload is that of the images' holds \
    "$(value payload_bytes_per_s) >= 3072 * $(value images_per_s) * 0.9999 &&
     $(value payload_bytes_per_s) <= 3100 * $(value images_per_s)"
"$leat" bench layer --reader lmdb:jpegs --batch 10 --workers 1 --seconds 0.2 --limit \
    >text || failed=1
who="(1 thread, at times the caller's too|2 threads, the caller's among them)"
check 'who transforms' grep -qE "^stage decode      $who: busy " text
check 'who reads' grep -qE "^stage reader      the workers, $who: busy " text
check 'who forwards' grep -qE '^stage forward     the caller: .* s without a batch, in [0-9.]* s of these it made one$' text
# shellcheck disable=SC2016
check 'no stage takes longer than its threads had' awk '/^stage (reader|decode)/ {
    found++
    sub(/.*: busy /, "")
    if ($1 + $6 + $10 > $4 * 1.02 + 0.05) bad = 1
} END { exit bad || found != 2 }' text
# shellcheck disable=SC2016
check 'the verdict and the stage count the same threads' awk '
    / by [0-9]+ threads? / { sub(/.* by /, ""); told = $1 }
    /^stage decode/ { counted = $3 }
    END { exit !told || told != counted }' text
check 'one line where all that is reserved is in use' test \
    "$(grep -cE '^memory  |^memory (reserved|in use)  ' text)" -eq \
    "$(grep -q '^memory  ' text && echo 1 || echo 2)"
check 'memory stands in its column' grep -qE '^memory[a-z ]{12} {4,}[0-9.]+ (bytes|[kMGT]B) pinned' text
# shellcheck disable=SC2016
check 'a share above 100 is told why, another is not' awk '/^share of limit/ {
    found = 1; if (($4 > 100) != /in alternation, and vary/) bad = 1
} END { exit bad || !found }' text
cat >net.prototxt <<'TEXT'
layer {
  name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "jpegs" batch_size: 10 backend: LMDB }
  leat_param { workers: 1 caller_helps: OFF }
}
TEXT
"$leat" bench layer --net net.prototxt --phase TRAIN --seconds 0.1 >text || failed=1
check 'no help, none told' grep -q '^stage decode      1 thread: busy' text
check 'nor any seconds of it' grep -qE 'in 0\.00 s of these it made one$' text

# One word and the sentence, which names the same; a caller that computes is served.
"$leat" bench layer --reader lmdb:raw --batch 4 --seconds 0.1 --sleep-ms 20 --json \
    >json || failed=1
check 'the word' grep -q '"bound_by": "consumer", "verdict": "the feed keeps up; bound by the consumer: ' json
"$leat" bench layer --reader lmdb:jpegs --batch 10 --seconds 0.6 --limit --json >json || failed=1
word=$(sed -n 's/.*"bound_by": "\([a-z]*\)".*/\1/p' json)
check 'the same word in the sentence' grep -qE "bound by (the )?${word/none/no stage alone}: " json
check 'waits told apart' grep -qE '"blocked_lock": [0-9.e-]+, .*"helped": [0-9.e-]+' json
check 'how the slices vary' holds "$(sed -n 's/.*"slices": {"n": \([0-9]*\),.*/\1/p' json) >= 3 &&
    $(value p10) > 0 && $(value p10) <= $(value p90)"

# The limit takes the threads that it is given, and bad records as the layer does.
for workers in 1 2; do
    "$leat" bench limit --reader lmdb:raw --batch 4 --workers $workers --seconds 0.1 \
        --json >json || failed=1
    check "a limit of $workers" test "$(value threads)" = $workers
done
refuses 64 'max-errors and --bad-record-file are for a layer' limit --reader lmdb:raw \
    --batch 4 --max-errors 3
if command -v mdb_load >/dev/null; then
    # bad_database NAME RECORD: 40 good ones, this one among them.
    bad_database() {
        mkdir "$1"
        {
            printf 'VERSION=3\nformat=bytevalue\ntype=btree\nmapsize=1048576\n'
            printf 'HEADER=END\n'
            for number in $(seq 10 50); do
                printf ' %s\n' "3${number%?}3${number#?}"
                if [ "$number" -eq 33 ]; then
                    printf ' %s\n' "$2"
                else
                    printf ' %s\n' 0801100118012201052803
                fi
            done
            printf 'DATA=END\n'
        } | mdb_load "$1"
    }
    bad_database short 08011001180a220105
    bad_database foreign 2204deadbeef28013801
    for bad in short foreign; do
        for command in layer limit; do
            refuses 2 "^leat: $bad: record 23, key 33: " $command \
                --reader lmdb:$bad --batch 4 --seconds 0.1
        done
        for policy in ZERO REPLACE; do
            "$leat" bench limit --reader lmdb:$bad --batch 4 --on-error $policy \
                --seconds 0.1 --json >json || failed=1
            check "$policy goes on" holds "$(value images) > 0 && $(value bad_records) > 0"
            check "$policy leaves out one of 41" holds \
                "$(value bad_records) < $(value images) / 10"
        done
        # Those of the warm-up do not count: one an epoch, and the batches in stock.
        "$leat" bench layer --reader lmdb:$bad --batch 41 --on-error REPLACE --epochs 20 \
            --json >json || failed=1
        check "bad records of 20 epochs: $(value bad_records)" \
            holds "$(value bad_records) >= 10 && $(value bad_records) <= 30"
        "$leat" bench limit --reader lmdb:$bad --batch 4 --on-error REPLACE --seconds 0.1 \
            >text || failed=1
        check 'those left out are told' grep -qE '^bad records +[0-9]+, left out' text
    done
else
    echo 'left out: bad records (needs mdb_load)'
fi

# One signal ends it, however long the caller's steps are: an hour each, of which the
# warm-up has five.
catches() {
    local mask
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ "/proc/$1/exe" -ef "$leat" ] && [ $((16#${mask: -4} & 0x4000)) -ne 0 ]
}
for step in sleep compute; do
    "$leat" bench layer --reader lmdb:raw --batch 4 --$step-ms 3600000 >stdout 2>stderr &
    pid=$!
    until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -TERM $pid
    timeout 60 tail --pid=$pid -f /dev/null || kill -KILL $pid
    wait $pid 2>/dev/null
    check "the status after a signal in a caller's $step" test $? -eq 143
done

# h2d ends before its first sample, too: warming up takes 0.2 s of processor time.
"$leat" bench h2d --device cpu --test sizes --bytes 4K:4K >stdout 2>stderr &
pid=$!
until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -TERM $pid
times >before
wait $pid 2>/dev/null
check 'the status of h2d after a signal' test $? -eq 143
times >after
# shellcheck disable=SC2016 # awk's
check "h2d ends soon after a signal: $(tail -qn 1 before after)" awk -F '[ms ]+' '
    FNR == 2 { seconds[NR] = 60 * $1 + $2 + 60 * $3 + $4 }
    END { exit (seconds[4] - seconds[2] > 0.15) }' before after

exit "$failed"
