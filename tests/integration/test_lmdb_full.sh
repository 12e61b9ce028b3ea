#!/usr/bin/env bash
# Readers of databases on file systems that are full, whose lock files have no
# blocks, or blocks that a store copies: test_lmdb_full.sh TOOL. Mounts images of
# such file systems, in a name space of its own.
set -u
if [ -z "${LEAT_TEST_UNSHARED-}" ] && unshare -m true 2>/dev/null; then
    LEAT_TEST_UNSHARED=1 exec unshare -m "$0" "$@"
fi
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"
trap 'cd / && umount "$work/full" 2>/dev/null; rm -rf "$work"' EXIT
mkdir full
"$leat" synth digits --count 2000 db >/dev/null || fail 'cannot synth'
checks=0

# image SIZE MKFS ARGUMENT...: is mounted, with a database; 1: it cannot be.
image() {
    local size=$1
    shift
    PATH=$PATH:/sbin:/usr/sbin
    rm -f disk.img
    truncate -s "$size" disk.img
    if ! { "$@" disk.img && mount -o loop disk.img full; } >/dev/null 2>&1; then
        echo "skipped: a full file system of $1, which cannot be made or mounted here"
        return 1
    fi
    checks=$((checks + 1))
    cp -r db full/db
}

# To the last block: smaller and smaller writes, each until there is no room.
fill() {
    local size
    for size in 1M 64k 4k 1k; do
        dd if=/dev/zero of=full/ballast bs=$size oflag=append conv=notrunc,fsync 2>/dev/null
    done
    sync -f full
}

# reads WHAT [WARNING]: all records, with or without it.
reads() {
    LEAT_LOG_LEVEL=warning "$leat" info full/db >stdout 2>stderr
    local status=$?
    [ $status -eq 0 ] || fail "$1: status $status: $(cat stderr)"
    grep -q '2000 records' stdout || fail "$1: $(cat stdout)"
    [ $# -eq 1 ] || grep -q "$2" stderr || fail "$1: no warning: $(cat stderr)"
    [ $# -gt 1 ] || [ ! -s stderr ] || fail "$1: $(cat stderr)"
}

full='cannot be locked (No space left on device)'
for type in ext2 ext3; do
    image 8M "mkfs.$type" -q || continue
    : >full/db/lock.mdb
    fill
    reads "$type, an empty lock file" "$full"
    truncate -s 8192 full/db/lock.mdb
    reads "$type, a lock file without blocks" "$full"
    rm full/ballast
    reads "$type with room"
    fill
    reads "$type, a lock file that has its blocks"
    umount full
done

# Copied on write, so that blocks that are there are of no use, but for those of a
# lock file that leat makes.
if image 112M mkfs.btrfs -q --mixed; then
    rm -f full/db/lock.mdb
    reads 'btrfs with room'
    sync -f full
    fill
    reads 'a full btrfs'
    rm full/ballast
    cat full/db/lock.mdb >full/lock
    mv full/lock full/db/lock.mdb
    reads 'btrfs with the lock file of others'
    sync -f full
    fill
    reads 'a full btrfs with the lock file of others' "$full"
    # Full while it is read: the slot is freed at the end, if there is room.
    rm full/ballast
    mkfifo held
    "$leat" cat lmdb:full/db >held 2>stderr &
    reader=$!
    exec 3<held
    read -r first <&3
    fill
    cat <&3 >rest
    exec 3<&-
    wait $reader || fail "a btrfs that fills up: status $?: $(cat stderr)"
    echo "$first" >>rest
    [ "$(wc -l <rest)" -eq 2000 ] ||
        fail "a btrfs that fills up: $(wc -l <rest) records"
    umount full
fi
if image 320M mkfs.xfs -q; then
    reads 'xfs with room'
    if cp --reflink=always full/db/lock.mdb full/copy 2>/dev/null; then
        fill
        reads 'a full xfs' "$full"
    fi
    umount full
fi

[ $checks -gt 0 ] || exit 77
[ $failed -eq 0 ] && echo "$checks full file systems are read"
exit $failed
