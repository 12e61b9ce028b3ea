#!/usr/bin/env bash
# leat import stopped at random moments, by signals and by full disks, and resumed:
# the very same records in the end, and never a target that is not complete:
# test_import_stops.sh TOOL. LEAT_KILL_ROUNDS: how often it is killed to the end;
# TMPDIR: where, if not in memory.
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
records=${leat%/*}/tests/record_digest
rounds=${LEAT_KILL_ROUNDS:-1}
for program in "$records" perl timeout; do
    command -v "$program" >/dev/null || {
        echo "skipped: needs $program"
        exit 77
    }
done
# In memory, if there is room: what waits for a disk is not what is tested here.
roomy=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
[ "${roomy:-0}" -gt 800000 ] && TMPDIR=${TMPDIR-/dev/shm}
export TMPDIR=${TMPDIR-/tmp}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
kills=0
ends=0

fail() {
    echo "failed: $*"
    failed=1
}

digest() {
    "$records" "$1"
    rm -f "$1/lock.mdb"
}

# refuses TEXT COMMAND...: status 2 and one line that says so.
refuses() {
    local text=$1 status
    shift
    "$@" >stdout 2>stderr </dev/null
    status=$?
    [ "$status" -eq 2 ] || fail "status $status of: $*"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "not one line of: $*: $(cat stderr)"
    grep -qE -- "$text" stderr || fail "'$text' is missing: $(cat stderr)"
}

# Two batches of random pixels.
for i in 1 2; do
    head -c 30730000 /dev/urandom | LC_ALL=C tr '\012-\377' '\001-\011' >$i.bin
done
started=$(date +%s%N)
"$leat" import cifar10 1.bin 2.bin whole >/dev/null || fail "cannot import"
duration=$((($(date +%s%N) - started) / 1000000 + 1))
wanted=$(digest whole)

# Each run is killed at a random moment, later and later, until one ends.
kill_to_the_end() {
    local signal=$1 tries=0 status left
    shift
    while :; do
        tries=$((tries + 1))
        left=$((RANDOM * 32768 + RANDOM))
        left=$((left % (duration + tries * duration / 10) + 1))
        timeout --foreground -s "$signal" "$(printf '%d.%03d' $((left / 1000)) $((left % 1000)))" \
            "$leat" import cifar10 "$@" >stdout 2>stderr
        status=$?
        [ $status -eq 0 ] && break
        kills=$((kills + 1))
        # Whoever was killed after the report has done it all.
        grep -q ' records' stdout && break
        [ $status -eq 124 ] || [ $status -eq 137 ] || fail "status $status: $(cat stderr)"
        [ -z "$before" ] && [ -e out ] && [ ! -e out.leat-part/journal ] &&
            fail "a target that is not complete"
        [ -z "$before" ] || [ "$(digest out)" = "$before" ] || [ "$(digest out)" = "$wanted" ] ||
            fail "what was there is changed"
        [ $tries -gt 300 ] && fail "it never ends" && break
    done
    [ "$(digest out)" = "$wanted" ] || fail "other records after $tries runs"
    rmdir out.leat-part 2>/dev/null # all that a kill may leave in the end
    [ "$(echo out*)" = out ] || fail "left behind: $(echo out*)"
    rm -rf out*
    ends=$((ends + 1))
}

before=
for _ in $(seq "$rounds"); do
    for signal in KILL INT TERM HUP; do
        kill_to_the_end $signal 1.bin 2.bin out 2>/dev/null
    done
    "$leat" import cifar10 1.bin out >/dev/null
    before=$(digest out)
    kill_to_the_end KILL 1.bin 2.bin out --force 2>/dev/null
    before=
done
echo "$kills kills and signals, $ends imports with the very same records, on" \
    "$(stat -f -c %T .) in $TMPDIR"

# A signal says what is kept; and until it is finished nobody else gets there.
mkfifo pipe
stop_midway() {
    "$leat" import cifar10 1.bin pipe out >stdout 2>stderr &
    head -c 10000000 2.bin >pipe.head
    # The second batch comes through a pipe, whose end is never reached.
    exec 8>pipe
    cat pipe.head >&8
    refuses 'another leat' "$leat" import cifar10 1.bin 2.bin out
    refuses 'another leat' "$leat" import cifar10 1.bin 2.bin out --restart
    kill -"$1" $!
    cat pipe.head >&8 2>/dev/null &
    wait %1
    status=$?
    exec 8>&-
    wait
}
stop_midway TERM
[ "$status" -eq 143 ] || fail "status $status after TERM"
grep -qx 'leat: interrupted (Terminated); a pipe cannot be read again, so --restart starts over' \
    stderr || fail "the line after TERM: $(cat stderr)"
[ -e out ] && fail "a target after TERM"
refuses "unfinished import of other files or options: '.*, read once .*', now '[^']*'; --restart starts over$" \
    "$leat" import cifar10 1.bin 2.bin out
refuses 'unfinished import' "$leat" synth digits out
"$leat" import cifar10 1.bin 2.bin out --restart >/dev/null || fail "--restart"
[ "$(digest out)" = "$wanted" ] || fail "other records after --restart"
rm -rf out

# Who makes the target meanwhile keeps it, and what was made is kept, too. An import
# that was the faster one is begun anew. Before its journal is written it may still look
# whether there is a target.
overtake() {
    local pid tries=0
    while [ $((tries += 1)) -lt 20 ]; do
        rm -rf out
        "$leat" import cifar10 1.bin 2.bin out >stdout 2>stderr &
        pid=$!
        until [ -e out.leat-part/journal ] || ! kill -0 $pid 2>/dev/null; do :; done
        kill -STOP $pid 2>/dev/null
        mkdir out 2>/dev/null && echo theirs >out/data.mdb
        kill -CONT $pid 2>/dev/null
        wait $pid 2>/dev/null || return
    done
}
overtake
grep -qx 'leat: out: somebody else has made it meanwhile; it was not replaced; 20000 records are kept in out.leat-part: move out away and rerun the same command' \
    stderr || fail "the line of one overtaken: $(cat stderr)"
[ "$(cat out/data.mdb)" = theirs ] || fail "what came meanwhile is gone"
refuses 'exists already' "$leat" import cifar10 1.bin 2.bin out
[ -e out.leat-part ] || fail "what was made is gone"
rm -r out
"$leat" import cifar10 1.bin 2.bin out --json >json || fail "one overtaken does not resume"
grep -q '"records": 20000, "added": 0, ' json || fail "overtaken: $(cat json)"
[ "$(digest out)" = "$wanted" ] || fail "other records of one overtaken"
rm -r out

# Whether the process is the tool, the shell's no more, and has a handler of its own
# for SIGTERM.
catches() {
    local mask
    [ "/proc/$1/exe" -ef "$leat" ] || return
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ -n "$mask" ] && [ $((16#${mask: -4} & 0x4000)) -ne 0 ]
}

# ends_at_once ARGUMENT...: the tool waits, and one signal is enough.
ends_at_once() {
    local pid status tries=0
    "$leat" "$@" >stdout 2>stderr </dev/null &
    pid=$!
    until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -TERM $pid
    while kill -0 $pid 2>/dev/null && [ $((tries += 1)) -lt 3000 ]; do sleep 0.01; done
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    [ $status -eq 143 ] || fail "status $status after TERM of: $*"
    [ "$(cat stderr)" = 'leat: interrupted (Terminated)' ] || fail "$*: $(cat stderr)"
    [ -e out ] && fail "a target after TERM of: $*"
}
printf '\000\000\010\003\000\000\000\002\000\000\000\001\000\000\000\003abcdef' >images
printf '\000\000\010\001\000\000\000\002\000\001' >labels
ends_at_once import mnist pipe labels out
ends_at_once import mnist images pipe out
ends_at_once import cifar10 pipe out
ends_at_once import images pipe out
# Nor does a writer without anything to say keep it.
exec 8<>pipe
ends_at_once import mnist pipe labels out
ends_at_once import cifar10 pipe out
ends_at_once import images pipe out
exec 8>&-

# Nor one that stalls in the middle of a record: one signal ends the read.
exec 8<>pipe
head -c 100 1.bin >&8
"$leat" import cifar10 pipe out >stdout 2>stderr &
pid=$!
until grep -q pipe_read "/proc/$pid/wchan" 2>/dev/null || ! kill -0 $pid 2>/dev/null ||
    [ $((tries = ${tries-0} + 1)) -gt 200 ]; do sleep 0.01; done
kill -TERM $pid
tries=0
while kill -0 $pid 2>/dev/null && [ $((tries += 1)) -lt 1000 ]; do sleep 0.01; done
[ $tries -lt 1000 ] || fail "a stalled pipe keeps it"
kill -KILL $pid 2>/dev/null
wait $pid 2>/dev/null
status=$?
[ $status -eq 143 ] || fail "status $status after TERM in a record"
[ "$(cat stderr)" = 'leat: interrupted (Terminated)' ] || fail "in a record: $(cat stderr)"
exec 8>&-

# Whom nohup started goes on when the terminal hangs up, and whom a script put into the
# background when Ctrl-C ends the script.
cp labels pipe.tail
for signal in HUP INT; do
    (
        trap '' $signal
        exec "$leat" import mnist images pipe out >stdout 2>stderr
    ) &
    pid=$!
    exec 8>pipe
    until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -$signal $pid
    cat pipe.tail >&8
    exec 8>&-
    wait $pid || fail "status $? after an ignored $signal: $(cat stderr)"
    grep -q '^out: 2 records' stdout || fail "an ignored $signal: $(cat stdout)"
    rm -rf out
done
rm pipe.tail

# Files that changed meanwhile are other files, even if nobody can see it.
# shellcheck disable=SC2317 # refuses calls it
limited() {
    (ulimit -f "${blocks-50000}" && exec "$@")
}
refuses 'cannot write it.*[1-9][0-9]* records are kept' limited "$leat" import cifar10 1.bin 2.bin out
cp -p 1.bin kept
touch 1.bin
refuses 'unfinished import of other files.*; finish that one, or --restart' \
    "$leat" import cifar10 1.bin 2.bin out
touch -r kept 1.bin
rm kept
"$leat" import cifar10 1.bin 2.bin out >stdout || fail "cannot resume"
grep -q ' records ([0-9]* of them by this run)' stdout || fail "began anew: $(cat stdout)"
[ "$(digest out)" = "$wanted" ] || fail "other records after a full disk"
rm -rf out
refuses 'records are kept' limited "$leat" import cifar10 1.bin 2.bin out
touch -r 2.bin stamp
dd if=/dev/zero of=2.bin bs=3073 count=9000 conv=notrunc 2>/dev/null
touch -r stamp 2.bin
refuses 'is another one than the input has now; --restart' "$leat" import cifar10 1.bin 2.bin out
[ -e out.leat-part ] || fail "an unfinished import is gone"
truncate -s 1000000 out.leat-part/database/data.mdb
refuses '--restart starts over' "$leat" import cifar10 1.bin 2.bin out
rm -rf out.leat-part

# So are those of a pipeline, such as a database of as many records and the same keys.
refuses 'cannot write it.*[1-9][0-9]* records are kept' limited "$leat" import pipeline lmdb:whole out
touch -r whole/data.mdb stamp
touch whole/data.mdb
refuses 'unfinished import of other files.*--restart' "$leat" import pipeline lmdb:whole out
touch -r stamp whole/data.mdb
"$leat" import pipeline lmdb:whole out >stdout || fail "cannot resume a pipeline"
grep -q ' records ([0-9]* of them by this run)' stdout || fail "began anew: $(cat stdout)"
rm -rf out

# A file that is written while it is read gives no database: here the labels keep it.
{ printf '\000\000\010\003\000\000\000\002\000\000\001\000\000\000\001\000' && head -c 131072 1.bin; } >written
touch -d '1 hour ago' written
"$leat" import mnist written pipe out >stdout 2>stderr &
pid=$!
exec 8>pipe
printf '\000\000\010\001\000\000\000\002\000' >&8
until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
until [ -e out.leat-part ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
printf '\001' | dd of=written bs=1 seek=131000 conv=notrunc 2>/dev/null
printf '\001' >&8
exec 8>&-
wait $pid && fail "images that were written meanwhile"
[ "$(cat stderr)" = 'leat: written: was written while it was read; run the command again' ] ||
    fail "images that were written meanwhile: $(cat stderr)"
[ "$(echo out*)" = 'out*' ] || fail "left of what was written meanwhile: $(echo out*)"
rm -rf written

# What comes through a pipe is other input each time, even where it begins alike.
printf -- '-\r\n' >list
ln -s /dev/stdin input-1
# Of whatever letters its name is.
names=("a pipe" "it's" 'a,b' '(c)' d:e @f)
for name in "${names[@]}"; do
    ln -s /dev/stdin "$name"
done
cp list 'a list'
for text in text:- text:@list 'text:input-*' 'text: a pipe ' "text:it's" 'text:a\,b' 'text:\(c\)' \
    text:d:e 'text:@a list' 'text:./@f'; do
    "$leat" import pipeline "$text" out <pipe >stdout 2>stderr &
    exec 8>pipe
    yes same | head -n 200000 >&8
    kill -TERM $!
    wait $!
    status=$?
    exec 8>&-
    [ $status -eq 143 ] || fail "status $status of $text after TERM"
    grep -qx 'leat: interrupted (Terminated); a pipe cannot be read again, so --restart starts over' \
        stderr || fail "the line of $text after TERM: $(cat stderr)"
    refuses 'unfinished import of other files.*--restart' "$leat" import pipeline "$text" out
    [ -e out ] && fail "a mixture of two inputs of $text"
    rm -rf out.leat-part
done
rm list 'a list' input-1 "${names[@]}"
# A separator is no input, nor a field's offset a list.
yes 1-2 | head -n 200000 >pairs
pairs='text:pairs | columns:data=uint8*2,sep=- | reshape:data=1x1x2'
blocks=5000 refuses 'records are kept' limited "$leat" import pipeline "$pairs" out
"$leat" import pipeline "$pairs" out >stdout ||
    fail "cannot resume text with the separator -"
rm -rf out
printf -- '-\n' >./0
fields='fixed:pairs,fields=(data=uint8@0:1x1x4)'
blocks=5000 refuses 'records are kept' limited "$leat" import pipeline "$fields" out
"$leat" import pipeline "$fields" out >stdout || fail "cannot resume records with a field at 0"
rm -rf out pairs 0

# What is there is left alone, whatever it is.
refuses 'exists already; --force' "$leat" import cifar10 1.bin whole
echo text >file
refuses 'file: exists and is no database directory; choose another name' \
    "$leat" import cifar10 1.bin file
refuses 'no database directory' "$leat" import cifar10 1.bin file --force
[ "$(cat file)" = text ] || fail "a file was touched"
mkdir vacant
refuses 'vacant: exists already; --force would replace it$' "$leat" import cifar10 1.bin vacant
[ -z "$(ls -A vacant)" ] || fail "an empty directory was filled"
mkdir mine && echo text >mine/text
refuses 'no database directory' "$leat" import cifar10 1.bin mine --force
mkdir theirs.leat-part && echo text >theirs.leat-part/text
refuses 'did not write' "$leat" import cifar10 1.bin theirs
[ "$(cat mine/text theirs.leat-part/text)" = "$(printf 'text\ntext')" ] || fail "files are gone"
refuses 'No such file' "$leat" import cifar10 1.bin nowhere/out
[ "$(digest whole)" = "$wanted" ] || fail "a database was touched"
"$leat" import mnist images labels small >/dev/null
ln -s small link
"$leat" import mnist images labels link --force >/dev/null || fail "--force to a link"
[ -L link ] || fail "a link was replaced"
# As another user, for root may all.
user=()
[ "$(id -u)" -ne 0 ] || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
chmod 755 .
if "${user[@]}" "$leat" --version >/dev/null 2>&1 && "${user[@]}" test -r 1.bin; then
    mkdir locked && chmod 555 locked
    refuses 'ermission' "${user[@]}" "$leat" import cifar10 1.bin locked/out
    # What may not be replaced is refused before the work.
    mkdir -m 777 theirs.own
    (cd theirs.own && "${user[@]}" "$leat" import mnist ../images ../labels db >/dev/null) ||
        fail "another user's import"
    (cd theirs.own && rm -f db/lock.mdb && chmod -R a-w db)
    again=("${user[@]}" "$leat" import mnist images labels theirs.own/db --force)
    refuses 'db: cannot replace its files: Permission denied' "${again[@]}"
    [ "$(ls theirs.own)" = db ] || fail "refused, but begun: $(ls theirs.own)"
    chmod u+w theirs.own/db
    "${again[@]}" >/dev/null 2>stderr || fail "cannot replace: $(cat stderr)"
    chmod -R u+w theirs.own
    rm -rf locked theirs.own
    # Relative names are enough where a directory above may not be searched; where one
    # of theirs may not, that is said.
    mkdir -p hidden/below/pictures && chmod 777 hidden/below
    cp "$LEAT_TEST_DATA/images/1x1.jpg" hidden/below/pictures
    cp images labels hidden/below
    echo '1x1.jpg 1' | tee list >hidden/below/list
    chmod -R a+rX hidden
    [ "$(id -u)" -ne 0 ] || chmod 700 hidden
    cd hidden/below || exit 1
    [ "$(id -u)" -eq 0 ] || chmod 000 ..
    for import in 'images list made --root pictures' 'mnist images labels pair'; do
        # shellcheck disable=SC2086
        "${user[@]}" "$leat" import $import >/dev/null 2>stderr ||
            fail "below a hidden directory: $import: $(cat stderr)"
    done
    cd ../.. 2>/dev/null || cd "$work" || exit 1
    mkdir -m 777 open
    for import in 'images list open/made --root hidden/below' 'mnist hidden/below/images labels open/made' \
        'mnist images hidden/below/labels open/made' 'cifar10 hidden/below/images open/made' \
        'images hidden/below/list open/made'; do
        # shellcheck disable=SC2086
        refuses 'hidden/below[^:]*: Permission denied$' "${user[@]}" "$leat" import $import
    done
    chmod 755 hidden
    rm -rf hidden open list
else
    echo "left out: directories without permission: no other user can run leat"
fi

# A signal to a pipeline ends its producer, too, and so the input: what came is not all.
lines='$| = 1; for (;;) { print "12\n"; select(undef, undef, undef, 0.01) }'
for i in {1..30}; do
    timeout -s INT 0.15 bash -c "perl -e '$lines' |
        '$leat' import pipeline text:/dev/stdin piped" >/dev/null 2>&1
    [ ! -e piped ] || break
    rm -rf piped.leat-part
done
[ ! -e piped ] || fail "run $i made a database of a part of its input"
rm -rf piped piped.leat-part

[ "$(echo ./*.leat-*)" = ./theirs.leat-part ] || fail "left behind: $(echo ./*.leat-*)"
exit $failed
