#!/usr/bin/env bash
# leat import, killed or interrupted at every call that changes a file system, and
# with each of these calls failing: the target is what it was or complete, and the
# same command completes it to the very same records: test_import_kills.sh TOOL
# LEAT_TRAP_STEP: only every so many calls. TMPDIR: where, if not in memory.
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
records=${leat%/*}/tests/record_digest
trap=${LEAT_SYSCALL_TRAP-}
step=${LEAT_TRAP_STEP-1}
export ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0
if [ ! -x "$records" ] || [ ! -f "$trap" ]; then
    echo "skipped: needs record_digest beside TOOL and LEAT_SYSCALL_TRAP"
    exit 77
fi
# In memory, if there is room: what waits for a disk is not what is tested here.
roomy=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
[ "${roomy:-0}" -gt 200000 ] && TMPDIR=${TMPDIR-/dev/shm}
export TMPDIR=${TMPDIR-/tmp}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
total=0
mode='' plain='' how=''
ended='leat: interrupted (Terminated); out is complete'

complain() {
    echo "failed: $mode $plain $how: $*; it said: $(head -c 300 log)"
    failed=1
}

# idx COUNT IMAGES LABELS: images of 2 MiB, of which a commit holds four.
idx() {
    # shellcheck disable=SC2059
    printf "\\000\\000\\010\\003\\000\\000\\000\\$(printf %03o "$1")" >"$2"
    printf '\000\000\004\000\000\000\010\000' >>"$2"
    head -c $(($1 * 1024 * 2048)) /dev/urandom >>"$2"
    # shellcheck disable=SC2059
    printf "\\000\\000\\010\\001\\000\\000\\000\\$(printf %03o "$1")" >"$3"
    head -c "$1" /dev/zero | tr '\000' '\007' >>"$3"
}

digest() {
    if [ -e "$1" ]; then
        "$records" "$1"
        rm -f "$1/lock.mdb"
    else
        echo absent
    fi
}

# The import, trapped or not; what is there before, and after.
import() {
    local flag=
    [ "$mode" = new ] || flag=--$mode
    # shellcheck disable=SC2086
    env LD_PRELOAD="$trap" "$@" "$leat" import mnist images labels out $flag \
        >log 2>&1
}

prepare() {
    rm -rf out*
    [ "$mode" = new ] || cp -r old out
}

# What is beside the target when all is done.
check_end() {
    [ "$(digest out)" = "$wanted" ] || complain "other records"
    rmdir out.leat-part 2>/dev/null
    [ "$(echo out*)" = out ] || complain "left behind: $(echo out*)"
    [ "$(ls out)" = data.mdb ] || complain "left inside: $(ls out)"
}

# Whether a run came so far that nothing is left to do, or to say; an empty
# directory may be left, which goes with the next run.
is_done() {
    [ ! -e out.leat-part/journal ] && [ "$(digest out)" = "$wanted" ] &&
        grep -q '^out: .* records' log
}

# What a trapped run left: never anything between old and new.
check_stopped() {
    local found
    found=$(digest out)
    [ "$found" = "$before" ] || [ "$found" = "$wanted" ] ||
        { [ -n "$plain" ] && [ "$found" = absent ]; } ||
        complain "neither old nor new"
    case $how in
    fail:*)
        [ "$1" -le 2 ] || complain "status $1"
        [ "$(wc -l <log)" -eq 1 ] || complain "not one line"
        ;;
    term:*)
        [ "$1" -eq 143 ] || complain "status $1"
        [ "$found" != "$wanted" ] || grep -qx "$ended; rerun the same command for its report" log ||
            complain "it does not say what holds"
        ;;
    *) [ "$1" -eq 137 ] || complain "status $1" ;;
    esac
}

# Ends every run by the Nth call, N = 1, 2 and so on; a run of so few ends well.
go_through() {
    local call=1 status
    while :; do
        how=$1:$call${2-}
        prepare
        import $plain SYSCALL_TRAP="$how" 2>/dev/null
        status=$?
        [ $status -eq 0 ] && is_done && break
        [ $call -gt 400 ] && complain "no end" && break
        check_stopped $status
        # Whom a signal ended may say it all again.
        { [ "$1" != term ] && is_done; } || import $plain || complain "the same command failed"
        check_end
        total=$((total + 1))
        call=$((call + step))
    done
    check_end
    echo "$mode $plain $1 ${2-}: $call calls"
}

idx 1 images labels
"$leat" import mnist images labels old >log || complain "no database"
idx 5 images labels
none="IGNORED="
for mode in new force; do
    plain=
    how=never
    prepare
    before=$(digest out)
    import $none || complain "cannot import"
    wanted=$(digest out)
    [ "$wanted" != "$before" ] || complain "nothing was imported"
    check_end
    go_through kill
    if [ $mode = new ]; then
        go_through tear
        go_through term
        go_through fail :5
    else
        go_through fail :28
        plain=SYSCALL_TRAP_PLAIN=1
        go_through kill
    fi
done

# Of images that cannot be read the last run tells, wherever those before it were
# killed: after the last rename, too, where nothing but the journal tells.
"$leat" synth noise --count 4 --shape 3,8,8 --seed 1 base >log || complain "no base"
mkdir pictures
for name in gray-8.png rgb.jpg rgb-8.png; do
    cp "${LEAT_TEST_DATA-}/images/$name" pictures 2>/dev/null
done
printf '%s\n' 'gray-8.png 1' 'none.png 2' 'rgb.jpg 3' 'nil.jpg 4' 'rgb-8.png 5' >list
tell() {
    env LD_PRELOAD="$trap" "$@" "$leat" import images list out --root pictures/ \
        --resize 8,8 $flag --json >json 2>log
}
for flag in '' --force; do
    mode=images$flag call=1 plain='' complete=0
    while :; do
        how=kill:$call
        rm -rf out*
        [ -z "$flag" ] || cp -r base out
        tell SYSCALL_TRAP="$how" 2>/dev/null
        status=$?
        [ $status -eq 137 ] || break
        [ $call -gt 400 ] && complain "no end" && break
        total=$((total + 1))
        if [ -e out ] && [ "$(digest out)" != "$(digest base)" ]; then
            [ -e out.leat-part/journal ] || { # all was said
                call=$((call + 1))
                continue
            }
            complete=$((complete + 1))
        fi
        tell $none
        status=$?
        [ $status -eq 1 ] || complain "status $status"
        grep -q '"unreadable": 2' json || complain "$(cat json)"
        grep -q '2 of its 5 images cannot be read and are left out' log ||
            complain "it does not say what is left out"
        call=$((call + 1))
    done
    [ "$status" -eq 1 ] || complain "status $status"
    [ $complete -gt 0 ] || complain "never killed with the target in place"
    echo "$mode kill: $call calls, $complete of them with the target in place"
done

# An import in place has replaced its own source, and yet its rerun is the same import:
# the records are passed by once, wherever it was killed. Of another source that was
# written since, the rerun is another one.
ln -s out link
cp -r base source
apply() {
    env LD_PRELOAD="$trap" "$@" "$leat" import pipeline "lmdb:$from|skip:1" out --force --json \
        >json 2>log
}
plain=
for from in out link source; do
    mode="pipeline $from" call=1 complete=0 how=never
    rm -rf out*
    cp -r base out
    apply $none || complain "cannot import"
    wanted=$(digest out)
    [ "$wanted" != "$(digest base)" ] || complain "nothing was passed by"
    while :; do
        how=kill:$call
        rm -rf out*
        cp -r base out
        apply SYSCALL_TRAP="$how" 2>/dev/null
        status=$?
        [ $status -eq 137 ] || break
        [ $call -gt 400 ] && complain "no end" && break
        total=$((total + 1))
        call=$((call + 1))
        if [ "$(digest out)" = "$wanted" ]; then
            [ -e out.leat-part/journal ] || continue # all was said
            complete=$((complete + 1))
            added=0
            [ $from != source ] || { touch source/data.mdb && added=3; }
        else
            added='[0-3]' # an unfinished one is resumed
        fi
        apply $none || complain "the same command failed"
        [ "$(digest out)" = "$wanted" ] || complain "other records"
        grep -q "\"records\": 3, \"added\": $added," json || complain "$(cat json)"
    done
    [ "$status" -eq 0 ] || complain "status $status"
    [ $complete -gt 0 ] || complain "never killed with the target in place"
    echo "$mode kill: $call calls, $complete of them with the target in place"
done

# Another source of an import in place that was written since is not passed by: the
# rerun is refused, and applies it by --restart. As it was, the rerun reports.
append() {
    env LD_PRELOAD="$trap" "$@" "$leat" import pipeline '(lmdb:out) (lmdb:source) | chain' out \
        --force $flag >log 2>&1
}
"$leat" synth noise --count 5 --shape 3,8,8 --seed 2 written >log || complain "no source"
mode='pipeline chain' call=1 complete=0 how=never
while :; do
    how=kill:$call flag=
    rm -rf out* source
    cp -r base out
    cp -r base source
    append SYSCALL_TRAP="$how" 2>/dev/null
    status=$?
    [ $status -eq 137 ] || break
    [ $call -gt 400 ] && complain "no end" && break
    total=$((total + 1))
    call=$((call + 1))
    [ "$(digest out)" != "$(digest base)" ] || continue
    [ -e out.leat-part/journal ] || continue # all was said
    complete=$((complete + 1))
    mv source kept
    cp -r written source
    append $none
    [ $? -eq 2 ] || complain "a source that was written since is not refused"
    grep -q 'remove out.leat-part to keep it so, or --restart' log || complain "not why"
    rm -r source
    if [ $((complete % 2)) -eq 0 ]; then
        mv kept source
        append $none || complain "the same command failed"
        grep -q '^out: 8 records (0 of them by this run)' log || complain "not reported"
    else
        rm -r kept
        mv written source
        flag=--restart
        append $none || complain "--restart failed"
        grep -q '^out: 13 records,' log || complain "not the new source"
        mv source written
    fi
done
[ "$status" -eq 0 ] || complain "status $status"
[ $complete -gt 1 ] || complain "not killed twice with the target in place"
echo "$mode kill: $call calls, $complete of them with the target in place"

# What no rerun reports is complete as well, once it has its name; nor is one promised
# where it may be refused, or made again.
mode=once plain=''
stop() {
    # shellcheck disable=SC2086
    env LD_PRELOAD="$trap" SYSCALL_TRAP="$how" "$leat" $command < <(cat images) >log 2>&1
}
for command in 'import mnist /dev/stdin labels out' 'synth digits --count 5 out' \
    'import mnist images labels out --restart' \
    'import pipeline lmdb:out|skip:1 out --force'; do
    call=1 complete=0
    while :; do
        how=term:$call
        rm -rf out*
        [ "${command##* }" != --force ] || cp -r base out
        stop 2>/dev/null
        status=$?
        [ $status -eq 143 ] || break
        [ $call -gt 400 ] && complain "no end" && break
        total=$((total + 1))
        call=$((call + 1))
        { [ -e out ] && [ "$(digest out)" != "$(digest base)" ]; } || continue
        complete=$((complete + 1))
        grep -qx "$ended" log || complain "it does not say what holds"
    done
    [ "$status" -eq 0 ] || complain "status $status"
    [ $complete -gt 0 ] || complain "no signal with the target in place"
    echo "$command: $call calls, $complete of them with the target in place"
done

echo "$total kills and failing calls on $(stat -f -c %T .) in $TMPDIR"
exit $failed
