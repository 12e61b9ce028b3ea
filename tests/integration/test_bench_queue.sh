#!/usr/bin/env bash
# benchmarks/bench_queue beside the tool: test_bench_queue.sh TOOL
set -u
bench=$(cd "$(dirname "$1")" && pwd)/benchmarks/bench_queue
[ -x "$bench" ] || {
    echo "skipped: bench_queue is not built"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

"$bench" --workers 3 --seconds 0.3 --json >json || failed=1
for key in results workers reader_thread caller_helps batches_per_s median p10 p90 \
    ns_per_batch latency_us p50 p99 max cpu cores version; do
    check "no $key" grep -q "\"$key\": " json
done
check 'one line of JSON' test "$(wc -l <json)" -eq 1
for n in 1 2 3; do
    check "three cases of $n workers" test \
        "$(grep -oE "\"workers\": $n," json | wc -l)" -eq 3
done
check 'no case of more workers' test "$(grep -oE '"workers"' json | wc -l)" -eq 9
check 'no latency where the caller helps' test \
    "$(grep -oE '"caller_helps": true, [^}]*}, "ns_per_batch": [0-9.e+]*, "latency_us": null' json | wc -l)" -eq 3
rate=$(grep -oE '"median": [0-9.e+]+' json | head -n 1 | sed 's/.*: //')
check "a rate of $rate" awk -v rate="$rate" 'BEGIN { exit !(rate > 100) }'
"$bench" --workers 1 --seconds 0.1 >text || failed=1
check 'a table' test "$(grep -cE '^(workers|a reader).* \| +1 \|' text)" -eq 3
"$bench" --reader lmdb:raw >stdout 2>stderr
check 'the status of wrong usage' test $? -eq 2
check 'its line' grep -q '^usage: bench_queue ' stderr
exit $failed
