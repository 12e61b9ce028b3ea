#!/usr/bin/env bash
# leat dump, killed at every call that changes a file system, interrupted twice there, at
# the end of its CPU time, and with each of these failing: the files are of one dump, the token is never ahead of them,
# and what a failure or an interruption leaves is what was there before:
# test_dump_kills.sh TOOL
set -u
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"
trap=${LEAT_SYSCALL_TRAP-}
export ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0
if [ ! -f "$trap" ]; then
    echo "skipped: needs LEAT_SYSCALL_TRAP"
    exit 77
fi

layer=(--reader lmdb:db --batch 4 --phase TEST)
"$leat" synth digits --count 40 db >log 2>&1 || fail "no database: $(<log)"
"$leat" dump "${layer[@]}" --out old --token before >log 2>&1 || fail "no dump: $(<log)"
cp old/label.npy old/gone.npy
"$leat" dump "${layer[@]}" --at before --token after --batches 2 --out wanted >log 2>&1 ||
    fail "no second dump: $(<log)"
cmp -s before after && fail 'both tokens are the same'

# dump OPTION...: of the batches after the token, trapped by the environment.
dump() {
    "$leat" dump "${layer[@]}" --at $at --token token --batches 2 --out out "$@" >out.text 2>log
}

# is WHAT: whether the .npy files are exactly those of that dump.
is() {
    diff -r --exclude='*.leat-*' "$1" out >/dev/null 2>&1
}

# Whether all .npy files are of the one dump, or all of the other.
is_of_one() {
    local file from
    for from in old wanted; do
        for file in out/*.npy; do
            [ ! -e "$file" ] || cmp -s "$file" "$from/${file##*/}" || continue 2
        done
        return
    done
    return 1
}

