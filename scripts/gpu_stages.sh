#!/usr/bin/env bash
# One stage of gpu_check.sh, which says what they are:
#   gpu_stages.sh STAGE BUNDLE FOLDER QUICK
# FOLDER, which has nothing but `log`, what this prints, gets `thresholds` and `tests`, elements of JSON
# arrays; `reason`, a line, where the stage fails or is skipped, which is 77;
# and figures/NAME, whole JSON values. QUICK is true for small databases and little
# time, else false. Verdicts of thresholds go to descriptor 3.
set -eu
export LC_ALL=C

stage=$1 bundle=$2 work=$3 quick=$4
leat=$bundle/bin/leat
# Of one test, so that those after one that hangs have their turn.
test_limit=${LEAT_GPU_CHECK_TEST_LIMIT:-60}

# number KEY FILE [WORD]: the first number of that key, after the key WORD.
number() {
    local text
    text=$(<"$2")
    [ -z "${3-}" ] || text=${text#*\""$3"\"}
    [[ $text =~ \"$1\":\ (-?[0-9.]+(e[-+]?[0-9]+)?) ]] && echo "${BASH_REMATCH[1]}"
}

# millionths NUMBER: as an integer, which bash can compare.
millionths() {
    local fixed
    printf -v fixed '%.6f' "$1"
    fixed=${fixed/./}
    echo "${fixed%%[0-9]*}$((10#${fixed#-}))"
}

# percent P NUMBER: of a number.
percent() {
    local m
    m=$(($(millionths "$2") * $1 / 100))
    printf '%d.%06d\n' $((m / 1000000)) $((m % 1000000))
}

# give_up REASON: ends the stage as failed.
give_up() {
    echo "$1" | tee "$work/reason" >&2
    exit 1
}

# add LIST ELEMENT
add() {
    [ ! -s "$work/$1" ] || printf ',\n  ' >>"$work/$1"
    printf '%s' "$2" >>"$work/$1"
}

# figures NAME COMMAND...: what it prints is taken once it is complete; its warnings
# go into the log.
figures() {
    "${@:2}" >"$work/part" 2>"$work/error" </dev/null || {
        echo "failed: ${*:2}" >&2
        give_up "$(tail -n 1 "$work/error")"
    }
    cat "$work/error" >&2
    mv "$work/part" "$work/figures/$1"
}

# judge WHAT VALUE at-least|under LIMIT UNIT: prints, and notes, whether it is met.
judge() {
    local verdict=missed met=false value=${2:-0} way=$3
    value=$(millionths "$value")
    limit=$(millionths "$4")
    if [ -n "$2" ] && { { [ "$way" = under ] && [ "$value" -lt "$limit" ]; } ||
        { [ "$way" = at-least ] && [ "$value" -ge "$limit" ]; }; }; then
        verdict=met met=true
    fi
    printf '  %-6s  %-52s %s %s (%s %s)\n' $verdict "$1" "${2:-no figure}" "$5" \
        "${way/-/ }" "$4" >&3
    add thresholds "$(printf \
        '{"what": "%s", "value": %s, "%s": %s, "unit": "%s", "met": %s}' \
        "$1" "${2:-null}" "${way/-/_}" "$4" "$5" $met)"
}

# run_test LINE [COMMAND...]: after COMMAND; its status. A process for each of a
# program's tests, as Check has it, would take a second or more to start CUDA, times
# ninety; only those that kill a process need that, which have _faults in their names.
# Check prints a line after each of them, so that it is known which one hangs.
run_test() {
    local words=() item program fork=no
    for item in $1; do
        case $item in
        bin/* | data/*) item=$bundle/$item ;;
        esac
        words+=("$item")
    done
    program=$bundle/bin/${words[0]}
    [[ ${words[0]} != *_faults* ]] || fork=yes
    CK_TAP_LOG_FILE_NAME=- CK_FORK=$fork \
        timeout -k 5 "$test_limit" "${@:2}" "$program" "${words[@]:1}" \
        >&2 </dev/null
}

# has_run LINE: what a program of Check prints last is in the log. A tool before it may
# end with 0 although it did not start the program, or this crashed.
has_run() {
    local text
    text=$(<"$work/log")
    [[ ${1%% *} == *.sh || ${text##*"test: $1"} == *'100%: Checks: '* ]]
}

# run_tests FILE [COMMAND...]: each of the tests listed there, also after one that
# fails. A skip is no pass here.
run_tests() {
    local line status begin result failed=0 n=0
    [ -s "$1" ] || give_up "the bundle has no ${1##*/}"
    while IFS= read -r line; do
        echo "test: $line" >&2
        begin=$SECONDS
        status=0
        run_test "$line" "${@:2}" || status=$?
        [ $# -eq 1 ] || [ $status -ne 0 ] || has_run "$line" || status=1
        case $status in
        0) result=passed ;;
        77) result=skipped ;;
        124 | 137) result='timed out' ;;
        *) result="failed with $status" ;;
        esac
        echo "test: $line: $result" >&2
        add tests "$(printf '{"test": "%s", "result": "%s", "seconds": %d}' \
            "$line" "$result" $((SECONDS - begin)))"
        n=$((n + 1))
        [ $status -eq 0 ] || {
            failed=$((failed + 1))
            [ $failed -gt 1 ] || echo "$line: $result" >"$work/reason"
        }
    done <"$1"
    [ $failed -eq 0 ] ||
        give_up "$failed of $n tests failed; the first: $(<"$work/reason")"
    echo "$n tests" >"$work/note"
}

