#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU can show, in stages:
#   tests      the GPU tests                      120 s at most
#   sanitizer  these again under compute-sanitizer  120 s
#   bytes      the tool's dumps beside the CPU's     45 s
#   kernels    bench_kernel                          30 s
#   h2d        bench h2d                             75 s
#   layers     bench layer of four workloads        120 s
#   graphs     the tests of CUDA graphs              40 s
#   gpu_check.sh [--only STAGE,...] [BUNDLE [FOLDER]]
# Each stage runs in a process of its own, writes FOLDER/<gpu>/STAGE.json when it
# ends, and says in one line how it ended; one that fails or hangs does not stop the
# next. FOLDER/<gpu>/log has what they printed.
# BUNDLE is a folder of scripts/bundle.sh; without one, build/ is packed first. In
# a bundle the script takes that bundle, and FOLDER is results/ in it. It needs
# bash and coreutils. Ends with 77 where there is no GPU, with 1 where a stage
# failed, and with 3 where all went well but a threshold is missed.
# LEAT_GPU_CHECK=quick takes small databases and little time: a look, no figures.
# LEAT_GPU_CHECK_LIMIT=SECONDS is the limit of each stage instead of those above.
set -eu
export LC_ALL=C

stages=(tests sanitizer bytes kernels h2d layers graphs)
declare -A limits=([tests]=120 [sanitizer]=120 [bytes]=45 [kernels]=30 [h2d]=75
    [layers]=120 [graphs]=40)

fail() {
    echo "gpu_check.sh: $1" >&2
    exit "${2:-1}"
}

