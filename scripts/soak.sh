#!/usr/bin/env bash
# The long runs of the proofs whose short forms are among the tests:
#   soak.sh [--minutes N] [--seed S] [--build DIR] [--double | --chains]
#   soak.sh --proofs [--minutes N] [--seed S] [--build DIR] [PROOF...]
# The first form compares random data layers with a slow reference, sample for
# sample, for half an hour unless told otherwise; --double: with devices of CUDA,
# over the double of its runtime; --chains: random chains of readers over files, in
# every way to read them. A failure names the configuration and the command that runs
# it alone; so does a hang.
# The second runs all proofs, or those named, and says of each in a line whether it
# held, failed or was skipped; the logs lie in DIR/proofs:
#   storms     layers and groups stopped at random moments, LEAT_STORM=10000 of each
#   kills      imports killed, LEAT_KILL_ROUNDS=30 times to the end, in memory and on
#              a disk, and at each call; on a file system that is full, too
#   faults     each call of the system and each allocation fails, LEAT_FAULTS=all
#   replacements  LEAT_REPLACEMENTS=5000 random layers over bad records
#   models     the models of the hand-offs, through all their states
#   soak       the first form, on the CPU and over the double, N minutes each
#   chains     the first form with --chains, N minutes
# What these variables are set to is taken instead. Exit status 1: one failed; 77:
# none could be run. The parsers' long run is scripts/fuzz.sh.
set -eu -o pipefail
cd "$(dirname "$0")/.."

minutes=30
seed=$(date +%s)
build=build
target=soak
soak=tests/soak
is_proofs=0
all=(storms kills faults replacements models soak chains)
proofs=()

fail() {
    echo "soak.sh: $1" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --minutes | --seed | --build) [ $# -gt 1 ] || fail "$1 wants a value" ;;
    esac
    case $1 in
    --minutes) minutes=$2 && shift ;;
    --seed) seed=$2 && shift ;;
    --build) build=$2 && shift ;;
    --double)
        target=soak_double
        soak=tests/cuda_double/soak
        ;;
    --chains)
        target=chains
        soak=tests/chains
        ;;
    --proofs) is_proofs=1 ;;
    -h | --help)
        sed -n '2,23s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*) fail "$1 is no option; see soak.sh --help" ;;
    *)
        [[ " ${all[*]} " == *" $1 "* ]] || fail "$1 is no proof: ${all[*]}"
        proofs+=("$1")
        ;;
    esac
    shift