# Whether the content of each file of the earlier dump has some name.
has_old() {
    local file found
    for file in old/*; do
        for found in out/*; do
            cmp -s "$file" "$found" && continue 2
        done
        return 1
    done
}

check_kill() {
    is_of_one || fail "$how: files of two dumps: $(ls out)"
    if [ "$mode" = start ]; then
        cmp -s token before || { is wanted && cmp -s token after; } ||
            fail "$how: no token of the start"
        return
    fi
    [ ! -e token ] || { is_before && cmp -s token before; } || { is wanted && cmp -s token after; } ||
        fail "$how: the token is ahead of the dump: $(ls out)"
}

# Whether the earlier token has its name, or where no call succeeds, another one.
has_token() {
    local file
    for file in token token.leat-*; do
        cmp -s "$file" before && return
        [ "${how##*:}" = 28 ] || return
    done
    return 1
}

check_fail() {
    if [ "$status" -eq 0 ]; then
        { is wanted && cmp -s token after; } || fail "$how: success, but not the whole dump"
        return
    fi
    [ "$status $(wc -l <log)" = '2 1' ] || fail "$how: status $status: $(<log)"
    has_token || fail "$how: not the token from before: $(<log)"
    if [ "${how##*:}" = 28 ]; then # no call after it succeeds
        has_old || fail "$how: the earlier dump is lost: $(ls out): $(<log)"
    else
        is_before || fail "$how: not the dump from before: $(ls out): $(<log)"
    fi
}

# Whether the .npy files are those from before, if any.
is_before() {
    if [ "$mode" = new ]; then [ -z "$(find out -name '*.npy' 2>/dev/null)" ]; else is old; fi
}

# A second Ctrl-C ends the tool at once, but not between two dumps.
check_twice() {
    [ "$status" -eq 0 ] || [ "$status" -eq 130 ] || fail "$how: status $status: $(<log)"
    { is_before && cmp -s token before; } || { is wanted && cmp -s token after; } ||
        fail "$how: neither dump is whole: $(ls out): $(<log)"
}

# Its CPU time ends again while it removes what it has begun.
check_limit() {
    [ "$status" -eq 0 ] || [ "$status" -eq 152 ] || fail "$how: status $status: $(<log)"
    [ -z "$(find . -name '*.leat-*')" ] || fail "$how: left: $(find . -name '*.leat-*')"
}

# Whether all is done, and nothing else is left.
is_done() {
    is wanted && cmp -s token after && [ "$(echo out/*)" = 'out/data.npy out/label.npy' ]
}

# try HOW: a run that ends so, and the same command once more.
try() {
    how=$1
    rm -rf out token.leat-*
    [ "$mode" = new ] || cp -r old out
    cp before token
    LD_PRELOAD=$trap SYSCALL_TRAP=$how dump ${force[@]+"${force[@]}"} 2>/dev/null
    status=$?
    if [ "$status" -ne 137 ] && [ "${how%%:*}" = kill ]; then
        is_done || fail "$how: not all is done: $(ls out): $(<log)"
        return 1
    fi
    case ${how%%:*} in
    kill) check_kill ;;
    twice) check_twice ;;
    limit) check_limit ;;
    *) check_fail ;;
    esac
    cp before token
    if [ "$mode" != new ] && [ "${how%%:*}" = kill ] && has_old; then
        LD_PRELOAD=$trap SYSCALL_TRAP=fail:6:28 dump --force &&
            fail "$how: no failure of the next dump"
        has_old || fail "$how: a dump that failed removed the earlier one: $(ls out)"
    fi
    dump --force || fail "$how: the same command failed: $(<log)"
    is_done || fail "$how: the same command leaves $(ls out)"
}

for mode in new force start; do
    force=()
    [ "$mode" = new ] || force=(--force)
    at=before
    [ "$mode" != start ] || at=token
    calls=1
    while try "kill:$calls" && [ "$calls" -lt 400 ]; do
        try "fail:$calls:5"
        [ "$mode" = new ] || try "fail:$calls:28"
        try "twice:$calls"
        [ "$mode" != new ] || try "limit:$calls"
        calls=$((calls + 1))
    done
    [ "$calls" -gt 6 ] || fail "$mode: only $calls calls"
    echo "$mode: $((calls - 1)) calls"
done

# killed_inside CALL: a dump with its token in its own directory. Whether that ended it.
killed_inside() {
    rm -rf out
    LD_PRELOAD=$trap SYSCALL_TRAP=kill:$1 "$leat" dump "${layer[@]}" --out out \
        --token out/token >out.text 2>log
    [ $? -eq 137 ]
} 2>/dev/null
# The same command again removes what it left of the token, too.
calls=1
staged=0
while killed_inside $calls && [ "$calls" -lt 400 ]; do
    how=kill:$calls
    [ -z "$(find out -name 'token.leat-*' 2>/dev/null)" ] || staged=$((staged + 1))
    [ -z "$(find out -name '*.npy' 2>/dev/null)" ] && force=() || force=(--force)
    "$leat" dump "${layer[@]}" --out out --token out/token ${force[@]+"${force[@]}"} \
        >out.text 2>log || fail "$how: the same command failed: $(<log)"
    [ "$(echo out/*)" = 'out/data.npy out/label.npy out/token' ] ||
        fail "$how: the same command leaves $(ls out)"
    calls=$((calls + 1))
done
[ $staged -gt 0 ] || fail 'no kill left a file of the token'
echo "token inside: $((calls - 1)) calls, $staged of them with a file of the token"

# Nor does one that is killed between its batches leave any.
"$leat" dump --reader 'range:9 | repeat' --top value=value,dtype=INT64 --batch 2 \
    --batches 1000000000 --out between --token between/token >out.text 2>log &
until [ -n "$(find between -size +0 -name 'value*' 2>/dev/null)" ] || ! kill -0 $! 2>/dev/null; do
    sleep 0.01
done
kill -KILL $!
wait $! 2>/dev/null
[ -n "$(find between -size +0 -name 'value*')" ] || fail "no batches: $(<log)"
[ -z "$(find between -name 'token*')" ] || fail "between batches: $(ls between)"
exit "$failed"
