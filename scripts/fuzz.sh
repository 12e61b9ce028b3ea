#!/usr/bin/env bash
# Fuzzes the parsers for a given CPU time each, and tells what came of it:
#   fuzz.sh [--minutes M] [--jobs J] [--idle] [--build DIR] [--out DIR] [STEM...]
#   fuzz.sh --table [--out DIR]
# --minutes is CPU time, not wall time: a target that is starved or stopped runs
# on until it has had its share. --idle takes only cycles that nobody else wants.
# Every call adds to what DIR has of earlier ones (inputs found, log of rounds);
# --table prints that and runs nothing; tests/fuzz/RESULTS.md is its output. Exit
# status 1: something was found, and lies in DIR/STEM/crashes.
set -eu
cd "$(dirname "$0")/.."

minutes=20
jobs=$(nproc)
build=build/check/fuzz
out=out/fuzz
table_only=0
launcher=()
stems=()
# Of wall time; after each the next target has its turn.
round_seconds=${LEAT_FUZZ_ROUND:-120}
# An input that takes longer, of CPU time, hangs.
hang_seconds=20

while [ $# -gt 0 ]; do
    case $1 in
    --minutes) minutes=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --build) build=$2 && shift ;;
    --out) out=$2 && shift ;;
    --idle) launcher=(chrt -i 0 nice -n 19) ;;
    --table) table_only=1 ;;
    -*)
        sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    *)
        [ -e "tests/fuzz/fuzz_$1.c" ] || {
            echo "fuzz.sh: there is no target \"$1\": tests/fuzz/fuzz_$1.c" >&2
            exit 2
        }
        stems+=("$1")
        ;;
    esac
    shift
done

build_targets() {
    cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 \
        -DLEAT_BUILD_FUZZERS=ON -DLEAT_BUILD_TESTS=OFF -DLEAT_BUILD_TOOL=OFF \
        -DLEAT_BUILD_EXAMPLES=OFF -DLEAT_BUILD_BENCHMARKS=OFF >/dev/null
    cmake --build "$build" --parallel "$jobs" >/dev/null
}

# Sums a column of a target's rounds: CPU seconds, executions.
sum() {
    [ ! -e "$out/$1/rounds" ] && echo 0 && return
    awk -v column="$2" '{ n += $column } END { printf "%d\n", n }' \
        "$out/$1/rounds"
}

count_crashes() {
    find "$out/$1/crashes" -type f 2>/dev/null | wc -l
}

# libFuzzer's clock goes on while the process is starved or stopped: what it
# calls a hang must hang again, by its own CPU time, to be kept.
discard_false_hangs() {
    local input
    for input in "$out/$1"/crashes/timeout-*; do
        [ -e "$input" ] || continue
        if (ulimit -t "$hang_seconds" && "$build/tests/fuzz/fuzz_$1" \
            -timeout=0 "$input") >/dev/null 2>&1; then
            rm "$input"
        fi
    done
}

# One turn of a target, noted as "CPU-seconds executions edges commit".
run_round() {
    local stem=$1 dir=$out/$1 log cpu
    [ "$(sum "$stem" 1)" -ge $((minutes * 60)) ] && return
    [ "$(count_crashes "$stem")" -ge 5 ] && return
    log=$dir/log
    mkdir -p "$dir/corpus" "$dir/crashes"
    local TIMEFORMAT='%U %S'
    cpu=$({ time "${launcher[@]}" "$build/tests/fuzz/fuzz_$stem" \
        -max_total_time="$round_seconds" -timeout="$hang_seconds" \
        -report_slow_units=100000 -rss_limit_mb=2048 -print_final_stats=1 \
        -reload=0 -verbosity=1 -artifact_prefix="$dir/crashes/" \
        "$dir/corpus" "tests/fuzz/corpus/$stem" >"$log" 2>&1 || true; } 2>&1)
    awk -v cpu="$cpu" -v commit="$commit" '
        { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
        /^#[0-9]/ { seen = substr($1, 2) }
        /^stat::number_of_executed_units/ { seen = $2 }
        END { split(cpu, c, " "); printf "%.1f %d %d %s\n", c[1] + c[2], seen, cov, commit }
    ' "$log" >>"$dir/rounds"
    discard_false_hangs "$stem"
}

# The commits at which a target ran, in the order of its rounds.
commits() {
    awk '!seen[$4]++ { list = list (list ? ", " : "") $4 } END { print list }' \
        "$out/$1/rounds"
}

print_table() {
    local stem
    # shellcheck disable=SC2016 # a code span of Markdown
    printf '# Fuzzing\n\nBy `scripts/fuzz.sh`, under ASan and UBSan.\n\n'
    printf -- '- machine: %s, %d cores, which others used too\n' \
        "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | sort -u)" "$(nproc)"
    printf -- '- compiler: %s, -O1\n\n' "$(clang --version | head -n 1)"
    printf '| target | CPU minutes | executions | edges covered | findings | at commit |\n'
    printf '| --- | --- | --- | --- | --- | --- |\n'
    for stem in "$@"; do
        [ -e "$out/$stem/rounds" ] || continue
        # shellcheck disable=SC2016 # a code span of Markdown
        printf '| `fuzz_%s` | %.1f | %.1f million | %d | %d | %s |\n' "$stem" \
            "$(awk '{ n += $1 } END { print n / 60 }' "$out/$stem/rounds")" \
            "$(awk '{ n += $2 } END { print n / 1e6 }' "$out/$stem/rounds")" \
            "$(awk '$3 > m { m = $3 } END { print m }' "$out/$stem/rounds")" \
            "$(count_crashes "$stem")" "$(commits "$stem")"
    done
}

is_behind() {
    [ "$(count_crashes "$1")" -lt 5 ] &&
        [ "$(sum "$1" 1)" -lt $((minutes * 60)) ]
}

all_stems() {
    local target
    for target in tests/fuzz/fuzz_*.c; do
        target=${target##*/fuzz_}
        echo "${target%.c}"
    done
}

commit=$(git describe --always --dirty --match '' 2>/dev/null || echo unknown)
[ ${#stems[@]} -gt 0 ] || mapfile -t stems < <(all_stems)
if [ "$table_only" -eq 0 ]; then
    build_targets
    # Turns of equal length for all who are behind, until nobody is.
    while :; do
        behind=()
        for stem in "${stems[@]}"; do
            ! is_behind "$stem" || behind+=("$stem")
        done
        [ ${#behind[@]} -gt 0 ] || break
        for stem in "${behind[@]}"; do
            while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
                wait -n || true
            done
            run_round "$stem" &
        done
        wait
    done
fi
print_table "${stems[@]}"
for stem in "${stems[@]}"; do
    [ "$(count_crashes "$stem")" -eq 0 ] || exit 1
done
