#!/usr/bin/env bash
# What the tool shows people: bars on a terminal, messages that take their place,
# what Ctrl-C does, once and twice, what a signal to a background job does, and one
# where nobody reads the messages:
# test_tool_terminal.sh TOOL
#
# A shell between script and a program on a stopped terminal would wait there to
# report how that ended: they exec.
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
[ -x "$leat" ] || {
    echo "skipped: the tool is not built"
    exit 77
}
script --version >/dev/null 2>&1 || {
    echo "skipped: there is no script (bsdutils), which makes a terminal"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

complain() {
    echo "failed: $*"
    head -c 300 shown | cat -v
    echo
    failed=1
}

# on_terminal ARGUMENT...: what a terminal shows goes to `shown`.
on_terminal() {
    local words
    printf -v words ' %q' "$leat" "$@"
    script -qec "$words" shown </dev/null >/dev/null 2>&1
}

shows() {
    grep -qE -- "$1" shown || complain "'$1' is not shown"
}

clear=$'\r\033\\[K'

# A bar is drawn ten times a second: more work until one was.
count=2000
while [ $count -lt 2000000 ]; do
    rm -rf drawn
    on_terminal synth noise --count $count --shape 3,32,32 drawn ||
        complain "synth: status $?"
    grep -q '\[#' shown && break
    count=$((count * 4))
done
shows "\[#*\.*\] +[0-9]+ %  [0-9.]+ ([kMG] )?[a-z]+/s  [0-9]+ s left"
shows "${clear}drawn: $count records"
# A difference has a line of its own, which is none of the bar's.
"$leat" synth noise --count $count --seed 2 --shape 3,32,32 unlike >/dev/null
on_terminal compare --differences $count drawn unlike && complain "compare: status 0"
shows "${clear}record [0-9]+, key"
grep -qE $'[^\r]\033\\[Krecord' shown && complain 'a difference behind a bar'
rm -r unlike
# A picture is not for a terminal.
on_terminal show drawn --out - && complain 'a picture on a terminal'
shows 'would write a picture to a terminal'
# narrow COLUMNS: every state of the bar fits into a terminal so wide.
narrow() {
    local widest words
    printf -v words ' %q' "$leat" synth noise --count $((4 * count)) \
        --shape 3,32,32 --force drawn4
    script -qec "stty cols $1 && exec$words" shown </dev/null >/dev/null 2>&1 ||
        complain "synth on $1 columns: status $?"
    grep -q '\[[#.]*\] ' shown || return
    bars=$((bars + 1))
    widest=$(tr '\r' '\n' <shown | grep '^\[[#.]' | sed 's/\x1b\[K.*//' |
        awk '{ if (length > n) n = length } END { print n }')
    [ "$widest" -lt "$1" ] || complain "a bar of $widest on $1 columns"
}
bars=0
for columns in 40 41 48 60 80; do
    narrow $columns
done
[ "$bars" -gt 0 ] || complain "no bar on a narrow terminal"
rm -r drawn4

rm -rf drawn2
for command in "verify drawn" "import pipeline lmdb:drawn drawn2" \
    "import pipeline lmdb:drawn drawn2 --force" "mean drawn mean.binaryproto" \
    "bench layer --reader lmdb:drawn --batch 64 --seconds 1"; do
    # The words of a command are several arguments.
    # shellcheck disable=SC2086
    on_terminal $command || complain "$command: status $?"
    # Nothing of a bar is left behind the last time it was taken away.
    sed "s/.*$clear//" shown | grep -qE '\[#*\.+\] +[0-9]+ %' &&
        complain "$command: a bar is left"
done

# Numbers instead of bars with --json, and where stderr is no terminal.
on_terminal verify --json drawn
grep -qE "\[#|$clear" shown && complain "a bar beside --json"
"$leat" verify drawn 2>shown >/dev/null
[ -s shown ] && complain "a bar in a file"

# A message takes the place of the bar.
on_terminal verify nowhere && complain "nowhere is there"
shows "${clear}leat: nowhere"
on_terminal verify && complain "nothing was verified"
shows "${clear}leat: .*leat verify --help"

# Whether the process is the tool, and no longer a shell about to become it, and
# has a handler of its own for SIGINT.
catches() {
    local mask
    [ "/proc/$1/exe" -ef "$leat" ] || return
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ -n "$mask" ] && [ $((16#${mask: -1} & 2)) -ne 0 ]
}

# An import that waits for its list: the first Ctrl-C is enough.
mkfifo list
exec 3<>list
env --default-signal=INT "$leat" import images - waiting <list >out 2>shown &
pid=$!
until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -INT $pid
wait $pid
status=$?
[ $status -eq 130 ] || complain "status $status after Ctrl-C"
grep -qx 'leat: interrupted (Interrupt)' shown || complain "it does not say why"
[ -e waiting ] && complain "a database of nothing"

exec 3>&-

# Once is enough where it is at work, and what is there is kept.
env --default-signal=INT "$leat" import pipeline lmdb:drawn stopped >out 2>shown &
pid=$!
until catches $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -INT $pid 2>/dev/null
wait $pid
status=$?
case $status in
0) [ -e stopped ] || complain "status 0, and no database" ;;
130) # or it came when all was done
    grep -q 'leat: interrupted' shown || [ -e stopped ] ||
        complain "it does not say why"
    ;;
*) complain "status $status after Ctrl-C" ;;
esac
# A run that could no longer report what it made leaves that to the next one.
if [ ! -e stopped ] || [ -e stopped.leat-part ]; then
    "$leat" import pipeline lmdb:drawn stopped >out 2>shown || complain "it cannot go on"