stage_tests() {
    CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-$test_limit}
    export CK_DEFAULT_TIMEOUT
    run_tests "$bundle/gpu_tests"
}

# Errors that calls of CUDA return are no fault of the program: it asks for what may
# not be there, and tests make calls fail. Tests that kill a kernel on purpose, or
# take all of the memory, are left out: their names end in _faults.
stage_sanitizer() {
    local line command=(compute-sanitizer --target-processes all --nvtx no
        --report-api-errors no --error-exitcode 99)
    # It is in the toolkit, which need not be on the path.
    PATH=$PATH:$(dirname "$(readlink -m "$(command -v nvcc ||
        echo /usr/local/cuda/bin/nvcc)")")
    PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || {
        echo "there is no compute-sanitizer" >"$work/reason"
        exit 77
    }
    # It may not work under this driver or in this container.
    "${command[@]}" "$leat" bench h2d --test sizes --bytes 4K:5K --streams 1 \
        >"$work/probe" || : >"$work/probe"
    cat "$work/probe" >&2
    [[ $(<"$work/probe") == *'CPU -> GPU bandwidth'* ]] || {
        echo "compute-sanitizer does not work here" >"$work/reason"
        exit 77
    }
    while IFS= read -r line; do
        [[ ${line%% *} == *_faults ]] || echo "$line" >>"$work/sanitized_tests"
    done <"$bundle/gpu_tests"
    test_limit=100
    # Under it everything takes ten times as long and more.
    LEAT_GPU_BATCHES=${LEAT_GPU_BATCHES:-200} \
        run_tests "$work/sanitized_tests" "${command[@]}"
}

synth() {
    "$leat" synth noise "$@" >/dev/null
}

# dump SOURCE TYPE LAYOUT OPTION...: two passes, and the digests of what came.
dump() {
    local arithmetic=(--mean-value "104,117,123" --scale 0.0078125)
    [ "$2" != uint8 ] || arithmetic=()
    rm -rf "$work/dumped"
    "$leat" dump --reader "lmdb:$work/$1" --top-type "$2" --layout "$3" --seed 7 \
        --batch 20 --batches 5 --crop 57 --mirror --out "$work/dumped" \
        "${arithmetic[@]}" "${@:4}" >/dev/null || return
    (cd "$work/dumped" && sha256sum -- *)
}

stage_bytes() {
    local type layout source cpu gpu differing wrong=0
    synth --count 48 --shape 3,64,64 --seed 5 "$work/small"
    synth --count 48 --shape 3,64,64 --jpeg 90 --seed 6 "$work/small_jpeg"
    for type in float32 float16 bfloat16 uint8; do
        differing=0
        for source in small small_jpeg; do
            for layout in NCHW NHWC; do
                cpu=$(dump $source $type $layout --device cpu) ||
                    give_up "leat dump failed on the CPU"
                gpu=$(dump $source $type $layout --device cuda:0 \
                    --transform-on DEVICE) || give_up "leat dump failed on cuda:0"
                [ "$cpu" = "$gpu" ] || differing=$((differing + 1))
            done
        done
        judge "dump: $type, unlike the CPU's" $differing under 1 'of 4'
        wrong=$((wrong + differing))
    done
    [ $wrong -eq 0 ] || give_up "$wrong of 16 dumps have other bytes than the CPU's"
}

