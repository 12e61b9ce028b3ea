#!/usr/bin/env bash
# What leat show, mean, dump and import write beside their output: nobody's link is
# followed, no pipe opened, ten at once do not meet, and nothing is left behind:
# test_tool_outputs.sh TOOL
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    head -n 3 err 2>/dev/null
    failed=1
}

# run STATUS ARGUMENT...: the tool's output goes to out and err.
run() {
    local status=$1 found
    shift
    timeout 20 "$leat" "$@" >out 2>err </dev/null
    found=$?
    check "leat $*: status $found, not $status" test "$found" -eq "$status"
}

# What a command has left beside its output.
left() {
    find . -name '*.leat-*' -o -name '*.tmp' | sort | tr '\n' ' '
}

"$leat" synth digits --count 60 --seed 3 db >/dev/null || exit 1
printf 'precious' >victim
precious() {
    check "$1: what a link leads to is as it was" test "$(cat victim)" = precious
}
run 0 show db --out wanted.png
run 0 mean db wanted.mean
run 0 dump --reader lmdb:db --batch 20 --phase TEST --batches 3 --out wanted
check 'nothing is left' test -z "$(left)"

# What another program makes in the place of an output while the command waits for its
# input stays, and nothing is left beside it.
wait_for() {
    until [ -n "$(find . -name "$1" 2>/dev/null)" ] || ! kill -0 $pid 2>/dev/null; do
        sleep 0.01
    done
}
mkfifo late
late=(--reader 'fixed:late,fields=(data=uint8@0:1x2x2)' --batch 2 --caller-helps OFF --prefetch 1)
exec 7<>late
timeout 60 "$leat" dump "${late[@]}" --batches 3 --out taken >out 2>err </dev/null &
pid=$!
printf 'abcdefgh' >&7
wait_for 'data.npy.leat-*'
printf 'of another program' >taken/data.npy
printf 'abcdefghabcdefghabcdefghabcdefghabcdefgh' >&7
wait $pid
check 'a dump whose file came meanwhile is refused' test $? -eq 2
check 'and the file stays' test "$(tr -d '\0' <taken/data.npy)" = 'of another program'
check 'nothing is left of the dump' test -z "$(left)"
rm -rf taken
exec 7>&-
exec 7<>late
timeout 60 "$leat" dump "${late[@]}" --batches 3 --out taken >out 2>err </dev/null &
pid=$!
printf 'abcdefgh' >&7
wait_for 'data.npy.leat-*'
cp wanted/label.npy taken
printf 'abcdefghabcdefghabcdefghabcdefghabcdefgh' >&7
wait $pid
check 'a dump beside which a file of another one came is made' test $? -eq 0
check 'and that file stays' cmp -s taken/label.npy wanted/label.npy
check 'with nothing else' test "$(cd taken && echo *)" = 'data.npy label.npy'
rm -rf taken
exec 7>&-
exec 7<>late
# Again if the dump was faster.
for _ in {1..9}; do
    rm -rf taken taken.at
    timeout 60 "$leat" dump --reader 'lmdb:db | repeat' --batch 20 --batches 10000 \
        --out taken --token taken.at >out 2>err </dev/null &
    pid=$!
    wait_for 'data.npy.leat-*'
    [ -e taken.at ] || break
    wait $pid
done
printf 'of another program' >taken.at
wait $pid
check 'a dump whose token came meanwhile is refused' test $? -eq 2
check 'and the token stays' test "$(cat taken.at)" = 'of another program'
check 'nothing is left of this dump' test -z "$(find . -name 'taken*' ! -name taken.at)"
rm -rf taken taken.at
timeout 60 "$leat" show "${late[@]}" --count 4 --out taken.png >out 2>err </dev/null &
pid=$!
printf 'abcdefgh' >&7
sleep 0.3
printf 'of another program' >taken.png
printf 'abcdefghabcdefghabcdefghabcdefghabcdefgh' >&7
wait $pid
check 'a sheet whose file came meanwhile is refused' test $? -eq 2
check 'and the file stays' test "$(tr -d '\0' <taken.png)" = 'of another program'
exec 7>&-
rm -f taken.png late

# A dump whose stderr has lost its reader cleans up all the same: one that fails, and
# one that is stopped by the signal that took the reader, as by Ctrl-C with tee.
mkfifo ends
# shellcheck disable=SC2094
exec 8<>ends 7>ends 8>&-
digits=(--reader 'text:lines | columns:value=int64' --top 'value=value,dtype=INT64')
seq 20 >lines && echo bad >>lines
timeout 20 "$leat" dump "${digits[@]}" --batch 4 --batches 9 --out failing --token failing.at \
    >out 2>&7 </dev/null
