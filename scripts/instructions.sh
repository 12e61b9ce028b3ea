#!/usr/bin/env bash
# Counts the instructions that a sample costs in each of the four workloads, and
# compares them with benchmarks/instructions.txt: more than 5 % above fails.
#   instructions.sh [--if-asked | --update] [BUILD_FOLDER]
# --update writes the file. Callgrind counts two runs, one of more batches than
# the other; their difference, by the samples between, is what a sample costs, no
# matter what else the machine does. Where there is no valgrind, or compiler,
# libraries or kernels are not those of the file, it is skipped (77).
# With --if-asked it does so only where LEAT_CHECK_INSTRUCTIONS is set, as .ci/run
# does: a change that is worth its instructions comes with an --update.
set -eu
cd "$(dirname "$0")/.."
update=0
if [ "${1-}" = --if-asked ]; then
    shift
    if [ -z "${LEAT_CHECK_INSTRUCTIONS-}" ]; then
        echo "skipped: LEAT_CHECK_INSTRUCTIONS is not set"
        exit 77
    fi
fi
[ "${1-}" != --update ] || { update=1 && shift; }
build=${1-build}
figures=benchmarks/instructions.txt
program=$build/benchmarks/bench_instructions
export LEAT_ISA=avx2

skip() {
    echo "skipped: $1"
    exit 77
}
command -v valgrind >/dev/null || skip "there is no valgrind"
for needed in "$program" "$build/leat"; do
    [ -x "$needed" ] || skip "$needed is not built"
done
this=$("$program" --build)
[[ $this == *Release,*avx2* ]] ||
    skip "this is $this; it takes a plain Release build and AVX2"
if [ "$update" -eq 0 ]; then
    that=$(sed -n 's/^# counted with //p' "$figures")
    [ "$this" = "$that" ] || skip "this is $this, the figures are of $that"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/leat-instructions.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$build/leat" synth noise --count 3000 --shape 1,28,28 --seed 1 "$work/mnist" >"$work/log"
"$build/leat" synth noise --count 1000 --shape 3,32,32 --seed 2 "$work/cifar" >"$work/log"
"$build/leat" mean "$work/cifar" "$work/cifar.binaryproto" >"$work/log"
"$build/leat" synth noise --count 64 --shape 3,256,256 --seed 3 "$work/raw" >"$work/log"
"$build/leat" synth noise --count 64 --shape 3,256,256 --jpeg 90 --seed 4 "$work/jpeg" >"$work/log"

# count WORKLOAD BATCHES: prints instructions and samples.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$program" "$1" "$work/$1" "$2" >"$work/samples" 2>"$work/log" || {
        cat "$work/log" >&2
        return 1
    }
    echo "$(sed -n 's/.*Collected : //p' "$work/log") $(cat "$work/samples")"
}

# cost WORKLOAD FEW MANY: instructions a sample.
cost() {
    local few many
    few=$(count "$1" "$2")
    many=$(count "$1" "$3")
    echo "$few $many" | awk '{ printf "%.0f\n", ($3 - $1) / ($4 - $2) }'
}

failed=0
found=
printf '%-8s | %12s | %12s | change\n' workload instructions committed
while read -r name few many; do
    cost=$(cost "$name" "$few" "$many")
    found+=$'\n'"$name $cost"
    before=$(awk -v name="$name" '$1 == name { print $2 }' "$figures" 2>"$work/log" || true)
    change=$(awk -v now="$cost" -v before="${before:-0}" \
        'BEGIN { if (before) printf "%+.1f %%", 100 * (now / before - 1); else printf "new" }')
    printf '%-8s | %12d | %12s | %s\n' "$name" "$cost" "${before:--}" "$change"
    [ -z "$before" ] || [ $((cost * 100)) -le $((before * 105)) ] || failed=1
done <<END
mnist 60 180
cifar 40 100
raw 4 12
jpeg 1 3
END

if [ "$update" -eq 1 ]; then
    cat >"$figures" <<END
# Instructions that a sample costs in a data layer, by scripts/instructions.sh.
# counted with $this$found
END
elif [ "$failed" -eq 1 ]; then
    echo "more than 5 % above $figures; if that is meant: instructions.sh --update"
fi
[ "$update" -eq 1 ] || exit "$failed"
