#!/usr/bin/env bash
# Checks the models with spin, and that what must fail does: check.sh [WORD]
# WORD: only the lines of the table below that contain it. Skips (77) without spin.
set -eu
cd "$(dirname "$0")"

if ! command -v spin >/dev/null; then
    echo "skipped: spin is not installed (scripts/deps.sh check)"
    exit 77
fi

# Each line: model, verdict, options. The verdicts are those of spin: holds (all
# states were seen, none is bad), deadlock (invalid end state), assertion.
# Options without -D; what each means stands in the model.
table() {
    cat <<'TABLE'
queue       holds
queue       holds      STOP_EARLY
queue       assertion  MUTANT_WAIT_ONCE
queue       assertion  MUTANT_CLOSE_DROPS STOP_EARLY
queue       deadlock   MUTANT_PUSH_SIGNALS_NOBODY
queue       deadlock   MUTANT_POP_SIGNALS_NOBODY
queue       deadlock   MUTANT_CLOSE_WAKES_ONE
wakeup      holds
wakeup      holds      TAKES_ALL
wakeup      holds      STOP_EARLY
wakeup      holds      WAKES=2
wakeup      holds      WAKES=0
wakeup      deadlock   MUTANT_TICKET_AFTER_LOOK
wakeup      deadlock   MUTANT_WAITER_LOOKS_FIRST
wakeup      deadlock   MUTANT_WAKER_LOOKS_FIRST WAKES=2
wakeup      deadlock   MUTANT_WAKER_TAKES_NO_LOCK
wakeup      deadlock   MUTANT_WAKE_ALL_WAKES_ONE WAKES=0
wakeup      deadlock   MUTANT_CLOSE_WAKES_ONE STOP_EARLY
wakeup      deadlock   MUTANT_CLOSE_TAKES_NO_LOCK
device      holds      SLOTS=2
device      holds      SLOTS=2 EARLY
device      holds      SLOTS=3
device      assertion  MUTANT_CONSUMED_ON_NEXT_STREAM SLOTS=2
device      assertion  MUTANT_CONSUMED_ON_NEXT_STREAM SLOTS=3
device      assertion  MUTANT_NO_HOST_WAIT SLOTS=2
device      assertion  MUTANT_NO_HOST_WAIT SLOTS=3
device      assertion  MUTANT_CONSUMED_AT_DELIVERY SLOTS=2
device      assertion  MUTANT_COPY_WAITS_NOT SLOTS=2
device      assertion  MUTANT_FORWARD_WAITS_NOT SLOTS=2
device      assertion  MUTANT_READY_BEFORE_COPY SLOTS=2
device      assertion  MUTANT_ONE_STREAM_RELEASED SLOTS=2 EARLY
device      assertion  MUTANT_NO_MARK SLOTS=2
device      assertion  MUTANT_DESTROY_WAITS_NOT SLOTS=2
TABLE
}

# What spin's verifier found, in one word; the trail is not kept.
verdict() {
    if grep -q 'invalid end state (at' "$1"; then
        echo deadlock
    elif grep -q '^pan:1: assertion violated' "$1"; then
        echo assertion
    elif grep -q 'errors: 0$' "$1" && ! grep -q 'truncated\|out of memory\|too small' "$1"; then
        echo holds
    else
        echo unclear
    fi
}

# check_line MODEL VERDICT OPTION...: in a folder of its own, as spin litters.
check_line() {
    local model=$1 wanted=$2 found work
    shift 2
    work=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" RETURN
    cp ./*.pml ./*.inc "$work"
    # Compiling all with optimisation takes longer than it saves: the transitions are
    # large. What keeps the states is small, and most of the search.
    local keepers='h_store|compress|d_sfh|s_hash|ordinal|col_p|col_q|Pptr'
    (
        cd "$work"
        spin -a "${@/#/-D}" "$model.pml" &&
            sed -E -i "s/^($keepers)\(/__attribute__((optimize(\"O2\"))) &/" pan.c &&
            cc -O0 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2000 -o pan pan.c &&
            ./pan -m100000
    ) >"$work/log" 2>&1 || true
    found=$(verdict "$work/log")
    printf '%-4s %-10s %-9s %10s states  %s\n' \
        "$([ "$found" = "$wanted" ] && echo ok || echo FAIL)" "$model" "$found" \
        "$(awk '/states, stored/ { print $1 }' "$work/log")" "$*"
    if [ "$found" != "$wanted" ]; then
        echo "     expected: $wanted"
        grep -v '^$' "$work/log" | head -n 20
        return 1
    fi
}

if [ "${1-}" = --line ]; then
    shift
    # shellcheck disable=SC2048,SC2086
    check_line $*
else
    table | grep -e "${1-}" | xargs -d '\n' -n 1 -P "$(nproc)" "$PWD/check.sh" --line
fi