status=$?
check "a failing dump without a reader: $status" test $status -eq 141
check 'it leaves nothing' test -z "$(find . -name 'failing*')"
timeout 20 "$leat" dump --reader 'lmdb:db | repeat' --batch 20 --batches 1000000 --out stopped \
    --token stopped.at >out 2>&7 </dev/null &
pid=$!
until [ -n "$(find stopped -name '*.leat-*' 2>/dev/null)" ] || ! kill -0 $pid 2>/dev/null; do
    sleep 0.01
done
kill -TERM $pid
wait $pid
status=$?
check "a stopped dump without a reader: $status" test $status -eq 143
check 'it leaves nothing' test -z "$(find . -name 'stopped*')"
exec 7>&-

# A link and a pipe at the names that were predictable once are in nobody's way.
for plant in 'ln -s ../victim' 'ln -s nowhere' mkfifo mkdir; do
    rm -rf planted
    mkdir planted
    $plant planted/sheet.png.leat-part
    run 0 show db --out planted/sheet.png
    check "show beside '$plant'" cmp -s planted/sheet.png wanted.png
    precious "show beside '$plant'"
    check "show beside '$plant' leaves what is not its own" \
        test "$(find planted -mindepth 1 | wc -l)" -eq 2
done
# Into a directory with other files a dump goes with --force alone.
for plant in 'ln -s ../victim' 'ln -s nowhere' mkfifo; do
    rm -rf planted
    mkdir planted
    $plant planted/label.npy.leat-part
    run 0 dump --reader lmdb:db --batch 20 --phase TEST --batches 3 --force \
        --out planted
    check "dump beside '$plant'" cmp -s planted/label.npy wanted/label.npy
    precious "dump beside '$plant'"
done

# The output itself is a link or a pipe: it stays, and so does what it leads to.
for plant in 'ln -s victim' mkfifo; do
    rm -f target
    $plant target
    run 2 show db --out target --force
    check "show onto '$plant'" grep -q 'not a regular file' err
    run 2 mean db target --force
    check "mean onto '$plant'" grep -q 'not a regular file' err
    check "'$plant' stays" test ! -f target -o -L target
    precious "onto '$plant'"
done
check 'a refusal leaves nothing' test -z "$(find . -maxdepth 1 -name '*.leat-*')"

# ten NAME COMMAND...: ten processes at once with one output; all but those that
# name the other succeed.
ten() {
    local name=$1 i good=0
    shift
    for i in 1 2 3 4 5 6 7 8 9 10; do
        {
            timeout 60 "$leat" "$@" >"out.$i" 2>"err.$i" </dev/null
            echo $? >"status.$i"
        } &
    done
    wait
    for i in 1 2 3 4 5 6 7 8 9 10; do
        if [ "$(cat "status.$i")" -eq 0 ]; then
            good=$((good + 1))
        else
            check "$name at once: $(cat "err.$i")" grep -qE \
                'another leat is writing|another program has locked it|: holds |exists already|made it meanwhile' "err.$i"
        fi
    done
    check "$name: $good of ten at once" test "$good" -ge "${least-1}"
}
rm -rf planted
for _ in 1 2 3; do
    least=10 ten show show db --out many.png
    check 'ten sheets at once are one whole' cmp -s many.png wanted.png
    least=10 ten mean mean db many.mean
    check 'ten means at once are one whole' cmp -s many.mean wanted.mean
    ten dump dump --reader lmdb:db --batch 20 --phase TEST --batches 3 --out many
    check 'ten dumps at once are one whole' diff -r many wanted
    ten synth synth digits --count 60 --seed 3 made
    run 0 compare --keys made db
    check "nothing is left of ten at once: $(left)" test -z "$(left)"
    rm -rf many* made
done

# Ctrl-C in the middle of a dump leaves nothing; what a kill leaves, the next dump
# into that directory removes.
interrupt() {
    # In the background a shell without job control has SIGINT ignored.
    setsid env --default-signal=INT "$leat" dump --reader lmdb:db --batch 60 --batches 2000000000 \
        --out cut >out 2>err </dev/null &
    local pid=$!
    until [ -n "$(find cut -name 'data.npy.leat-*' 2>/dev/null)" ] ||
        ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    check 'a dump is under way' kill "-$1" $pid
    wait $pid 2>/dev/null
    check "status $? of a dump that got $1" test $? -ne 0
}
for signal in INT TERM HUP XCPU; do
    interrupt $signal
    check "$signal leaves nothing" test ! -e cut
