#!/usr/bin/env bash
# scripts/gpu_check.sh without a GPU, and with one that the double plays, where there
# is nothing but bash and coreutils: test_gpu_check.sh TOOL BENCH_KERNEL GRAPH_TEST
# TEST... The last are what a machine with a GPU runs, over the double.
set -eu
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
kernel=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
graphs=$3
shift 3
scripts=$(cd "$(dirname "$0")/../.." && pwd)/scripts
"$scripts/turn.sh" 0 || {
    echo 'skipped: it is the turn of others (scripts/turn.sh)'
    exit 77
}
check=$scripts/gpu_check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$1" >&2
    exit 1
}

# All that the machine has.
mkdir path
for command in bash basename cat cp date dirname env head ln mkdir mktemp mv readlink \
    rm sha256sum sleep sort tail tee timeout touch tr; do
    ln -s "$(command -v $command)" path/
done
run() {
    PATH=$work/path "$check" "$@" >output 2>&1
}

# without_gpu STATUS TEXT
without_gpu() {
    local status=0
    run bundle results || status=$?
    [ $status -eq "$1" ] || fail "without a GPU the status is $status, not $1"
    grep -q "$2" output || fail "without a GPU it does not say $2: $(<output)"
    [ ! -e results ] || fail "figures were written without a GPU"
}

mkdir -p bundle/bin
echo 'commit: abc' >bundle/BUNDLE
cat >bundle/bin/leat <<'TOOL'
#!/usr/bin/env bash
echo "leat: cuda:0: there is no NVIDIA driver on this machine" >&2
exit 1
TOOL
chmod +x bundle/bin/leat
without_gpu 77 '^skipped: .*no NVIDIA driver'
cat >path/nvidia-smi <<'SMI'
#!/usr/bin/env bash
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
exit 9
SMI
chmod +x path/nvidia-smi
without_gpu 77 '^skipped: .*no NVIDIA driver'
# The GPU that is measured is not the first of nvidia-smi.
cat >path/nvidia-smi <<'SMI'
#!/usr/bin/env bash
case " $*" in
*" -i ffff:00:00.0 "*) echo "NVIDIA Double 9000" ;;
*) echo "Some other GPU" ;;
esac
SMI
without_gpu 1 'there is Some other GPU, but: leat: cuda:0: there is no NVIDIA driver'

# GPU tests that do as they are told, where a time is how long they hang, and a
# sanitizer likewise. The tool; what `model` says is the model, and `mutant` is broken
# where it dumps.
cat >path/compute-sanitizer <<SANITIZER
#!/usr/bin/env bash
echo "\$* \$CK_FORK" >>"$work/sanitized"
while [[ \$1 == --* ]]; do
    case \$1 in --target-processes | --nvtx | --report-api-errors | --error-exitcode) shift ;; esac
    shift
done
"\$@"
exit "\$(<"$work/sanitizer")"
SANITIZER
cat >bundle/bin/test_one <<TEST
#!/usr/bin/env bash
echo "\${0##*/} \$CK_FORK" >>"$work/forks"
status=\$(<"$work/status_\$1")
case \$status in
*s)
    echo \$\$ >"$work/hanging"
    exec sleep "\$status"
    ;;
*)
    [ "\$status" -ne 0 ] || echo '100%: Checks: 1, Failures: 0, Errors: 0'
    exit "\$status"
    ;;
esac
TEST
cat >bundle/bin/leat <<TOOL
#!/usr/bin/env bash
if [ "\$1" = dump ]; then
    LEAT_DOUBLE_MUTANT=\$(<"$work/mutant")
    export LEAT_DOUBLE_MUTANT
fi
[ "\$1 \$2" = "bench h2d" ] || exec "$leat" "\$@"
json=\$("$leat" "\$@") || exit
echo "\${json/\"model\": \"unknown\"/\"model\": \"\$(<"$work/model")\"}"
TOOL
chmod +x path/compute-sanitizer bundle/bin/test_one bundle/bin/leat
cp bundle/bin/test_one bundle/bin/test_one_faults
ln -s "$kernel" bundle/bin/bench_kernel
printf 'test_one %s\n' a b >bundle/gpu_tests
echo 'test_one_faults c' >>bundle/gpu_tests
echo 'test_one d' >bundle/graph_tests
for name in a b c d; do
    echo 0 >status_$name