usage() {
    local line
    while IFS= read -r line && [[ $line == '#'* ]]; do
        [[ $line == '#!'* ]] || { line=${line#\#} && echo "${line# }"; }
    done <"$0"
}

# word KEY FILE: the first text of that key.
word() {
    [[ $(<"$2") =~ \"$1\":\ \"([^\"]*)\" ]] && echo "${BASH_REMATCH[1]}"
}

# quoted TEXT: as a string of JSON, without what is not printable.
quoted() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\n'/\\n}
    printf '"%s"' "${text//[![:print:]]/ }"
}

# last N FILE: its last lines.
last() {
    tail -n "$1" "$2" 2>/dev/null || true
}

selected=()
case ${1-} in
-h | --help)
    usage
    exit 0
    ;;
--only)
    [ $# -ge 2 ] || fail "--only needs a stage: ${stages[*]}" 2
    IFS=, read -ra selected <<<"$2"
    for stage in "${selected[@]}"; do
        [ -n "${limits[${stage:-none}]-}" ] ||
            fail "there is no stage '$stage'; there are ${stages[*]}" 2
    done
    shift 2
    ;;
esac
case ${1-} in
-*) fail "$1 is no option; see gpu_check.sh --help" 2 ;;
esac
[ $# -le 2 ] || fail "give a bundle and a folder, no more" 2
[ ${#selected[@]} -gt 0 ] || selected=("${stages[@]}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $# -gt 0 ]; then
    bundle=$(cd "$1" && pwd)
elif [ -f "$here/BUNDLE" ]; then
    bundle=$here
else
    "$here/bundle.sh" "$here/../build" "$work/bundle"
    bundle=$work/bundle
fi
[ -f "$bundle/BUNDLE" ] || fail "$bundle is no bundle of scripts/bundle.sh"
folder=$here/../benchmarks/results
[ ! -f "$here/BUNDLE" ] || folder=$here/results
folder=${2:-$folder}
quick=false
[ "${LEAT_GPU_CHECK-}" != quick ] || quick=true

# Of all stages; what comes before them counts, too.
total=550
[ -z "${LEAT_GPU_CHECK_LIMIT-}" ] || total=$((8 * LEAT_GPU_CHECK_LIMIT))
deadline=$((SECONDS + total))

# A driver that lets an idle GPU sleep takes a second or more to wake it, and each test
# is a process of its own: while this is open it stays awake.
for node in /dev/nvidia[0-9]*; do
    if { exec 8<"$node"; } 2>/dev/null; then break; fi
done

# The tool finds the GPU, so that a machine needs no nvidia-smi; where that names one
# and the tool none, something is wrong.
gpu=
if command -v nvidia-smi >/dev/null; then
    # Why it fails it prints as it prints names.
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null) || gpu=
    gpu=${gpu%%$'\n'*}
fi
if ! timeout -k 5 60 "$bundle/bin/leat" bench h2d --test sizes --bytes 4K:5K \
    --streams 1 --json >"$work/device" 2>"$work/error"; then
    [ -z "$gpu" ] || fail "there is $gpu, but: $(<"$work/error")"
    echo "skipped: there is no GPU on this machine: $(<"$work/error")"
    exit 77
fi
# What is measured is cuda:0, which need not be the first of nvidia-smi.
model=$(word model "$work/device") || model=
if [ -z "$model" ] || [ "$model" = unknown ]; then
    model=$(nvidia-smi -i "$(word bus_id "$work/device")" --query-gpu=name \
        --format=csv,noheader 2>/dev/null) || model=
    model=${model%%$'\n'*}
fi
gpu=${model:-${gpu:-unknown}}
name=$(tr -cs 'A-Za-z0-9\n' _ <<<"$gpu" | tr '[:upper:]' '[:lower:]')
folder=$folder/$name
mkdir -p "$folder"
: >"$folder/log"
commit=unknown
while IFS= read -r line; do
    [[ $line != 'commit: '* ]] || commit=${line#commit: }
done <"$bundle/BUNDLE"

# write_json STAGE RESULT SECONDS LIMIT: what the stage has left in its folder.
write_json() {
    local in=$work/$1 file
    {
        printf '{"stage": "%s",\n "result": "%s",\n' "$1" "$2"
        printf ' "seconds": %d,\n "limit_s": %d,\n' "$3" "$4"
        [ ! -s "$in/reason" ] || printf ' "reason": %s,\n' "$(quoted "$(<"$in/reason")")"
        [ "$2" = passed ] || printf ' "log": %s,\n' "$(quoted "$(last 40 "$in/log")")"
        printf ' "gpu": %s,\n "driver": %s,\n' "$(quoted "$gpu")" \
            "$(quoted "$(word driver "$work/device")")"
        printf ' "commit": %s,\n "quick": %s' "$(quoted "$commit")" "$quick"
        for file in tests thresholds; do
            [ ! -s "$in/$file" ] || printf ',\n "%s": [\n  %s]' $file "$(<"$in/$file")"
        done
        for file in "$in"/figures/*; do
            [ ! -f "$file" ] || printf ',\n "%s": %s' "${file##*/}" "$(<"$file")"
        done
        printf '}\n'
    } >"$in/json"
    cp "$in/json" "$folder/$1.json"
}

# summary STAGE: of its thresholds, or what else it says of itself.
summary() {
    local in=$work/$1 text all met
    if [ -s "$in/reason" ]; then
        echo "$(<"$in/reason")"
    elif [ -s "$in/thresholds" ]; then
        text=$(<"$in/thresholds")
        all=${text//[!\{]/}
        met=${text//\"met\": true/$'\1'}
        met=${met//[!$'\1']/}
        echo "${#met} of ${#all} thresholds met"
    elif [ -s "$in/note" ]; then
        echo "$(<"$in/note")"
    fi
}

# is_running PID: in one of its threads. What a process had of a GPU is given back
# before the last of them is a zombie.
is_running() {
    local stat line
    for stat in "/proc/$1"/task/*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        [[ ${line##*) } == [ZX]* ]] || return 0
    done
    return 1
}

# end_leftovers MARK: kills what has this mark in its environment, and waits until it
# is gone, so that nothing of a stage uses the GPU beside the next. timeout signals a
# group of processes, and a test, or the timeout before it, has one of its own.
end_leftovers() {
    local folder words pid pids=() until=$((SECONDS + 10)) IFS=$'\n'
    for folder in /proc/[0-9]*; do
        pid=${folder#/proc/}
        { mapfile -d '' -t words <"$folder/environ"; } 2>/dev/null || continue
        [[ $IFS${words[*]}$IFS == *"${IFS}LEAT_GPU_STAGE=$1$IFS"* ]] || continue
        kill -KILL "$pid" 2>/dev/null || continue
        pids+=("$pid")
    done
    for pid in "${pids[@]}"; do
        while is_running "$pid"; do
            [ $SECONDS -lt $until ] || { stuck=$pid && return; }
            sleep 0.05
        done
    done
    [ ${#pids[@]} -eq 0 ] || end_leftovers "$1"
}

# run_stage STAGE: with its time, at most that which is left of the whole.
run_stage() {
    local stage=$1 in=$work/$1 begin=$SECONDS seconds=0 status=0 result
    local limit=${LEAT_GPU_CHECK_LIMIT:-${limits[$1]}}
    [ $((deadline - SECONDS)) -ge "$limit" ] || limit=$((deadline - SECONDS))
    mkdir -p "$in"
    : >"$in/log"
    if [ -n "$stuck" ]; then
        status=1
        echo "not run: process $stuck of an earlier stage does not end" >"$in/reason"
    elif [ "$limit" -lt 1 ]; then
        status=124 limit=0
    else
        LEAT_GPU_STAGE=$$.$stage timeout -k 5 "$limit" "$here/gpu_stages.sh" "$stage" \
            "$bundle" "$in" $quick 3>&1 >"$in/log" 2>&1 </dev/null || status=$?
        seconds=$((SECONDS - begin))
        end_leftovers "$$.$stage"
    fi
    case $status in
    0) result=passed ;;
    77) result=skipped ;;
    124 | 137)
        result='timed out'
        echo "stopped after $limit s; the last line: $(last 1 "$in/log")" \
            >"$in/reason"
        ;;
    *)
        result=failed
        [ -s "$in/reason" ] || echo "status $status: $(last 1 "$in/log")" >"$in/reason"
        ;;
    esac
    if [ "$result" = passed ] && [[ -s $in/thresholds &&
        $(<"$in/thresholds") == *'"met": false'* ]]; then
        result=missed
    fi
    write_json "$stage" "$result" $seconds "$limit"
    { echo "== $stage: $result" && cat "$in/log"; } >>"$folder/log"
    printf '%-9s  %-9s %4d of %3d s  %s\n' "$result" "$stage" \
        $seconds "$limit" "$(summary "$stage")"
    rm -rf "$in"
    results+=("$result")
}

results=()
stuck= # a process that does not end, beside which no figure is one
for stage in "${selected[@]}"; do
    run_stage "$stage"
done
echo "$folder"
all=" ${results[*]} "
case $all in
*' failed '* | *' timed out '*) exit 1 ;;
*' missed '*) exit 3 ;;
*' passed '*) exit 0 ;;
esac
exit 77
