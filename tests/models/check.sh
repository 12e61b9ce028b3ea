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
# states were seen, none is bad), deadlock (invalid end state), assertion; holds+ has
# about a million states or more, and CI looks at a third of these.
# Options without -D; what each means stands in the model.
table() {
    cat <<'TABLE'
queue       holds
queue       holds+     STOP_EARLY
queue       assertion  MUTANT_WAIT_ONCE
queue       assertion  MUTANT_CLOSE_DROPS STOP_EARLY
queue       deadlock   MUTANT_PUSH_SIGNALS_NOBODY
queue       deadlock   MUTANT_POP_SIGNALS_NOBODY
queue       deadlock   MUTANT_CLOSE_WAKES_ONE
wakeup      holds
wakeup      holds+     TAKES_ALL
wakeup      holds+     STOP_EARLY
wakeup      holds      WAKES=2
wakeup      holds      WAKES=0
wakeup      deadlock   MUTANT_TICKET_AFTER_LOOK
wakeup      deadlock   MUTANT_WAITER_LOOKS_FIRST
wakeup      deadlock   MUTANT_WAKER_LOOKS_FIRST WAKES=2
wakeup      deadlock   MUTANT_WAKER_TAKES_NO_LOCK
wakeup      deadlock   MUTANT_WAKE_ALL_WAKES_ONE WAKES=0
wakeup      deadlock   MUTANT_CLOSE_WAKES_ONE STOP_EARLY
wakeup      deadlock   MUTANT_CLOSE_TAKES_NO_LOCK
prefetcher  holds+     HELP=1 WORKERS=1 THREADED
prefetcher  holds      HELP=1 WORKERS=1 POOL=3 CIRCULATING=2
prefetcher  holds      HELP=1 WORKERS=1 TIMEOUTS=1
prefetcher  holds      HELP=1 WORKERS=1 TIMED
prefetcher  holds+     HELP=1 WORKERS=2 FORWARDS=2 THRESHOLD=3
prefetcher  holds      HELP=0 WORKERS=2 FORWARDS=2 THRESHOLD=3 FEWER_WAKE_UPS
prefetcher  holds      HELP=0 WORKERS=1 INLINE
prefetcher  holds      HELP=1 WORKERS=1 FORWARDS=2 INLINE
prefetcher  holds+     HELP=1 WORKERS=1 FORWARDS=2 INLINE THREADED
prefetcher  holds      HELP=1 WORKERS=1 FORWARDS=2 INLINE TIMEOUTS=1
prefetcher  holds      HELP=0 WORKERS=1 POLLS INLINE
prefetcher  holds+     HELP=0 WORKERS=2 POLLS POOL=4 CHUNKS_IN_BATCH=1
prefetcher  holds+     HELP=0 WORKERS=1 FORWARDS=2 ADAPTS
prefetcher  holds+     HELP=0 WORKERS=2 FORWARDS=2 THRESHOLD=3 BAD_AT=0
prefetcher  holds+     HELP=1 WORKERS=2 FORWARDS=2 ENDS_AT=2 CANCELS
prefetcher  holds      HELP=0 WORKERS=1 FORWARDS=2 BAD_AT=0 ENDS_AT=1
prefetcher  holds      HELP=0 WORKERS=1 FORWARDS=2 BAD_AT=0 ENDS_AT=1 THREADED
prefetcher  holds+     HELP=1 WORKERS=2 FORWARDS=1 BAD_AT=0 CARRY
prefetcher  holds+     HELP=0 WORKERS=2 FORWARDS=1 THREADED
prefetcher  holds+     HELP=0 WORKERS=1 FORWARDS=2 THREADED BLOCKS CANCELS
prefetcher  holds+     HELP=0 WORKERS=3 SLOW
prefetcher  holds+     HELP=0 WORKERS=3 SLOW CHUNKS_IN_BATCH=1 POOL=3 CIRCULATING=2
prefetcher  holds+     HELP=1 WORKERS=2 FORWARDS=2 SLOW THREADED
prefetcher  assertion  MUTANT_CLAIM_UNLOCKED HELP=0 WORKERS=2 FORWARDS=2
prefetcher  assertion  MUTANT_COMPLETES_OUT_OF_SEQUENCE HELP=0 WORKERS=2 FORWARDS=2
prefetcher  assertion  MUTANT_DESTROY_JOINS_NOT HELP=0 WORKERS=1 FORWARDS=2
prefetcher  assertion  MUTANT_NO_CHAIN HELP=0 WORKERS=3 SLOW
prefetcher  assertion  MUTANT_GROWS_AFTER_WAKING HELP=0 WORKERS=3 SLOW CHUNKS_IN_BATCH=1 POOL=3 CIRCULATING=2
prefetcher  deadlock   MUTANT_NO_PRESS HELP=0 WORKERS=1 THRESHOLD=3
prefetcher  deadlock   MUTANT_INLINE_PRESSES_NOT HELP=0 WORKERS=1 INLINE
prefetcher  deadlock   MUTANT_INLINE_ENDS_QUIETLY HELP=0 WORKERS=1 POLLS INLINE
prefetcher  deadlock   MUTANT_POLL_STAYS_INLINE HELP=0 WORKERS=1 POLLS INLINE
prefetcher  deadlock   MUTANT_THRESHOLD_TOO_HIGH HELP=0 WORKERS=1 POLLS
prefetcher  deadlock   MUTANT_TICKET_AFTER_LOOK HELP=0 WORKERS=1 POLLS
prefetcher  deadlock   MUTANT_TICKET_AFTER_LOOK HELP=0 WORKERS=1 THREADED
prefetcher  deadlock   MUTANT_CHUNK_WAKES_NOBODY HELP=0 WORKERS=1 THREADED
prefetcher  deadlock   MUTANT_HANDS_OVER_QUIETLY HELP=0 WORKERS=1 ADAPTS
prefetcher  deadlock   MUTANT_BAD_BATCH_HAS_NO_SHAPE HELP=0 WORKERS=2 BAD_AT=0
prefetcher  deadlock   MUTANT_BAD_CHUNK_HANDS_NOTHING_ON HELP=0 WORKERS=2 BAD_AT=0 CARRY
prefetcher  deadlock   MUTANT_STOPS_INSIDE_A_BATCH HELP=0 WORKERS=1 FORWARDS=2 BAD_AT=0 ENDS_AT=1
prefetcher  deadlock   MUTANT_SHORT_BATCH_COUNTS_AS_READ HELP=0 WORKERS=1 ENDS_AT=2
prefetcher  deadlock   MUTANT_CANCEL_LEAVES_CHUNKS HELP=0 WORKERS=1 THREADED
prefetcher  deadlock   MUTANT_CANCEL_LEAVES_INPUT HELP=0 WORKERS=1 THREADED
prefetcher  deadlock   MUTANT_CANCEL_LEAVES_STORAGE HELP=0 WORKERS=1 THREADED BLOCKS CANCELS
prefetcher  deadlock   MUTANT_CANCEL_LEAVES_ROOM HELP=0 WORKERS=1
prefetcher  deadlock   MUTANT_CANCEL_LEAVES_FORWARD HELP=0 WORKERS=1 THREADED BLOCKS CANCELS
upload      holds
upload      holds      WORKERS=3
upload      holds      STOP_EARLY
upload      holds      FAILS_AT=1
upload      holds      THREAD
upload      holds      THREAD STOP_EARLY
upload      holds      THREAD FAILS_AT=1
upload      holds      RUN=2
upload      holds      RUN=3 THREAD
upload      holds      RUN=2 THREAD STOP_EARLY
upload      holds      RUN=3 THREAD FAILS_AT=1
upload      assertion  MUTANT_TAKES_AFTER_UPLOAD RUN=2
upload      assertion  MUTANT_UPLOADS_TOGETHER
upload      deadlock   MUTANT_GIVES_UP_AFTER_LOOKING
upload      deadlock   MUTANT_COMPLETE_WAKES_NOBODY THREAD
upload      deadlock   MUTANT_TICKET_AFTER_LOOK THREAD
upload      deadlock   MUTANT_CLOSE_LEAVES_THE_THREAD THREAD
prefetch    holds      THREADS=1
prefetch    holds      THREADS=2
prefetch    holds+     THREADS=2 CANCELS STEPS=4
prefetch    holds+     THREADS=2 BLOCKS CANCELS STEPS=4
prefetch    assertion  MUTANT_PULLS_TOGETHER STEPS=2
prefetch    assertion  MUTANT_SEEK_WAITS_NOT STEPS=3
prefetch    assertion  MUTANT_SEEK_KEEPS_SAMPLES STEPS=3
prefetch    assertion  MUTANT_SEEK_GOES_AHEAD STEPS=5
prefetch    deadlock   MUTANT_NOTHING_WAKES_THREADS THREADS=1 STEPS=4
prefetch    deadlock   MUTANT_NOTHING_WAKES_THE_CALLER STEPS=2
prefetch    deadlock   MUTANT_RESUME_WAKES_NOBODY STEPS=4
prefetch    deadlock   MUTANT_CANCEL_WAKES_NOBODY BLOCKS CANCELS STEPS=5
prefetch    deadlock   MUTANT_CANCEL_TAKES_NO_LOCK BLOCKS CANCELS STEPS=5
prefetch    deadlock   MUTANT_CLOSE_CANCELS_NOT BLOCKS STEPS=3
prefetch    deadlock   MUTANT_CLOSE_WAKES_NOBODY MUTANT_CLOSE_CANCELS_NOT STEPS=2
devices     holds      HELP=0 STEPS=3
devices     holds+     HELP=1 STEPS=3 CHUNKS=1
devices     deadlock   MUTANT_GIVE_WAKES_AT_TWO HELP=0 STEPS=3
devices     deadlock   MUTANT_TICKET_AFTER_LOOK HELP=0 STEPS=3
device      holds      POOL=2
device      holds      POOL=2 EARLY
device      holds      POOL=3
device      holds      POOL=2 TRANSFORM
device      holds      POOL=2 TRANSFORM RETURNS
device      holds+     POOL=2 TRANSFORM EARLY
device      holds+     POOL=3 TRANSFORM
device      assertion  MUTANT_CONSUMED_ON_NEXT_STREAM POOL=2
device      assertion  MUTANT_CONSUMED_ON_NEXT_STREAM POOL=3
device      assertion  MUTANT_NO_HOST_WAIT POOL=2
device      assertion  MUTANT_NO_HOST_WAIT POOL=3
device      assertion  MUTANT_CONSUMED_AT_DELIVERY POOL=2
device      assertion  MUTANT_COPY_WAITS_NOT POOL=2
device      assertion  MUTANT_FORWARD_WAITS_NOT POOL=2
device      assertion  MUTANT_READY_BEFORE_COPY POOL=2
device      assertion  MUTANT_ONE_STREAM_RELEASED POOL=2 EARLY
device      assertion  MUTANT_NO_MARK POOL=2
device      assertion  MUTANT_DESTROY_WAITS_NOT POOL=2
device      assertion  MUTANT_TRANSFORM_WAITS_NOT POOL=2 TRANSFORM
device      assertion  MUTANT_READY_ON_COPIES POOL=2 TRANSFORM
device      assertion  MUTANT_NO_HOST_WAIT POOL=2 TRANSFORM
device      assertion  MUTANT_COPY_WAITS_NOT POOL=2 TRANSFORM
device      assertion  MUTANT_UNAWAITED_IS_OVERWRITTEN POOL=2 TRANSFORM RETURNS
device      assertion  MUTANT_DESTROY_WAITS_FOR_COPIES_ALONE POOL=2 TRANSFORM
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
    # tcc takes next to no time, and gcc without optimisation two seconds, which a
    # search of many states gains. Optimising all takes longer than it saves, as the
    # transitions are large; what keeps the states is small, and most of the search.
    local keepers='h_store|d_sfh|s_hash|new_state'
    local compiler=cc
    [ "$wanted" = holds+ ] || ! command -v tcc >/dev/null || compiler=tcc
    wanted=${wanted%+}
    (
        cd "$work"
        spin -a "${@/#/-D}" "$model.pml" &&
            sed -E -i "s/^($keepers)\(/__attribute__((optimize(\"O2\"))) &/" pan.c &&
            $compiler -O0 -w -DSAFETY -DNOCOMP -DMEMLIM=4000 -o pan pan.c &&
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
    part=0
    table | grep -e "${1-}" | while IFS= read -r line; do
        [[ $line != *holds+* ]] || ../../scripts/turn.sh $((part++)) || continue
        printf '%s\n' "$line"
    done | xargs -r -d '\n' -n 1 -P "$(nproc)" "$PWD/check.sh" --line
fi