done
echo 0 >sanitizer
echo unknown >model
echo 0 >mutant
export LEAT_DOUBLE_BUS=25,2 LEAT_DOUBLE_MEMORY_BUS=400
folder=results/nvidia_double_9000

# stages STATUS STAGE,... [LINE...]: the status, a line for each stage, and its JSON.
stages() {
    local status=0 stage line
    rm -rf results
    run --only "$2" bundle results || status=$?
    [ $status -eq "$1" ] || fail "the status of $2 is $status, not $1: $(<output)"
    for stage in ${2//,/ }; do
        jq -e --arg stage "$stage" '.stage == $stage and .commit == "abc" and
            .seconds <= .limit_s + 6' $folder/"$stage".json >/dev/null ||
            fail "no figures of $stage: $(<output)"
    done
    for line in "${@:3}"; do
        grep -qE "^$line" output || fail "no line '$line': $(<output)"
    done
    [ "$(grep -cE '^(passed|missed|failed|skipped|timed out) ' output)" -eq "$(wc -w <<<"${2//,/ }")" ] ||
        fail "there is more or less than a line a stage: $(<output)"
}

# All of it is over before a command of ten minutes is, with what comes before the
# stages and after them, and a stage in three minutes, by what it says itself.
"$check" --help >help
[ "$(sed -nE 's/^  ([a-z0-9]+) .* ([0-9]+) s( at most)?$/\1=\2/p' help | sort)" = \
    "$(grep -oE '\[[a-z0-9]+\]=[0-9]+' "$check" | tr -d '][' | sort)" ] ||
    fail "the limits are others than those said: $(<help)"
sed -nE 's/^  [a-z0-9]+ .* ([0-9]+) s( at most)?$/\1/p' help >limits
[ "$(wc -l <limits)" -eq 7 ] || fail "there are not seven stages"
[ "$(sort -n limits | tail -n 1)" -lt 180 ] || fail "a stage may take three minutes"
total=$(($(paste -sd+ limits)))
[ $total -lt 560 ] || fail "all of it may take ten minutes"
grep -q "^total=$total\$" "$check" || fail "the stages together have another limit"

stages 0 tests,graphs 'passed +tests +[0-9]+ of 120 s  3 tests' \
    'passed +graphs +[0-9]+ of  40 s  1 tests'
[ "$(sort forks)" = "$(printf '%s\n' 'test_one no' 'test_one no' 'test_one no' \
    'test_one_faults yes')" ] || fail "tests fork otherwise: $(<forks)"
if run --only tests,such bundle results; then
    fail "a stage that there is not was run"
fi
grep -q "no stage 'such'; there are tests sanitizer" output ||
    fail "the stages are not listed: $(<output)"

# The tests themselves.
mv bundle/gpu_tests told
mv bundle/graph_tests told_graphs
for test in "$graphs" "$@"; do
    ln -s "$test" bundle/bin/
done
printf '%s cuda:0\n' "${@##*/}" >bundle/gpu_tests
echo "${graphs##*/}" >bundle/graph_tests
LEAT_DOUBLE_MEMORY=64000000 LEAT_GPU_BATCHES=64 LEAT_GPU_CHECK_LIMIT=300 \
    LEAT_GPU_CHECK_TEST_LIMIT=200 stages 0 tests,graphs \
    "passed +tests .* $# tests" 'passed +graphs .* 1 tests'
mv told bundle/gpu_tests
mv told_graphs bundle/graph_tests

# A test that fails, or is skipped, or hangs, stops neither the others nor the next
# stage; a stage that hangs is stopped.
for bad in 1 77; do
    echo $bad >status_a
    stages 1 tests,graphs 'failed +tests .*1 of 3 tests failed; the first: test_one a: ' \
        'passed +graphs'
    jq -e '[.tests[] | select(.result == "passed")] | length == 2' $folder/tests.json \
        >/dev/null || fail "the tests after one that fails did not run"
done
jq -e '.log | contains("test_one b: passed")' $folder/tests.json >/dev/null ||
    fail "the log is not there"
echo 600s >status_a
LEAT_GPU_CHECK_LIMIT=2 stages 1 tests,graphs \
    'timed out +tests +[2-8] of   2 s  stopped after 2 s; .*test: test_one a' \
    'passed +graphs'
grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$(<hanging)/status" &&
    fail "a test is left running by the stage that ended"
jq -e '.result == "timed out" and (.reason | startswith("stopped after 2 s"))' \
    $folder/tests.json >/dev/null || fail "the stage that hangs is not named"
# One that cannot be killed, as in the driver, is told instead of figures.
# shellcheck disable=SC2317 # called by gpu_check.sh
kill() { :; }
export -f kill
LEAT_GPU_CHECK_LIMIT=2 stages 1 tests,graphs 'timed out +tests ' \
    'failed +graphs .*not run: process [0-9]+ of an earlier stage does not end'
unset -f kill
kill "$(<hanging)"
LEAT_GPU_CHECK_TEST_LIMIT=1 stages 1 tests \
    'failed +tests .*1 of 3 tests failed; the first: test_one a: timed out'
jq -e '[.tests[].result] == ["timed out", "passed", "passed"]' $folder/tests.json \
    >/dev/null || fail "a test that hangs stops those after it"
echo 0 >status_a

# Without --only it is all of them, also where none has the time it needs.
rm -rf results
status=0
LEAT_GPU_CHECK=quick LEAT_GPU_CHECK_LIMIT=1 run bundle results || status=$?
[ $status -eq 1 ] || fail "stages without time are no failure: $(<output)"
[ "$(cut -c 1-20 output | grep -oE 'tests|sanitizer|bytes|kernels|h2d|layers|graphs' |
    tr '\n' ' ')" = 'tests sanitizer bytes kernels h2d layers graphs ' ] ||
    fail "not all stages are run: $(<output)"
[ "$(echo $folder/*.json | wc -w)" -eq 7 ] || fail "not all stages have figures"
for json in "$folder"/*.json; do
    jq -e .result "$json" >/dev/null || fail "$json is no JSON"
done

# The sanitizer is asked for memory's errors alone, and not of tests that are to make
# some; where it does not work, that is a skip, where it finds something a failure.
rm -f sanitized
stages 0 sanitizer 'passed +sanitizer +[0-9]+ of 120 s  2 tests'
[ "$(grep -c -- '--report-api-errors no .*/test_one [ab] no$' sanitized)" -eq 2 ] ||
    fail "the sanitizer is run otherwise: $(<sanitized)"
grep -q _faults sanitized && fail "a killed kernel is under the sanitizer"
echo 99 >sanitizer
stages 77 sanitizer 'skipped +sanitizer .*does not work here'
# Nor is it believed where it ends well and has run nothing.
printf '#!/usr/bin/env bash\n' >path/compute-sanitizer
stages 77 sanitizer 'skipped +sanitizer .*does not work here'
for found in 0 99; do
    cat >path/compute-sanitizer <<SANITIZER
#!/usr/bin/env bash
case "\$*" in *bench*) exec "$leat" bench h2d --test sizes --bytes 4K:5K --streams 1 ;; esac
exit $found
SANITIZER
    stages 1 sanitizer 'failed +sanitizer .*2 of 2 tests failed'
done
mkdir -p toolkit/bin
mv path/compute-sanitizer toolkit/bin/
printf '#!/usr/bin/env bash\n' >toolkit/bin/nvcc
chmod +x toolkit/bin/nvcc
ln -s ../toolkit/bin/nvcc path/nvcc
stages 1 sanitizer 'failed +sanitizer .*2 of 2 tests failed'
rm path/nvcc
[ -e /usr/local/cuda/bin/compute-sanitizer ] ||
    stages 77 sanitizer 'skipped +sanitizer .*there is no compute-sanitizer'

# What a bundle lacks is a failure.
mv bundle/graph_tests bundle/none
stages 1 graphs,bytes 'failed +graphs .*the bundle has no graph_tests' 'passed +bytes'
: >bundle/graph_tests
stages 1 graphs 'failed +graphs .*the bundle has no graph_tests'
mv bundle/none bundle/graph_tests

# What the double cannot do is told as missed, in the table and in the file: its
# host is not as fast as its bus is said to be, and it does one thing at a time.
[ "${LEAT_GPU_CHECK_LONG-}" ] || export LEAT_GPU_CHECK=quick
export LEAT_DOUBLE_ONE_ENGINE=1
# This machine may be at something else, too.
export LEAT_GPU_CHECK_LIMIT=300
stages 3 kernels,h2d,layers 'passed +kernels .*15 of 15 thresholds met' 'passed +h2d ' \
    'missed +layers .*of 10 thresholds met'
for workload in mnist cifar raw; do
    grep -q "^  missed  $workload: share of h2d, by copies of its size " output ||
        fail "no share of $workload"
    grep -q "^  missed  $workload: overlap " output || fail "no overlap of $workload"
done
for workload in mnist cifar raw jpeg; do
    grep -qE "^  (met|missed) +$workload: forward" output ||
        fail "no forward of $workload"
done
grep -qE '^  none +jpeg: bound by decoding: share of h2d [0-9.e+-]+, overlap [0-9.]+$' \
    output || fail "jpeg's figures are not told"
[ "$(grep -c '^  met     kernel: .*share of a copy' output)" -eq 15 ] ||
    fail "the kernels are not judged"
jq -e '.kernel.device and (.thresholds | length == 15)' $folder/kernels.json >/dev/null ||
    fail "not all of the kernels is noted"
jq -e '.h2d.results[0].gb_per_s >= 0 and (.h2d.latency | length > 0) and
    (.h2d_tests.tests | length >= 6) and (has("thresholds") | not)' $folder/h2d.json \
    >/dev/null || fail "the bandwidths are not noted"
json=$folder/layers.json
[ "$(jq '.thresholds | length' $json)" -eq 10 ] || fail "not all is noted"
[ "$(jq '[.thresholds[] | select(.met | not)] | length' $json)" -eq \
    "$(grep -c '^  missed' output)" ] || fail "what is missed is noted otherwise"
jq -e '.thresholds[] | select(.what == "raw: overlap") | .value' $json |
    cmp - <(jq '.layer_raw.overlap' $json) || fail "the overlap is another one"
jq -e '.layer_cifar | (.bus_bytes_per_s / .h2d_bytes_per_s / .h2d_share - 1 | fabs) < 1e-6
    and .h2d_copies.copy_bytes > 16 * 3072 and .h2d_copies.copy_bytes < 16 * 3400' \
    $json >/dev/null || fail "the ceiling is not that of the layer's copies"

# Copies of memory that is not pinned are no figures.
LEAT_DOUBLE_PINNABLE=10000 stages 1 layers 'failed +layers .*pin'
jq -e 'has("layer_mnist") | not' $folder/layers.json >/dev/null ||
    fail "copies of pageable memory are noted"

# Where nvbandwidth is there, what it says is the limit.
cat >path/nvbandwidth <<'NVBANDWIDTH'
#!/usr/bin/env bash
echo "nvbandwidth Version: v0.8"
echo "SUM host_to_device_memcpy_ce 54.99"
NVBANDWIDTH
chmod +x path/nvbandwidth
stages 3 h2d 'missed +h2d .*0 of 1 thresholds met'
jq -e '.thresholds[0].at_least == 54.4401' $folder/h2d.json >/dev/null ||
    fail "the limit is not that of nvbandwidth"
rm path/nvbandwidth

# The same bytes as the CPU's. Then batches that are fetched before they are there.
# And the model is the one that was measured, where its driver tells.
stages 0 bytes 'passed +bytes .*4 of 4 thresholds met'
for type in float32 float16 bfloat16 uint8; do
    grep -qE "^  met +dump: $type, unlike the CPU's +0 of 4 " output ||
        fail "$type is not compared with the CPU"
done
echo 'Double of H2D' >model
echo 4 >mutant
folder=results/double_of_h2d
stages 1 bytes 'failed +bytes .*1?[0-9] of 16 dumps have other bytes'
jq -e '.gpu == "Double of H2D"' $folder/bytes.json >/dev/null ||
    fail "the model is another one"
jq -e '[.thresholds[] | select(.value > 0 and (.met | not))] | length == 4' \
    $folder/bytes.json >/dev/null || fail "what differs is not noted"