fi
"$leat" compare drawn stopped >shown 2>&1 || complain "other records"

[ "$(echo stopped*)" = stopped ] || complain "left behind: $(echo stopped*)"

# A terminal that stops background jobs that write to it stops none that a signal
# ends: background.sh TOOL writes what has become of such a job to `ended`.
cat >background.sh <<'END'
set -m
stty tostop
"$1" dump --json --reader 'range:9 | repeat' --top value=value,dtype=INT64 --batch 64 \
    --batches 100000000 --out background &
pid=$!
state() { sed 's/.*) //; s/ .*//' /proc/$pid/stat 2>/dev/null; }
until compgen -G 'background/*.leat-*' >begun || ! kill -0 $pid || [ "$(state)" = T ]; do
    sleep 0.01
done
kill -TERM $pid
SECONDS=0
until [ "$(state)" = T ] || ! kill -0 $pid 2>/dev/null || [ $SECONDS -ge 60 ]; do
    sleep 0.01
done
kill -KILL $pid 2>/dev/null && echo 'it did not end' >>ended
wait $pid
echo "status $?" >>ended
END
script -qec "exec bash background.sh $(printf %q "$leat")" shown </dev/null >/dev/null 2>&1
[ -s begun ] || complain 'a background dump did not begin'
[ "$(cat ended)" = 'status 143' ] || complain "a background dump: $(cat ended)"
[ -z "$(find . -name '*.leat-*')" ] || complain "left behind: $(find . -name '*.leat-*')"

# A handler of TSan's runs when the call is over in which its thread waits.
[ -z "${TSAN_OPTIONS-}" ] || {
    echo 'left out: signals to a thread that waits for its terminal: they end no call under TSan'
    exit $failed
}

# Nor is one that the terminal stopped as it read from there: reads.sh TOOL.
cat >reads.sh <<'END'
set -m
state() { sed 's/.*) //; s/ .*//' /proc/$pid/stat 2>/dev/null; }
"$1" cat text:- &
pid=$!
SECONDS=0
until [ "$(state)" = T ] || ! kill -0 $pid || [ $SECONDS -ge 60 ]; do sleep 0.01; done
state >read_ended
kill %1
SECONDS=0
while kill -0 $pid 2>/dev/null && [ $SECONDS -lt 60 ]; do sleep 0.01; done
kill -KILL $pid 2>/dev/null && echo 'it did not end' >>read_ended
wait $pid
echo "status $?" >>read_ended
END
script -qec "exec bash reads.sh $(printf %q "$leat")" shown </dev/null >/dev/null 2>&1
[ "$(xargs <read_ended)" = 'T status 143' ] || complain "a background cat: $(xargs <read_ended)"

