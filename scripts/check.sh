#!/usr/bin/env bash
# Everything that must hold besides the main test run: check.sh [--quick] [STEP...]
# --quick is for before every commit: form, the law, warnings, the fast tests, and
# clang-tidy on what changed. Without it: all files, and all tests under ASan and
# UBSan, under TSan, fuzzed for a few seconds each, and with the rules of the hand-off
# broken. Naming steps runs just these.
set -u
cd "$(dirname "$0")/.." || exit 1
export DEBIAN_FRONTEND=noninteractive
exec </dev/null

out=build/check
jobs=$(nproc)

# step NAME: says whether it passed and how long it took, and shows the output of
# what did not.
step() {
    local name=$1 log=$out/$1.log begin=$SECONDS
    if "check_$name" >"$log" 2>&1; then
        printf '  ok    %-12s %4d s\n' "$name" $((SECONDS - begin))
    else
        printf '  FAIL  %-12s %4d s\n' "$name" $((SECONDS - begin))
        grep -nE 'error:|undefined ref|FAILED|Failed|SUMMARY' "$log" | head -n 30
        echo "        the end of $log:"
        tail -n 40 "$log"
        echo "$name" >>"$out/failed"
    fi
}

# Sanitizers want their shadow memory where a kernel with much address space
# randomisation may have put something else; a container may forbid to ask.
unrandomised() {
    if setarch "$(uname -m)" -R true 2>/dev/null; then
        setarch "$(uname -m)" -R "$@"
    else
        "$@"
    fi
}

# configure NAME ARGUMENT...
configure() {
    local name=$1 launcher=() linker=() cuda
    shift
    # Three times as fast as the usual one, of 350 programs.
    if [[ " $* " = *' -DCMAKE_C_COMPILER=clang '* ]] && command -v ld.lld >/dev/null; then
        linker=(-DCMAKE_{EXE,SHARED,MODULE}_LINKER_FLAGS=-fuse-ld=lld)
    fi
    # CI's cache is empty, and filling it takes longer than it gives.
    [ -n "${CI-}" ] || ! command -v ccache >/dev/null ||
        launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    mapfile -t cuda < <(scripts/cuda.sh)
    cmake -S . -B "$out/$name" -G Ninja -DLEAT_WERROR=ON \
        -DLEAT_CUDA_ARCHITECTURES=80 -DLEAT_CUDA_FAST_COMPILE=ON \
        "${cuda[@]}" "${launcher[@]}" "${linker[@]}" "$@"
}

compile() {
    cmake --build "$out/$1" --parallel "$jobs" -- -k 0
}

# One more at a time than there are cores, as many tests wait.
run_tests() {
    local name=$1
    shift
    unrandomised ctest --test-dir "$out/$name" --output-on-failure \
        --no-tests=error --parallel $((jobs + 1)) "$@"
}

check_form() {
    scripts/format.sh --check
}

check_shell() {
    local scripts
    mapfile -t scripts < <({
        find . -name '*.sh' -not -path './build*' -not -path './.git/*'
        echo .ci/run
    } | sort)
    shellcheck -x "${scripts[@]}"
}

check_law() {
    scripts/law.sh && scripts/law.sh --self-test
}

# The reference of the public headers, and that it would fail.
check_docs() {
    scripts/docs.sh && scripts/docs.sh --self-test
}

# Warnings of gcc, and the fast tests: what --quick compiles.
check_gcc() {
    configure gcc -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release &&
        compile gcc && run_tests gcc --label-exclude packaging
}

# Tests of scripts, compilers, kernels and a training, in which nothing of ours is
# sanitized that others do not run.
run_elsewhere='^test_(gpu_check|kernel_code|plot_bench|bench_kernel|train_digits)$'

# Parts of what takes longest under each sanitizer, of which CI runs one. The turn of
# none under ASan is that of fuzzing, which takes a build of its own.
fuzz_turn=0
long_under_asan=(''
    'test_failing_tool|test_tool_bench|test_zip|test_rank_tokens'
    'test_tool_cuda|test_decorators|test_failing_calls|test_layer_cuda_calls|test_tool_inspect')
long_under_tsan=('test_zip|test_rank_tokens|test_epoch_end' 'test_failing_calls'
    'test_decorators|test_layer_cuda_calls')

# What takes long under TSan and says nothing about threads that others do not say:
# imports that are killed, the tool's bench, lists, errors and outputs, a bus at full
# speed, and what waits for a handler, which TSan holds back while a call blocks.
# tests/threadless.txt has what starts no thread.
threads_elsewhere='^test_import_(kills|stops|full)$|^test_(bus_cuda|leases)$'
threads_elsewhere+='|^test_tool_(bench|cuda|errors|inspect|outputs)$'

# of_others PART...: an expression for the tests of the parts that are not run.
of_others() {
    local number=0 part
    for part; do
        scripts/turn.sh $((number++)) || [ -z "$part" ] || printf '|^(%s)$' "$part"
    done
}

# Without optimisation asserts live, and with -O1 the sanitizers are bearable.
check_asan() {
    local elsewhere
    elsewhere=$run_elsewhere$(of_others "${long_under_asan[@]}")
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
    export UBSAN_OPTIONS=print_stacktrace=1
    export LEAT_TRAP_STEP=7
    configure asan -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG=-O1 -DLEAT_SANITIZE=address,undefined \
        -DLEAT_BUILD_BENCHMARKS=OFF &&
        compile asan && run_tests asan --exclude-regex "$elsewhere"
}

