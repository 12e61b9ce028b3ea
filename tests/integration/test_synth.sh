#!/bin/sh
# leat synth: records by seed, all or nothing.
set -eu
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "failed: $*" >&2
    exit 1
}

# Expects exit status $1 and one line on stderr from the rest.
refuses() {
    expected=$1
    shift
    status=0
    "$@" >stdout 2>stderr || status=$?
    [ "$status" -eq "$expected" ] || fail "status $status of: $*"
    [ ! -s stdout ] || fail "something on stdout of: $*"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "not one line on stderr of: $*"
    grep -q '^leat: ' stderr || fail "no 'leat: ' on stderr of: $*"
    [ "$(echo made*)" = 'made*' ] || fail "left behind by: $*"
}

# The same seed gives the same bytes, another one others.
"$leat" synth digits --count 100 --seed 7 first >stdout
"$leat" synth digits --count 100 --seed 7 second >stdout
"$leat" synth digits --count 100 --seed 8 third >stdout
cmp first/data.mdb second/data.mdb || fail "the same seed, other bytes"
! cmp -s first/data.mdb third/data.mdb || fail "another seed, the same bytes"
[ "$(ls first)" = data.mdb ] || fail "more than data.mdb in a database"
"$leat" synth noise --count 3 --shape 3,40,30 --jpeg 90 jpegs >/dev/null
"$leat" synth digits --count 0 empty >/dev/null

# The map grows far beyond its first size.
"$leat" synth noise --count 150 --shape 3,256,256 --json large >json
grep -q '"records": 150' json || fail "no count in the JSON object"

# Wrong usage.
refuses 64 "$leat"
refuses 64 "$leat" synth
refuses 64 "$leat" synth letters made
refuses 64 "$leat" synth digits made more
refuses 64 "$leat" synth digits --count 1e6 made
refuses 64 "$leat" synth digits --count 9999999999 made
refuses 64 "$leat" synth digits --shape 1,28 made
refuses 64 "$leat" synth digits --shape 8192,8192,8192 made
refuses 64 "$leat" synth digits --shape 2,28,28 --jpeg 90 made
refuses 64 "$leat" synth digits --jpeg 0 made
refuses 64 "$leat" synth digits --unknown made
refuses 64 "$leat" synth digits --seed

# What is there is not touched without being told to, and never if it is
# something else.
refuses 2 "$leat" synth digits --count 5 first
grep -q -- --force stderr || fail "--force is not named"
cmp first/data.mdb second/data.mdb || fail "touched without --force"
# What is replaced hands its permissions on.
cp -r second private
chmod 600 private/data.mdb
"$leat" synth digits --count 5 --force private >stdout
[ "$(stat -c %a private/data.mdb)" = 600 ] || fail "a private file is one for all"
# A limit of file sizes is no full disk, wherever it ends the journal or the database.
for bytes in 1 50 200 4096 8192 10000; do
    for command in 'synth digits --count 60 made' 'import pipeline lmdb:first made'; do
        # shellcheck disable=SC2086
        line=$(prlimit --fsize=$bytes "$leat" $command 2>&1) &&
            fail "$command: status 0 under a limit of $bytes"
        case $line in
        'leat: made'*': File too large') ;;
        *) fail "a limit of $bytes: $line" ;;
        esac
        [ "$(echo made*)" = 'made*' ] || fail "left behind by: $command"
    done
done
# Where pages are large, as on some processors, records on pages of their own take
# what they take: the map grows in time.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"
if [ -f "${LEAT_SYSCALL_TRAP-}" ]; then
    LD_PRELOAD=$LEAT_SYSCALL_TRAP SYSCALL_TRAP_PAGE=65536 \
        "$leat" synth noise --count 1000 --shape 1,180,184 pages >/dev/null ||
        fail "no database of large pages"
    "$leat" synth noise --count 1000 --shape 1,180,184 small >/dev/null
    "$leat" compare pages small --keys >/dev/null || fail "other records on large pages"
    [ "$(stat -c %s pages/data.mdb)" -gt 64000000 ] || fail "no large pages"