# asleep PID [THREAD]: whether the process has its handler, and all its threads
# sleep, one of them of that name. Three looks in a row tell a wait from a nap.
asleep() {
    local look
    catches "$1" || return
    [ $# -eq 1 ] || grep -qx "$2" /proc/"$1"/task/*/comm 2>/dev/null || return
    for look in 1 2 3; do
        sed 's/.*) //; s/ .*//' /proc/"$1"/task/*/stat 2>/dev/null |
            grep -qv '^S$' && return 1
        sleep 0.$look
    done
}

# ends PID WHAT: it ends by one signal once it waits.
ends() {
    kill -TERM "$1"
    SECONDS=0
    while kill -0 "$1" 2>/dev/null && [ $SECONDS -lt 60 ]; do sleep 0.01; done
    kill -KILL "$1" 2>/dev/null && complain "$2 did not end"
}

# A check that takes long enough for several bars.
records=500000
while [ $records -le 32000000 ]; do
    "$leat" synth noise --count $records --shape 1,1,1 --force long >out 2>shown ||
        complain "synth: status $?"
    on_terminal verify long || complain "verify: status $?"
    [ "$(grep -o '\[[#.]*\] ' shown | wc -l)" -ge 2 ] && break
    records=$((records * 2))
done
grep -q '\[[#.]*\] ' shown || complain 'no bar of a check'

# A terminal whose output is stopped, as by Ctrl-S: stopped.sh TOOL ARGUMENT...
cat >stopped.sh <<'END'
python3 -c 'import termios; termios.tcflow(1, termios.TCOOFF)' || exit
echo $$ >stopped_pid
exec env --default-signal=INT "$@"
END
for command in 'verify long' 'show long --worst --out worst.png' 'mean long mean2.binaryproto'; do
    python3 -c 'import termios' 2>/dev/null || {
        echo 'not tested: a stopped terminal needs python3'
        break
    }
    rm -f stopped_pid
    script -qec "exec bash stopped.sh $(printf %q "$leat") $command" shown </dev/null >/dev/null 2>&1 &
    terminal=$!
    until [ -s stopped_pid ] || ! kill -0 $terminal 2>/dev/null; do sleep 0.01; done
    pid=$(cat stopped_pid)
    until asleep "$pid" || ! kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
    ends "$pid" "$command on a stopped terminal"
    wait $terminal
    status=$?
    [ $status -eq 143 ] || complain "status $status of $command on a stopped terminal"
done

# With `stty tostop` a background job's bar stops it: draws.sh TOOL
cat >draws.sh <<'END'
set -m
stty tostop
state() { sed 's/.*) //; s/ .*//' /proc/$pid/stat 2>/dev/null; }
"$1" verify long &
pid=$!
until [ "$(state)" = T ] || [ "$(state)" = Z ] || ! kill -0 $pid; do sleep 0.01; done
state >draw_ended
kill %1
SECONDS=0
while kill -0 $pid 2>/dev/null && [ $SECONDS -lt 60 ]; do sleep 0.01; done
kill -KILL $pid 2>/dev/null && echo 'it did not end' >>draw_ended
wait $pid
echo "status $?" >>draw_ended
END
script -qec "exec bash draws.sh $(printf %q "$leat")" shown </dev/null >/dev/null 2>&1
[ "$(xargs <draw_ended)" = 'T status 143' ] ||
    complain "a background verify: $(xargs <draw_ended)"
grep -q '\[[#.]*\] ' shown && complain 'the bar of a background verify'

# A full pipe for messages that nobody reads: a reader's thread logs that the
# cache has no more room.
mkfifo full
exec 3<>full
dd if=/dev/zero of=full oflag=nonblock bs=4096 count=1024 2>/dev/null
LEAT_LOG_LEVEL=warning env --default-signal=INT "$leat" import pipeline \
    'lmdb:drawn|repeat:90000|cache:4000000|prefetch:3' logged >out 2>&3 &
pid=$!
until asleep $pid leat_prefetch || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
ends $pid 'an import with a full pipe for messages'
wait $pid
status=$?
[ $status -eq 143 ] || complain "status $status of an import with a full pipe"

# Nor does anybody read that the report has failed.
env --default-signal=INT "$leat" synth digits --count 10 unreported >/dev/full 2>&3 &
pid=$!
until asleep $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
ends $pid 'a synth whose report failed'
wait $pid
"$leat" verify unreported >out 2>shown || complain 'no whole database before a failed report'
exec 3>&-

# A terminal that nobody reads, with room for a part of a line alone: the tool's.
cat >nearly_full.py <<'END'
import os, pty, signal, sys, time


def fill(most):
    reader, terminal = pty.openpty()
    os.set_blocking(terminal, False)
    n = 0
    # The kernel moves what is written a little later.
    end = time.monotonic() + 0.5
    while n < most and time.monotonic() < end:
        try:
            n += os.write(terminal, b"x")
            end = time.monotonic() + 0.5
        except BlockingIOError:
            time.sleep(0.01)
    os.set_blocking(terminal, True)
    os.set_inheritable(reader, True)
    return terminal, n


_, size = fill(1 << 20)
terminal, _ = fill(size - 10)
os.dup2(terminal, 2)
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
END
python3 -c 'import pty' 2>/dev/null || {
    echo 'not tested: a terminal with little room needs python3'
    exit $failed
}
exec 3<>list
python3 nearly_full.py "$leat" import images - waiting <list >out 2>shown &
pid=$!
until asleep $pid || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
ends $pid 'an import with little room for its last line'
wait $pid
status=$?
[ $status -eq 143 ] || complain "status $status of an import with little room"
exec 3>&-

# Likewise a line of a reader's thread.
LEAT_LOG_LEVEL=warning python3 nearly_full.py "$leat" import pipeline \
    'lmdb:drawn|repeat:90000|cache:4000000|prefetch:3' logged --restart >out 2>shown &
pid=$!
until asleep $pid leat_prefetch || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
ends $pid 'an import with little room for messages'
wait $pid
status=$?
[ $status -eq 143 ] || complain "status $status of an import with little room for messages"

[ $failed -eq 0 ] && echo "a bar at $count records"
exit $failed