done
[ $is_proofs -eq 1 ] || [ ${#proofs[@]} -eq 0 ] || fail "proofs want --proofs"
[ ${#proofs[@]} -gt 0 ] || proofs=("${all[@]}")

# make_programs TARGET...
make_programs() {
    [ -e "$build/CMakeCache.txt" ] ||
        cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
    cmake --build "$build" --target "$@" >/dev/null
}

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
if [ $is_proofs -eq 0 ]; then
    make_programs "$target"
    echo "commit $commit, seed $seed, $minutes minutes"
    if ! "$build/$soak" --seed "$seed" --seconds $((minutes * 60)); then
        echo "${soak##*/} is $build/$soak"
        exit 1
    fi
    exit 0
fi

held=0
failed=()
skipped=()

say() {
    printf '%-8s %-26s %6s  %s\n' "$@"
}

# skip NAME REASON
skip() {
    skipped+=("$1")
    say skipped "$1" - "$2"
}

# prove NAME LINES COMMAND...: a line of what came of it, with the last one of its
# output that has LINES in it; what a proof that held left out is told, too.
prove() {
    local name=$1 lines=$2 log=$build/proofs/$1.log status=0 begin=$SECONDS
    shift 2
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ $status -eq 77 ]; then
        skip "$name" "$(sed -n 's/^skipped: //p' "$log" | tail -n 1)"
        return
    fi
    begin="$((SECONDS - begin)) s"
    if [ $status -eq 0 ]; then
        held=$((held + 1))
        say held "$name" "$begin" "$(grep -E -- "$lines" "$log" | tail -n 1)"
        sed -nE 's/^(skipped|left out): /         without: /p' "$log"
    else
        failed+=("$name")
        say FAILED "$name" "$begin" "status $status; the end of $log:"
        tail -n 20 "$log"
    fi
}

# Watchdogs look for hangs: what takes long is not to be ended by Check.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-60}
export LEAT_STORM=${LEAT_STORM:-10000}
export LEAT_KILL_ROUNDS=${LEAT_KILL_ROUNDS:-30}
export LEAT_FAULTS=${LEAT_FAULTS:-all}
export LEAT_REPLACEMENTS=${LEAT_REPLACEMENTS:-5000}
export LEAT_TEST_DATA=$PWD/tests/data
checks='%: Checks:'

prove_storms() {
    make_programs test_layer_stops test_storms
    prove test_layer_stops "$checks" "$build/tests/test_layer_stops"
    prove test_storms "$checks" "$build/tests/test_storms"
}

# A directory on a file system that is not in memory, or nothing.
disk() {
    local place
    for place in "${TMPDIR-}" /tmp /var/tmp "$build"; do
        if [ ! -d "$place" ] || [ ! -w "$place" ]; then
            continue
        fi
        case $(stat -f -c %T "$place") in
        tmpfs | ramfs) ;;
        *)
            (cd "$place" && pwd)
            return
            ;;
        esac
    done
}

# prove_kills_in NAME PLACE: with what is imported, and the target, there.
prove_kills_in() {
    local script
    for script in test_import_stops test_import_kills; do
        prove "$script-$1" ' kills ' \
            env TMPDIR="$2" "tests/integration/$script.sh" "$build/leat"
    done
}

prove_kills() {
    local place room
    make_programs leat leat_syscall_trap
    LEAT_SYSCALL_TRAP=$(cd "$build/tests" && pwd)/libleat_syscall_trap.so
    export LEAT_SYSCALL_TRAP
    room=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1) || room=0
    if [ "${room:-0}" -gt 800000 ]; then
        prove_kills_in memory /dev/shm
    else
        skip kills-memory "there are no 800 MB in /dev/shm"
    fi
    place=$(disk)
    if [ -n "$place" ]; then
        prove_kills_in disk "$place"
    else
        skip kills-disk "neither TMPDIR, /tmp, /var/tmp nor $build is on a disk"
    fi
    prove test_import_full ' kills ' tests/integration/test_import_full.sh \
        "$build/leat"
}

prove_faults() {
    make_programs leat test_failing_calls test_failing_tool
    prove test_failing_calls "$checks" "$build/tests/test_failing_calls"
    prove test_failing_tool "$checks" "$build/tests/test_failing_tool"
}

prove_replacements() {
    make_programs test_replacement
    prove test_replacement "$checks" "$build/tests/test_replacement"
}

check_models() {
    tests/models/check.sh | awk '{ print } /^ok/ { n++ }
        END { if (n) print n " runs of spin are as expected" }'
}

prove_models() {
    prove models 'runs of spin' check_models
}

prove_soak() {
    local arguments=(--seed "$seed" --seconds $((minutes * 60)))
    make_programs soak soak_double
    prove soak '^seed ' "$build/tests/soak" "${arguments[@]}"
    prove soak-double '^seed ' "$build/tests/cuda_double/soak" \
        "${arguments[@]}"
}

prove_chains() {
    make_programs chains
    prove chains '^seed ' "$build/tests/chains" --seed "$seed" \
        --seconds $((minutes * 60))
}

mkdir -p "$build/proofs"
echo "commit $commit, seed $seed, LEAT_STORM=$LEAT_STORM" \
    "LEAT_KILL_ROUNDS=$LEAT_KILL_ROUNDS LEAT_FAULTS=$LEAT_FAULTS" \
    "LEAT_REPLACEMENTS=$LEAT_REPLACEMENTS, soak of $minutes minutes"
for proof in "${proofs[@]}"; do
    "prove_${proof//-/_}"
done
echo "$held held, ${#failed[@]} failed, ${#skipped[@]} skipped"
[ ${#failed[@]} -eq 0 ] || exit 1
[ $held -gt 0 ] || exit 77