stage_kernels() {
    local images=0 element text
    [ -x "$bundle/bin/bench_kernel" ] ||
        give_up "the bundle has no bench_kernel; build with LEAT_BUILD_BENCHMARKS"
    [ "$quick" = false ] || images=1
    figures kernel "$bundle/bin/bench_kernel" --batch $images --json
    text=$(<"$work/figures/kernel")
    element='\{"type": "([^"]*)", "case": "([^"]*)"[^}]*"copy_share": ([-0-9.e+]*)'
    while [[ $text =~ $element ]]; do
        judge "kernel: ${BASH_REMATCH[1]}, ${BASH_REMATCH[2]}, share of a copy" \
            "${BASH_REMATCH[3]}" at-least 0.80 ''
        text=${text#*"${BASH_REMATCH[0]}"}
    done
    [ -s "$work/thresholds" ] || give_up "bench_kernel has printed no share of a copy"
}

# Sizes up to 64 MiB, which pageable memory takes in a second, and of what nvbandwidth
# measures its own size, 512 MiB.
stage_h2d() {
    local sizes=4K:64M all=256M:512M line
    [ "$quick" = false ] || sizes=4K:64K all=4K:64K
    figures h2d "$leat" bench h2d --test sizes,latency --bytes $sizes --json
    figures h2d_tests "$leat" bench h2d --test host,device,all --bytes $all --json
    command -v nvbandwidth >/dev/null || return 0
    nvbandwidth -t host_to_device_memcpy_ce >"$work/nvbandwidth" 2>&1 || true
    cat "$work/nvbandwidth" >&2
    while read -r line; do
        [[ ! $line =~ ^SUM\ host_to_device_memcpy_ce\ ([0-9.]+) ]] ||
            judge "h2d: host_to_device_memcpy_ce, nvbandwidth's less 1 %" \
                "$(number gb_per_s "$work/figures/h2d_tests" \
                    host_to_device_memcpy_ce)" at-least \
                "$(percent 99 "${BASH_REMATCH[1]}")" GB/s
    done <"$work/nvbandwidth"
}

# layer NAME WORKLOAD ARGUMENT...: what bench layer makes of it. Copies of memory that
# cannot be pinned are no figure.
layer() {
    local name=$1 workload=$2
    shift 2
    case $workload in
    mnist) set -- --batch "${batches[0]}" --scale 0.00390625 "$@" ;;
    cifar) set -- --batch "${batches[1]}" \
        --mean-file "$work/cifar.binaryproto" "$@" ;;
    *) set -- --batch "${batches[2]}" --crop 227 --mirror \
        --mean-value 104,117,123 "$@" ;;
    esac
    figures "$name" "$leat" bench layer --device cuda:0 \
        --reader "lmdb:$work/$workload" --transform-on DEVICE --seconds $seconds \
        --must-pin --json "$@"
}

# Undisturbed, with the overlap after it; and with a caller that leaves the layer
# time, so that forward is what forward takes and not what is waited for. It computes
# meanwhile; after 20 ms of that nothing of forward's three calls of CUDA is in a
# cache, so that what one takes alone is printed, too. A batch of 1,024 small images is in use for some 20 us, so
# prefetch is AUTO. JPEG takes more time to decode.
stage_layers() {
    local seconds=2 share=1 batches=(1024 1000 256) workload file
    if [ "$quick" = true ]; then
        seconds=0.1
        share=32
        batches=(16 16 1)
    fi
    for workload in mnist cifar raw jpeg; do
        compute=2
        case $workload in
        mnist) synth --count $((60000 / share)) --shape 1,28,28 --seed 1 "$work/mnist" ;;
        cifar)
            synth --count $((50000 / share)) --shape 3,32,32 --seed 2 "$work/cifar"
            "$leat" mean "$work/cifar" "$work/cifar.binaryproto" >/dev/null
            ;;
        raw) synth --count $((4096 / share)) --shape 3,256,256 --seed 3 "$work/raw" ;;
        jpeg)
            synth --count $((4096 / share)) --shape 3,256,256 --jpeg 90 --seed 4 \
                "$work/jpeg"
            compute=20
            ;;
        esac
        layer "layer_$workload" $workload --overlap --prefetch AUTO
        layer "forward_$workload" $workload --compute-ms $compute
        rm -rf "${work:?}/$workload"
        file=$work/figures/layer_$workload
        # Decoding on the CPU bounds jpeg's feed, so only what the caller pays is
        # judged.
        if [ $workload = jpeg ]; then
            echo "  none    jpeg: bound by decoding: share of h2d" \
                "$(number h2d_share "$file"), overlap $(number overlap "$file")" >&3
        else
            judge "$workload: share of h2d, by copies of its size" \
                "$(number h2d_share "$file")" at-least 0.97 ''
            judge "$workload: overlap" "$(number overlap "$file")" at-least 0.95 ''
        fi
        file=$work/figures/forward_$workload
        judge "$workload: forward, median" "$(number p50 "$file" wait_us)" under 10 us
        echo "  none    $workload: one of its three calls of the driver, alone" \
            "$(number driver_call_us "$file") us" >&3
    done
}

stage_graphs() {
    run_tests "$bundle/graph_tests"
}

mkdir -p "$work/figures"
case $stage in
tests) stage_tests ;;
sanitizer) stage_sanitizer ;;
bytes) stage_bytes ;;
kernels) stage_kernels ;;
h2d) stage_h2d ;;
layers) stage_layers ;;
graphs) stage_graphs ;;
*) give_up "there is no stage $stage" ;;
esac