else
    echo "left out: large pages (needs LEAT_SYSCALL_TRAP)"
fi

# What stands in the way is called what it is.
mkdir other vacant
echo mine >other/file
ln -s nowhere dangling
says() {
    grep -qF -- "leat: $1" stderr || fail "'$1' is missing: $(cat stderr)"
}
refuses 2 "$leat" synth digits --count 5 first
says 'first: exists already; --force would replace it'
refuses 2 "$leat" synth digits --count 5 vacant
says 'vacant: exists already; --force would replace it'
for there in other json dangling; do
    for force in '' --force; do
        # shellcheck disable=SC2086
        refuses 2 "$leat" synth digits --count 5 $force $there
        says "$there: exists and is no database directory; choose another name"
    done
done
"$leat" synth digits --count 1 --force vacant >stdout
grep -q '^vacant: 1 record, ' stdout || fail "not '1 record': $(cat stdout)"
"$leat" import pipeline lmdb:first vacant 2>stderr || true
says 'vacant: exists already; --force would replace it'
rm -r vacant dangling
refuses 2 "$leat" synth digits --count 5 --force other
refuses 2 "$leat" synth digits --count 5 --force stdout
"$leat" synth digits --count 100 --seed 8 --force first >/dev/null
cmp first/data.mdb third/data.mdb || fail "not replaced with --force"
[ "$(echo first*)" = first ] || fail "left behind beside a replaced one"

# A directory of the same mount that takes no file of another one is found before the
# work, and all is as it was.
if [ -f "${LEAT_SYSCALL_TRAP-}" ]; then
    apart='first: takes no files from another directory, as one with a project ID of its own; rename it first, or give another name'
    for command in 'synth noise --count 1000000 --shape 3,256,256' 'import pipeline lmdb:second'; do
        # shellcheck disable=SC2086
        refuses 2 env LD_PRELOAD="$LEAT_SYSCALL_TRAP" SYSCALL_TRAP_BRANCHES=1 \
            timeout -k 5 30 "$leat" $command first --force
        says "$apart"
        [ "$(echo first*)" = first ] || fail "left behind by: $command"
        [ "$(ls first)" = data.mdb ] || fail "left inside by: $command"
    done
    cmp first/data.mdb third/data.mdb || fail "changed, though refused"
    # What a run has left that was killed as it tried is no foreign file.
    : >first/leat-tried.mdb
    "$leat" synth digits --count 100 --seed 8 --force first >/dev/null ||
        fail "a file that was tried stands in the way"
    [ "$(ls first)" = data.mdb ] || fail "a file that was tried stays"
else
    echo "left out: directories that take no files (needs LEAT_SYSCALL_TRAP)"
fi

# Nothing is left when the file cannot be written.
refuses 2 "$leat" synth digits --count 5 missing/made
# shellcheck disable=SC2016
refuses 2 sh -c 'ulimit -f 500; "$1" synth digits --count 20000 made' - "$leat"

# A signal leaves nothing behind; a kill leaves what the next run takes over.
"$leat" synth noise --count 1000000 --shape 3,256,256 made 2>stderr &
while [ ! -e made.leat-part/database/data.mdb ]; do :; done
refuses_while_running() {
    status=0
    "$leat" synth digits made 2>second_stderr || status=$?
    [ "$status" -eq 2 ] && grep -q another second_stderr
}
refuses_while_running || fail "two runs at a time"
kill -TERM $!
wait $! 2>/dev/null && fail "a terminated run succeeded"
[ "$(echo made*)" = 'made*' ] || fail "left behind by a signal"
"$leat" synth noise --count 1000000 --shape 3,256,256 made 2>stderr &
while [ ! -e made.leat-part/database/data.mdb ]; do :; done
kill -KILL $!
wait $! 2>/dev/null && fail "a killed run succeeded"
[ -e made.leat-part ] || fail "nothing to take over"
"$leat" synth digits --count 100 --seed 8 made >/dev/null
[ ! -e made.leat-part ] || fail "left behind by a killed run"
cmp made/data.mdb third/data.mdb || fail "a killed run spoilt the next"