# A process with threads left, such as a device's, is not to sleep a second at its
# end: each Check test is one.
check_tsan() {
    local elsewhere
    elsewhere="$run_elsewhere|$threads_elsewhere$(of_others "${long_under_tsan[@]}")"
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=0
    configure tsan -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG=-O1 -DLEAT_SANITIZE=thread -DLEAT_BUILD_BENCHMARKS=OFF &&
        compile tsan &&
        run_tests tsan --exclude-regex "$elsewhere"
}

check_fuzz() {
    configure fuzz -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG=-O1 -DLEAT_BUILD_FUZZERS=ON \
        -DLEAT_FUZZ_SECONDS="${LEAT_FUZZ_SECONDS:-2}" -DLEAT_BUILD_TESTS=OFF \
        -DLEAT_BUILD_TOOL=OFF \
        -DLEAT_BUILD_EXAMPLES=OFF -DLEAT_BUILD_BENCHMARKS=OFF &&
        compile fuzz && run_tests fuzz
}

# The rules that are broken by hand, in CI a third of them.
check_rules() {
    local patch part=0 chosen=()
    export LEAT_MUTANTS_BUILD=$PWD/$out/mutants
    for patch in tests/mutants/*.patch; do
        ! scripts/turn.sh $((part++)) || chosen+=("${patch##*/}")
    done
    scripts/mutants.sh "${chosen[@]}"
}

# A sample of what changed, in three minutes: since a commit of choice, else since the
# last release, which judges all that the next one will have.
# Before the first tag, or in a clone without it, that is the last commit alone.
# A clone of depth one has no earlier commit, and nothing to compare with.
check_mutants() {
    local since=${LEAT_MUTANTS_SINCE-} status=0
    export LEAT_MUTANTS_BUILD=$PWD/$out/mutants
    [ -n "$since" ] || since=$(git describe --tags --abbrev=0 HEAD~1 2>/dev/null) ||
        since=$(git rev-parse --verify --quiet HEAD~1) || {
        echo 'mutants of changed lines: skipped, there is no earlier commit'
        return 0
    }
    scripts/mutants.sh --since "$since" --seconds 170 --test-seconds 4 \
        --at-least 70 || status=$?
    # Without PyPI there is no universalmutator; it has said so.
    [ "$status" -eq 77 ] || return "$status"
}

# tidy FILE...: clang's view of each, with the flags of a configured build, and those
# of the array `depth`.
tidy() {
    [ $# -eq 0 ] && return
    configure tidy -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON &&
        cmake --build "$out/tidy" --target leat_proto || return
    printf '%s\0' "$@" | xargs -0 -n 4 -P "$jobs" \
        clang-tidy -p "$out/tidy" --quiet --warnings-as-errors='*' "${depth[@]}"
}

# Files that CI looks at: a third, and those that the last twenty commits changed.
of_turn() {
    local part number=0 file turn=() changed
    for part in 0 1 2; do
        ! scripts/turn.sh $part || turn[part]=yes
    done
    changed=$'\n'$(git log -20 --format= --name-only 2>/dev/null)$'\n'
    for file; do
        [ -z "${turn[number++ % 3]-}" ] && [[ $changed != *$'\n'$file$'\n'* ]] ||
            printf '%s\n' "$file"
    done
}

# Where it sees many files the analyser visits at most 30,000 nodes of a function, of
# clang's 225,000: the rest of a few functions takes more than half of the time.
check_tidy() {
    local files depth=(--extra-arg={-Xclang,-analyzer-config,-Xclang,max-nodes=30000})
    mapfile -t files < <(find src cuda examples benchmarks -name '*.c' 2>/dev/null | sort)
    mapfile -t files < <(of_turn "${files[@]}")
    tidy "${files[@]}"
}

check_tidy_changed() {
    local files depth=()
    mapfile -t files < <({
        git diff --name-only --diff-filter=d HEAD -- '*.c'
        git ls-files --others --exclude-standard -- '*.c'
    } | grep -E '^(src|cuda|examples|benchmarks)/')
    tidy "${files[@]}"
}

steps=(form shell law docs tidy asan tsan rules mutants)
if [ "${1-}" = --quick ]; then
    shift
    steps=(form shell law docs gcc tidy_changed)
elif scripts/turn.sh $fuzz_turn; then
    steps+=(fuzz)
elif [ $# -eq 0 ]; then
    echo '  -     fuzz            it is the turn of others'
fi
[ $# -eq 0 ] || steps=("$@")
for name in "${steps[@]}"; do
    if ! declare -F "check_$name" >/dev/null; then
        echo "check.sh: no step $name" >&2
        exit 2
    fi
done

scripts/deps.sh check || exit 1
mkdir -p "$out"
rm -f "$out/failed"
# What only reads the tree takes the time in which the other steps wait.
beside=()
others=()
for name in "${steps[@]}"; do
    case $name in
    form | shell | law | docs | tidy*) beside+=("$name") ;;
    *) others+=("$name") ;;
    esac
done
# A process group of their own: a shell's background ignores Ctrl-C.
set -m
(
    renice -n 19 "$BASHPID" >/dev/null
    for name in "${beside[@]}"; do
        step "$name"
    done
) >"$out/beside.log" &
set +m
# shellcheck disable=SC2064
trap "kill -- -$! 2>/dev/null" EXIT
for name in "${others[@]}"; do
    step "$name"
done
wait
cat "$out/beside.log"
printf '%d s in all\n' "$SECONDS"
if [ -s "$out/failed" ]; then
    echo "failed: $(paste -s -d ' ' "$out/failed") (logs in $out/)"
    exit 1
fi
