#!/usr/bin/env bash
# Why tests were skipped, a line each, from ctest's log of them:
#   skips.sh LOG [TEST...]
# Of each TEST that ctest calls skipped there is a line, also where it gives no reason;
# of the others, those that skipped a part.
set -eu

if [ $# -eq 0 ] || [[ $1 == -* ]]; then
    sed -n '2,5s/^# //p' "$0"
    [ "${1-}" = --help ] && exit 0
    exit 2
fi
awk -v skipped=" ${*:2} " '
    function end_test() {
        if (name != "" && !reasons && index(skipped, " " name " "))
            printf "%-26s skipped, without a reason: %s\n", name, last
    }
    /^[0-9]+\/[0-9]+ Test: / { end_test(); name = $3; last = ""; reasons = 0 }
    /^<end of output>$/ { inside = 0 }
    inside && !/^-*$/ { last = $0 }
    inside && /^skipped: / { printf "%-26s %s\n", name, $0; reasons++ }
    /^Output:$/ { inside = 1 }
    END { end_test() }' "$1"
