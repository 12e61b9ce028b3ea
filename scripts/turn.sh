#!/usr/bin/env bash
# Whether it is the turn of part PART, of three of a long check: turn.sh PART
# CI runs one part a commit, and says which by LEAT_TURN, from 0 to 2. Without it all
# parts run.
set -eu
case ${1-} in
-h | --help)
    sed -n '2,4s/^# //p' "$0"
    exit 0
    ;;
'' | *[!0-9]*)
    echo "turn.sh: expected a number, found '${1-}'; see turn.sh --help" >&2
    exit 2
    ;;
esac
[ -z "${LEAT_TURN-}" ] || [ $((LEAT_TURN % 3)) -eq $(($1 % 3)) ]
