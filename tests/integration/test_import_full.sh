#!/usr/bin/env bash
# leat import on a file system that is full, and killed there, and with more room:
# test_import_full.sh TOOL. Mounts a tmpfs, in a name space of its own.
# LEAT_KILL_ROUNDS: how often 20 runs are killed there.
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
if [ -z "${LEAT_TEST_UNSHARED-}" ]; then
    for how in '-m' '-rm'; do
        if unshare $how sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
            LEAT_TEST_UNSHARED=1 exec unshare $how "$0" "$leat"
        fi
    done
    echo "skipped: a tmpfs cannot be mounted here"
    exit 77
fi
records=${leat%/*}/tests/record_digest
[ -x "$records" ] || {
    echo "skipped: needs $records"
    exit 77
}
work=$(mktemp -d)
trap 'cd / && umount "$work/full" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir full
mount -t tmpfs -o size=30m leat-test full || exit 1
failed=0

fail() {
    echo "failed: $*"
    failed=1
}

digest() {
    "$records" "$1"
    rm -f "$1/lock.mdb"
}

# room KILOBYTES: so much the file system holds from now on.
room() {
    mount -o remount,size="$1"k full || fail "cannot remount"
}

fills() {
    local status
    "$leat" import cifar10 1.bin 2.bin "$@" >stdout 2>stderr
    status=$?
    [ $status -eq 2 ] || fail "status $status on a full file system"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "not one line: $(cat stderr)"
    grep -q 'No space left on device' stderr || fail "another error: $(cat stderr)"
}

for i in 1 2; do
    head -c 30730000 /dev/urandom | LC_ALL=C tr '\012-\377' '\001-\011' >$i.bin
done
"$leat" import cifar10 1.bin 2.bin whole >/dev/null || fail "cannot import"
wanted=$(digest whole)

# With room for so much, and then for more and more.
fills full/out
grep -q '[1-9][0-9]* records are kept; rerun the same command to resume' stderr || fail "$(cat stderr)"
[ -e full/out ] && fail "a target that is not complete"
for size in 31000 45000 60000 60040 75000; do
    room $size
    fills full/out
done
room 200000
"$leat" import cifar10 1.bin 2.bin full/out >stdout || fail "cannot resume"
grep -q 'of them by this run' stdout || fail "started over: $(cat stdout)"
[ "$(digest full/out)" = "$wanted" ] || fail "other records"
[ "$(echo full/*)" = full/out ] || fail "left behind: $(echo full/*)"

# No room for a second one: the first one stays.
cp full/out/data.mdb before
room 100000
fills full/out --force --restart
cmp full/out/data.mdb before || fail "--force changed what was there"
rm -rf full/out*

# Killed while it fills, at any moment.
kills=$((20 * ${LEAT_KILL_ROUNDS:-1}))
for i in $(seq $kills); do
    room 60000
    timeout --foreground -s KILL "0.$(printf %03d $((RANDOM % 300 + 1)))" \
        "$leat" import cifar10 1.bin 2.bin full/out >stdout 2>stderr
    [ -e full/out ] && fail "a target that is not complete"
    [ $((i % 5)) -eq 0 ] || continue
    room 200000
    "$leat" import cifar10 1.bin 2.bin full/out >stdout || fail "cannot resume"
    [ "$(digest full/out)" = "$wanted" ] || fail "other records after kills"
    rm -rf full/out*
done 2>/dev/null
echo "$kills kills on a full $(stat -f -c %T full)"

# Not even room to begin: nothing is left.
dd if=/dev/zero of=full/ballast bs=4096 2>/dev/null
"$leat" import cifar10 1.bin full/out >stdout 2>stderr && fail "no room, no error"
[ "$(wc -l <stderr)" -eq 1 ] || fail "not one line: $(cat stderr)"
[ "$(echo full/*)" = full/ballast ] || fail "left behind: $(echo full/*)"

# What is left of an import is read, to be gone on with, where no lock file can
# be made; so is a database.
rm full/ballast
"$leat" synth digits --count 100 full/db >/dev/null || fail "cannot synth"
[ -e full/db/lock.mdb ] && fail "synth leaves a lock file"
dd if=/dev/zero of=full/ballast bs=4096 2>/dev/null
LEAT_LOG_LEVEL=warning "$leat" info full/db >stdout 2>stderr ||
    fail "info: status $? on a full file system"
grep -q "100 records" stdout || fail "info: $(cat stdout)"
grep -q 'cannot be locked (No space left on device)' stderr ||
    fail "info: no warning: $(cat stderr)"
rm -rf full/*
room 20000
fills full/out
fills full/out
rm -rf full/out*

# Another file system, or a directory of this one, that is mounted at the target:
# nothing is made for nothing.
mkdir mounted other
for mount in '-t tmpfs leat-test' '--bind other'; do
    # shellcheck disable=SC2086
    mount $mount mounted || fail "cannot mount $mount"
    "$leat" synth digits --count 3 mounted --force >stdout 2>stderr
    status=$?
    umount mounted
    [ $status -eq 2 ] || fail "status $status on a mount point"
    grep -q 'mounted: is a mount point' stderr || fail "$(cat stderr)"
    [ ! -e mounted.leat-part ] || fail 'a refused target leaves its staging directory'
done

# Nor for a file, or a part of the database, that is mounted.
"$leat" synth digits --count 30 db >/dev/null || fail "cannot synth"
# mounted FILE COMMAND...: is refused before the work.
mounted() {
    local file=$1
    shift
    mount --bind "$file" "$file" || fail "cannot mount $file"
    "$leat" "$@" >stdout 2>stderr
    [ $? -eq 2 ] || fail "$*: not refused"
    umount "$file"
    grep -q "$file: is a mount point" stderr || fail "$*: $(cat stderr)"
    [ -z "$(find . -name '*.leat-*')" ] || fail "$* leaves $(find . -name '*.leat-*')"
}
"$leat" mean db mean.binaryproto >/dev/null || fail "cannot compute the mean"
"$leat" show db --out sheet.png >/dev/null || fail "cannot show"
"$leat" dump --reader db --batch 4 --out dumped --token token >/dev/null || fail "cannot dump"
mounted mean.binaryproto mean db mean.binaryproto --force
mounted sheet.png show db --out sheet.png --force
: >empty
mounted empty dump --reader db --batch 4 --out dumped --force --token empty
mounted token dump --reader db --batch 4 --out dumped --force --token token
mounted db/data.mdb synth digits --count 3 db --force
: >db/lock.mdb
mounted db/lock.mdb synth digits --count 3 db --force
rm db/lock.mdb
mounted dumped/label.npy dump --reader db --batch 4 --out dumped --force
mkdir cache.partial
mount -t tmpfs none cache.partial || fail "cannot mount cache.partial"
"$leat" cat 'range:3 | cache:dir=cache' >stdout 2>stderr
[ $? -eq 2 ] || fail "a mounted cache is not refused"
[ -z "$(ls cache.partial)" ] || fail "a refused cache leaves $(ls cache.partial)"
umount cache.partial
rmdir cache.partial
mkdir new.leat-part
mount --bind new.leat-part new.leat-part || fail "cannot mount new.leat-part"
"$leat" synth digits --count 3 new >stdout 2>stderr
[ $? -eq 2 ] || fail "a mounted staging directory is not refused"
umount new.leat-part
grep -q 'new.leat-part: is a mount point' stderr || fail "$(cat stderr)"

exit $failed