done
interrupt KILL
check 'a kill leaves its files' test -n "$(ls cut)"
run 0 dump --reader lmdb:db --batch 20 --phase TEST --batches 3 --out cut
check 'the next dump removes them' diff -r cut wanted

# What a pipeline's readers have begun to write goes with the command: here a cache,
# which is there as soon as its reader is open.
begun='random:100000000,shape=1x4x4 | cache:dir=kept'
unending='range:100000000 | cache:dir=kept | where:value=-1'
commands=("cat '$begun'" "info '$begun'" "dump --reader '$begun' --batch 4 --out kept.out \
    --batches 100000000" "bench layer --reader '$begun' --batch 4 --seconds 100" \
    "bench layer --reader '$begun' --batch 4 --seconds 100 --device cpu,cpu" \
    "bench limit --reader '$begun' --batch 4 --seconds 100 --workers 1" \
    "bench limit --reader '$unending' --batch 4 --workers 1" \
    "bench reader --reader '$unending' --workers 1")
preload=()
ready=kept.partial/data
stop() {
    local signal=$1 command=$2 pid
    eval "</dev/null >out 2>err setsid env --default-signal=INT ${preload[*]} '$leat' $command &"
    pid=$!
    until [ -e $ready ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    check "leat $command is under way: $(cat err)" kill "-$signal" $pid
    { timeout 60 tail --pid=$pid -f /dev/null || kill -KILL $pid; } 2>/dev/null
    wait $pid 2>/dev/null
    check "leat $command: status $? after $signal" test $? -gt 128
    check "leat $command leaves nothing after $signal" test ! -e kept.partial
    check "leat $command prints nothing else: $(cat err)" \
        test -z "$(grep -v '^leat: interrupted (Terminated)$' err)"
    check 'a cache has its name once it is whole' test ! -e kept -o -e kept/index
    rm -rf kept* syncing
}
for signal in INT TERM HUP XCPU; do
    stop $signal "${commands[0]}"
done
for command in "${commands[@]:1}"; do
    stop TERM "$command"
done
# It waits for a writer of its input, or for a reader of its output.
mkfifo blocked
sleep 1000 >blocked &
writer=$!
stop TERM "cat '($begun) (text:-) | zip' <blocked"
# Or its opening does, which no cancel reaches.
for command in cat info; do
    stop INT "$command '($begun) (text:- | interleave:(text:{})) | zip' <blocked"
done
kill $writer
exec 7<>blocked
stop TERM "cat '$begun' >&7"
exec 7>&-
rm blocked
# The disk hangs as the cache is completed: in the sync of data, of index, of the
# directory, or, once the cache has its name, of that one's.
ready=syncing
for sync in 1 2 3 4; do
    preload=("LD_PRELOAD='$LEAT_SYSCALL_TRAP'" "SYSCALL_TRAP=sync:$sync")
    for command in cat info; do
        stop INT "$command 'range:3 | cache:dir=kept'"
    done
done
# A reader of the output that goes is no error, and has no message.
"$leat" cat "$begun" 2>err | head -n 1 >out
check "the status of a command whose output ended" test "${PIPESTATUS[0]}" -eq 141
check 'its line' test "$(wc -l <out)" -eq 1
check "no message: $(cat err)" test ! -s err
check 'the end of the output leaves nothing' test ! -e kept.partial
# An error is an end, too.
run 2 dump --reader "$begun" --batch 4 --out db
check 'an error leaves nothing' test ! -e kept.partial

# Nobody reads its messages: a first signal ends it as any other.
mkfifo unread
exec 6<>unread # a pipe that is full
dd if=/dev/zero bs=4096 count=64 oflag=nonblock >&6 2>/dev/null
env --default-signal=TERM "$leat" import pipeline random:100000000,shape=1x4x4 stuck >out 2>&6 &
pid=$!
until [ -e stuck.leat-part ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
sleep 2
kill -TERM $pid
{ timeout 60 tail --pid=$pid -f /dev/null || kill -KILL $pid; } 2>/dev/null
wait $pid 2>/dev/null
check "status $? where nobody reads the messages" test $? -eq 143
check 'what was interrupted can be resumed' test -e stuck.leat-part/journal
exec 6>&-
rm -r unread stuck*

# A list of bad records that was made is removed then, but no pipe that has its name by
# now is opened: who waits to write to it goes on waiting.
mkfifo input
exec 7<>input
printf '1,1\n' >&7
"$leat" dump --reader 'text:input | columns:x=float32,y=float32' --top x --batch 4 \
    --batches 9 --out taken.out --on-error ZERO --bad-record-file taken 2>err &
pid=$!
until [ -e taken ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
rm taken
mkfifo taken
(exec sleep 0 >taken) &
writer=$!
sleep 0.1
kill $pid
wait $pid 2>/dev/null
sleep 0.1
check "a pipe that has the list's name by now is not opened: $(cat err)" kill $writer
wait $writer 2>/dev/null
rm taken
# Nor is a file removed that has the name once setup has failed.
"$leat" dump --reader 'text:input | columns:x=float32,y=float32' --top x --batch 4 \
    --out taken.out --on-error ZERO --bad-record-file taken 2>err 7>&- &
pid=$!
until [ -e taken ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
: >of_another
mv of_another taken
exec 7>&-
wait $pid
check "an empty file of another program stays: $(cat err)" test -e taken
rm input taken
# One that its own maker may not read is removed as well. As another user, for root may all.
user=()
[ "$(id -u)" -ne 0 ] || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
chmod 755 .
mkdir -m 777 unread
if "${user[@]}" "$leat" --version >out 2>&1; then
    for mask in 444 222 666; do
        (cd unread && umask $mask &&
            "${user[@]}" timeout 20 "$leat" dump --reader 'text:../lines | columns:x=float32' \
                --top x --batch 4 --batches 9 --out ../unread --force --on-error ZERO \
                --bad-record-file list --token list) >out 2>err </dev/null
        check "a dump whose token is its list, umask $mask" grep -q 'is the list of bad records' err
        check "an empty list is removed, umask $mask" test -z "$(ls unread)"
    done
    # So is one that a link to nothing has become.
    ln -s made unread/list
    (cd unread && "${user[@]}" timeout 20 "$leat" dump --top x --batch 4 --batches 9 \
        --reader 'text:../lines | columns:x=float32' --out dumped --on-error ZERO \
        --bad-record-file list --token made) >out 2>err </dev/null
    check 'a dump whose token is where its list leads' grep -q 'is the list of bad records' err
    check "an empty list by a link is removed: $(ls unread)" test "$(ls unread)" = list
else
    echo 'left out: lists that may not be read: no other user can run leat'
fi
rm -rf unread

# The directory of an import: a stranger's files in it are refused or removed,
# and nothing is written through them.
printf '\000\000\010\003\000\000\000\003\000\000\000\002\000\000\000\003%s' \
    abcdefghijklmnopqr >images
printf '\000\000\010\001\000\000\000\003\000\001\011' >labels
run 0 import mnist images labels made
cp -r made before
for name in journal journal.new database replaced database/data.mdb database/lock.mdb; do
    for plant in "ln -s $PWD/victim" "ln -s $PWD/nowhere" mkfifo; do
        rm -rf fresh*
        mkdir fresh.leat-part
        [ $name = "${name#*/}" ] || mkdir fresh.leat-part/database
        $plant fresh.leat-part/$name
        timeout 10 "$leat" import mnist images labels fresh >out 2>err
        status=$?
        check "import beside '$plant $name' ends" test $status -le 2
        check "or completes" test $status -eq 2 -o -e fresh/data.mdb
        precious "import beside '$plant $name'"
        check 'nothing is made through it' test ! -e nowhere
    done
done
# Linked directories, its own and those in it.
mkdir theirs && cp made/data.mdb theirs
rm -rf fresh*
ln -s theirs fresh.leat-part
run 2 import mnist images labels fresh
check 'a link is no directory of an import' grep -q 'fresh.leat-part' err
rm fresh.leat-part
for target in 0 1; do
    for name in database replaced; do
        rm -rf fresh*
        [ $target = 0 ] || cp -r made fresh
        mkdir fresh.leat-part
        ln -s ../theirs fresh.leat-part/$name
        run 2 import mnist images labels fresh --force
        check 'what a link leads to is not removed' cmp -s theirs/data.mdb before/data.mdb
        check 'its directory is named' grep -q 'fresh.leat-part' err
        check 'it stays' test -L fresh.leat-part/$name
    done
done

[ $failed -eq 0 ] && echo 'all outputs as expected'
exit $failed
