#!/usr/bin/env bash
# What a process may read by its effective rights alone, as a service with
# capabilities, the tool reads; and who may do what with what it makes:
# test_tool_rights.sh TOOL. Mounts, in a name space of its own.
set -u
if [ -z "${LEAT_TEST_UNSHARED-}" ] && unshare -m true 2>/dev/null; then
    LEAT_TEST_UNSHARED=1 exec unshare -m "$0" "$@"
fi
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"
trap 'cd / && umount "$work/disk" 2>/dev/null; rm -rf "$work"' EXIT
chmod 755 .
mkdir private
echo 1,2 >private/list
"$leat" synth digits --count 3 private/db >/dev/null || fail 'cannot synth'
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
reading=("${nobody[@]}" --inh-caps=+dac_read_search --ambient-caps=+dac_read_search)
if ! { chown -R 1000 private && chmod 700 private &&
    "${nobody[@]}" "$leat" --version && "${reading[@]}" true; } >/dev/null 2>&1; then
    echo 'skipped: rights that are lent need root, and setpriv'
    exit 77
fi
"${nobody[@]}" "$leat" cat text:private/list >out 2>err &&
    fail 'anybody may read it'
for source in text:private/list private/db lmdb:private/db; do
    "${reading[@]}" "$leat" cat "$source" >out 2>err || fail "$source: $(cat err)"
    "$leat" cat "$source" >wanted
    cmp -s out wanted || fail "$source: $(cat out)"
done

# Where no thread can be started, one signal ends a read that waits for a pipe.
if [ -z "${TSAN_OPTIONS-}" ]; then
    mkdir -m 777 alone
    mkfifo -m 666 alone/lines
    exec 3<>alone/lines
    "${nobody[@]}" bash -c 'ulimit -u 1; exec env --default-signal "$@"' bash \
        "$leat" import pipeline text:alone/lines alone/db >out 2>err &
    pid=$!
    # The tool's handlers are there, not the shell's, or none is to come.
    caught() {
        [ /proc/$pid/exe -ef "$leat" ] &&
            grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$pid/status 2>/dev/null
    }
    SECONDS=0
    until caught || ! kill -0 $pid 2>/dev/null || [ $SECONDS -ge 20 ]; do sleep 0.01; done
    kill -TERM $pid
    SECONDS=0
    while kill -0 $pid 2>/dev/null && [ $SECONDS -lt 60 ]; do sleep 0.01; done
    kill -KILL $pid 2>/dev/null
    wait $pid
    status=$?
    [ $status -eq 143 ] || fail "status $status of a read without threads: $(cat err)"
    exec 3>&-
fi

# The files of a cache and a database are as those that any program makes in their
# directories, of which some are there, and empty.
lists=$(command -v python3) || echo 'left out: access control lists: no python3'
lists() {
    [ -z "$lists" ] || "$lists" - "$@" <<'END'
import os, struct, sys

names = ["system.posix_acl_access", "system.posix_acl_default"]
what, path = sys.argv[1:]
found = {n: os.getxattr(path, n).hex() for n in names if n in os.listxattr(path)}
if what == "show":
    print(found)
elif what == "take":
    for name in found:
        os.removexattr(path, name)
else:
    none = 0xFFFFFFFF
    named = (2, 7, 1234) if what == "give" else (8, 7, 4321)
    entries = [(1, 7, none), (4, 5, none), named, (16, 7, none), (32, 0, none)]
    if what == "deny":
        entries = [(1, 5, none), (4, 5, none), (32, 5, none)]
    value = b"".join(struct.pack("<HHI", *entry) for entry in sorted(entries))
    for name in names[:1] if what == "name" else names[what in ["give", "deny"] :]:
        os.setxattr(path, name, struct.pack("<I", 2) + value)
END
}
# The owner, the group, the permissions and the lists.
access() {
    stat -c '%u %g %a' "$1" && lists show "$1"
}
# shared|own DIRECTORY
give() {
    if [ "$1" = shared ]; then
        chgrp 4321 "$2" && chmod 2770 "$2" && lists give "$2"
    else
        chgrp 0 "$2" && chmod g-s,o-w "$2" && lists take "$2"
    fi
}
# expect_as WANTED FILE
expect_as() {
    [ "$(access "$2")" = "$(access "$1")" ] || fail "$2: $(access "$2"), not $(access "$1")"
}
umask 027
if ! { mkdir probe && lists give probe; } 2>/dev/null; then
    echo 'left out: access control lists: not on this file system'
    lists=
fi
for above in shared own; do
    mkdir $above
    give $above $above || fail "cannot give the access of $above"
    for kind in shared own new; do
        at=$above/$kind
        mkdir $at.wanted
        [ $kind = new ] || mkdir $at.cache $at.db
        [ $kind = new ] || for directory in "$at".*; do
            give $kind "$directory" || fail "cannot give the access of $directory"
        done
        : >$at.wanted/file
        "$leat" cat "text:private/list | cache:dir=$at.cache" >out 2>err || fail "$at: $(cat err)"
        "$leat" synth digits --count 3 $at.db --force >out 2>err || fail "$at: $(cat err)"
        for file in $at.cache/data $at.cache/index $at.db/data.mdb; do
            expect_as $at.wanted/file "$file"
        done
        expect_as $at.wanted $at.cache
        expect_as $at.wanted $at.db
    done
done
# A killed run leaves the directory that it was to make them in.
mkdir -p left.cache/left.cache.partial left.db/leat-part
"$leat" cat "text:private/list | cache:dir=left.cache" >out 2>err || fail "$(cat err)"
"$leat" synth digits --count 3 left.db --force >out 2>err || fail "$(cat err)"
[ "$(echo left.*/*)" = 'left.cache/data left.cache/index left.db/data.mdb' ] ||
    fail "left: $(echo left.*/*)"
# Another's files stay, and are found before the work.
mkdir -p left/left.partial/theirs left.new/leat-part/theirs
"$leat" cat "text:private/list | cache:dir=left" >out 2>err && fail 'removed what is not empty'
grep -q 'cannot remove left/left.partial' err || fail "$(cat err)"
"$leat" synth digits --count 3 left.new --force >out 2>err && fail 'removed what is not empty'
grep -q 'left.new/leat-part' err || fail "$(cat err)"
[ "$(find left.new* | sort | tail -1)" = left.new/leat-part/theirs ] || fail "left: $(find left.*)"

# As two users of a group, in a directory that both may write to.
umask 022
mkdir -m 777 group
chgrp 4321 group && chmod 2775 group
export mask=002
# shellcheck disable=SC2016
inside=(sh -c 'umask $mask && cd group && exec "$@"' -)
one=(setpriv --reuid=1001 --regid=4321 --clear-groups "${inside[@]}")
two=(setpriv --reuid=1002 --regid=4321 --clear-groups "${inside[@]}")
seq 300000 >group/lines
"${two[@]}" "$leat" synth digits --count 9 db >out || fail 'cannot synth'
# What a run has left that was stopped; at a file size limit.
leave() {
    # shellcheck disable=SC2016
    "${one[@]}" sh -c 'ulimit -f 10000 && "$0" import pipeline text:lines "$1" --force' "$leat" "${1-db}" >out 2>err
    grep -q 'are kept' err || fail "nothing is left: $(cat err)"
}
leave
"${two[@]}" "$leat" import pipeline text:lines db --force >out 2>err ||
    fail "another member cannot go on: $(cat err)"
[ "$(stat -c '%u %g %a' group/db/data.mdb)" = '1001 4321 664' ] || fail "$(stat group/db/data.mdb)"
# Less is enough; more is refused before the work.
leave
chmod 640 group/db.leat-part/database/data.mdb
"${two[@]}" "$leat" import pipeline text:lines db --force >out 2>err
grep -q 'which this user may not write to; --restart starts over$' err || fail "not writable: $(cat err)"
chmod 664 group/db.leat-part/database/data.mdb
chown 1002 group/db/data.mdb && chmod 660 group/db/data.mdb
"${two[@]}" "$leat" import pipeline text:lines db --force >out 2>err
grep -q -- "holds another user's unfinished import, .*; --restart starts over$" err || fail "$(cat err)"
"${two[@]}" "$leat" import pipeline text:lines db --force --restart >out 2>err || fail "$(cat err)"
[ "$(stat -c '%u %g %a' group/db/data.mdb)" = '1002 4321 660' ] || fail "$(stat group/db/data.mdb)"
chmod 666 group/db/data.mdb
leave
"${two[@]}" "$leat" import pipeline text:lines db --force >out 2>err || fail "less is not enough: $(cat err)"
# Nor is a directory that it cannot be moved out of.
leave
chmod 755 group/db.leat-part/database
"${two[@]}" "$leat" import pipeline text:lines db --force >out 2>err && fail 'moved out of another directory'
grep -q 'are kept' err && fail "not before the work: $(cat err)"
# What another has left of a cache is made anew.
for access in 2775 2770; do
    rm -rf group/cache group/cache.partial
    "${one[@]}" sh -c 'mkdir cache cache.partial && : >cache.partial/cache.lock'
    chmod $access group/cache
    "${two[@]}" "$leat" cat 'text:lines | cache:dir=cache' >out 2>err || fail "$(cat err)"
    [ "$(echo group/cache*/*)" = "group/cache/data group/cache/index" ] ||
        fail "a cache beside another's: $(cat err; find group)"
done
# So can they where all others may not look, by the group, whatever their umask
# and first group, or a list.
mkfifo group/unread
exec 3<>group/unread
for kind in listed 002 022 077 supplementary; do
    [ -n "$lists" ] || [ $kind != listed ] || continue
    case $kind in
        0*) mask=$kind ;;
        supplementary)
            one=(setpriv --reuid=1001 --regid=1001 --groups=4321 "${inside[@]}")
            two=(setpriv --reuid=1002 --regid=1002 --groups=4321 "${inside[@]}")
            ;;
    esac
    "${one[@]}" mkdir cache.$kind db.$kind
    chmod 2770 group/*.$kind
    [ $kind != supplementary ] || chmod g-s group/*.$kind
    [ $kind != listed ] || { lists share group/cache.$kind && lists share group/db.$kind; }
    "${two[@]}" "$leat" synth digits --count 9 db.$kind --force >out 2>err || fail "$(cat err)"
    chmod 660 group/db.$kind/data.mdb
    chgrp 4321 group/db.$kind/data.mdb
    for option in '' --restart; do
        leave db.$kind
        [ "$(stat -c '%g %a' group/db.$kind.leat-part/database/data.mdb)" = '4321 660' ] ||
            fail "$(stat group/db.$kind.leat-part/database/data.mdb)"
        setpriv --reuid=1003 --regid=1003 --clear-groups ls group/db.$kind.leat-part >out 2>&1 &&
            fail "all may look into $kind"
        # shellcheck disable=SC2086
        "${two[@]}" "$leat" import pipeline text:lines db.$kind --force $option >out 2>err ||
            fail "another member cannot go on in $kind: $(cat err)"
    done
    "${one[@]}" "$leat" cat "text:lines | cache:dir=cache.$kind" >&3 2>err &
    pid=$!
    SECONDS=0
    until [ -e group/cache.$kind.partial/data ] || [ $SECONDS -ge 60 ]; do sleep 0.01; done
    kill -KILL $pid
    wait $pid 2>/dev/null
    [ -e group/cache.$kind.partial/data ] || fail "nothing is left: $(cat err)"
    setpriv --reuid=1003 --regid=1003 --clear-groups ls group/cache.$kind.partial >out 2>&1 &&
        fail "all may look into $kind"
    "${two[@]}" "$leat" cat "text:lines | cache:dir=cache.$kind" >out 2>err || fail "$(cat err)"
    [ "$(echo group/cache.$kind*/*)" = "group/cache.$kind/data group/cache.$kind/index" ] ||
        fail "a cache beside another's in $kind: $(cat err; find group)"
done
# A cache that is new is its maker's by the umask: the other waits while it is made,
# and is told what to move away once its maker is gone.
mask=022
"${one[@]}" "$leat" cat 'text:lines | cache:dir=new' >&3 2>err &
pid=$!
SECONDS=0
until [ -e group/new.partial/data ] || [ $SECONDS -ge 60 ]; do sleep 0.01; done
"${two[@]}" "$leat" cat 'text:lines | cache:dir=new' >out 2>err && fail 'two make one cache'
grep -q 'new: another reader is making this cache; wait' err || fail "while it is made: $(cat err)"
kill -KILL $pid
wait $pid 2>/dev/null
for left in 'data index new.lock' new.lock ''; do
    for file in group/new.partial/*; do
        [[ " $left " = *" ${file##*/} "* ]] || rm -f "$file"
    done
    "${two[@]}" "$leat" cat 'text:lines | cache:dir=new' >out 2>err && fail "removed another's '$left'"
    grep -q 'new.partial: .* unfinished cache .*; move it away' err || fail "left '$left': $(cat err)"
done
"${two[@]}" mv new.partial moved
"${two[@]}" "$leat" cat 'text:lines | cache:dir=new' >out 2>err || fail "moved away: $(cat err)"
# A group that the user name space does not know is not told from the maker's own.
mapless=(setpriv --reuid=1001 --regid=1001 --clear-groups sh -c 'cd open && exec unshare -U "$@"' -)
mkdir open && chmod 777 open
if "${mapless[@]}" true 2>/dev/null; then
    mkdir open/hidden && chown 1001:4321 open/hidden && chmod 770 open/hidden
    "${mapless[@]}" "$leat" cat 'text:../group/lines | cache:dir=hidden' >&3 2>err &
    pid=$!
    SECONDS=0
    until [ -e open/hidden.partial/data ] || [ $SECONDS -ge 60 ]; do sleep 0.01; done
    [ "$(stat -c %a open/hidden.partial)" = 700 ] || fail "$(stat open/hidden.partial)"
    kill -KILL $pid
    wait $pid 2>/dev/null
else
    echo 'left out: user name spaces without names'
fi
exec 3>&-
# Without the setgid bit files have their makers' own groups, and another member goes
# on with them all the same, or the superuser; also where there is no data yet.
mask=002
superuser=(sh -c 'cd group && exec "$@"' -)
for access in 770 775 2770 listed; do
    [ -n "$lists" ] || [ $access != listed ] || continue
    for option in '' --restart superuser; do
        rm -rf open/db && mkdir open/db && chown 0:4321 open/db && chmod "${access/listed/770}" open/db
        [ $access != listed ] || lists name open/db
        leave ../open/db
        next=("${two[@]}")
        [ "$option" != superuser ] || next=("${superuser[@]}")
        # shellcheck disable=SC2086
        "${next[@]}" "$leat" import pipeline text:lines ../open/db --force ${option#superuser} >out 2>err ||
            fail "another cannot go on in $access $option: $(cat err; ls -lnR open/db*)"
        # The data of it have a group that their next maker is not in.
        lists take open/db/data.mdb
        chown 1002:1002 open/db/data.mdb && chmod 664 open/db/data.mdb
        leave ../open/db
        [ -n "$option" ] || {
            "${two[@]}" "$leat" import pipeline text:lines ../open/db --force >out 2>err &&
                fail "$access: written to by another"
            grep -q -- "db.leat-part: holds another user's unfinished import, .*; --restart starts over$" err ||
                fail "$access: $(cat err)"
            option=--restart
        }
        # shellcheck disable=SC2086
        "${next[@]}" "$leat" import pipeline text:lines ../open/db --force ${option#superuser} >out 2>err ||
            fail "another cannot replace in $access $option: $(cat err)"
    done
done
# Nobody is a user as any, and nogroup a group, where all are known.
if grep -qE ' 0 +4294967295$' /proc/self/uid_map; then
    members=("${one[@]}")
    for access in 65534:65534:700 0:65534:770; do
        one=(setpriv --reuid=65534 --regid=65534 --clear-groups "${inside[@]}")
        rm -rf open/db && mkdir open/db && chown "${access%:*}" open/db && chmod "${access##*:}" open/db
        leave ../open/db
        next=("${superuser[@]}")
        [[ $access = 65534:* ]] || next=(setpriv --reuid=1002 --regid=65534 --clear-groups "${inside[@]}")
        "${next[@]}" "$leat" import pipeline text:lines ../open/db --force >out 2>err ||
            fail "another cannot go on in one of $access: $(cat err; ls -lnR open/db*)"
    done
    one=("${members[@]}")
else
    echo 'left out: a user name space without all users'
fi
# The umask says who reads what is new, as in one with that bit.
mask=077
rm -rf open/db && mkdir open/db && chown 0:4321 open/db && chmod 770 open/db
"${one[@]}" "$leat" import pipeline text:lines ../open/db --force >out 2>err || fail "$(cat err)"
[ "$(stat -c '%g %a' open/db/data.mdb)" = '4321 600' ] || fail "$(stat open/db/data.mdb)"
# The group is inherited by those, too, who are no members of it.
for kind in cache db; do
    mkdir group/$kind.other && chgrp 4321 group/$kind.other && chmod 2777 group/$kind.other
done
chmod a=rwx,g-s group
other=(setpriv --reuid=1003 --regid=1003 --clear-groups sh -c 'cd group && exec "$@"' -)
"${other[@]}" "$leat" cat 'text:lines | cache:dir=cache.other' >out 2>err || fail "$(cat err)"
"${other[@]}" "$leat" synth digits --count 3 db.other --force >out 2>err || fail "$(cat err)"
for file in group/cache.other/data group/cache.other/index group/db.other/data.mdb; do
    [ "$(stat -c %g $file)" = 4321 ] || fail "$file: group $(stat -c %g $file)"
done
chmod 2775 group

# A target's group that is not the one that anybody's files get beside it shows its
# members.
mask=002
mkdir beside && chgrp 1234 beside && chmod 2777 beside
for option in '' --restart; do
    rm -rf beside/db && mkdir beside/db && chown 0:4321 beside/db && chmod 2770 beside/db
    leave ../beside/db
    # shellcheck disable=SC2086
    "${two[@]}" "$leat" import pipeline text:lines ../beside/db --force $option >out 2>err ||
        fail "another member cannot go on beside $option: $(cat err; ls -lnR beside)"
done
# A list for what is new may deny its owner to write.
if [ -n "$lists" ]; then
    "${one[@]}" "$leat" synth digits --count 3 denied >out || fail 'cannot synth'
    lists deny group/denied
    "${one[@]}" "$leat" import pipeline text:lines denied --force >out 2>err ||
        fail "denied to its owner: $(cat err; ls -lnR group/denied*)"
fi

# What one has made who may not write to the target is not gone on with; whoever
# has a file open reads what is written to it. Nor is it where there is no target.
mkdir -m 1777 planted && chmod 1777 planted
member=(setpriv --reuid=1001 --regid=1001 --clear-groups sh -c 'cd planted && exec "$@"' -)
planter=(setpriv --reuid=1003 --regid=1003 --clear-groups sh -c 'umask 0 && cd planted && exec "$@"' -)
cp group/lines planted/lines
# refuses_part NAME COMMAND...
refuses_part() {
    for option in '' --restart; do
        # shellcheck disable=SC2086
        "${@:2}" "$leat" import pipeline text:lines "$1" --force $option >out 2>err &&
            fail "$1: a planted directory is used"
        grep -q "$1.leat-part: .* user 1003, .*; remove it" err || fail "$1: $(cat err)"
    done
}
# shellcheck disable=SC2016
superuser=(sh -c 'cd planted && exec "$@"' -)
"$leat" synth digits --count 3 planted/db >out || fail 'cannot synth'
chmod 700 planted/db && chmod 600 planted/db/data.mdb
for name in db none; do
    part=planted/$name.leat-part
    "${planter[@]}" mkdir $name.leat-part
    refuses_part $name "${superuser[@]}"
    [ -z "$(ls "$part")" ] || fail "$name: written to: $(ls "$part")"
    rmdir "$part"
    # Its arguments are those of a run that was stopped.
    # shellcheck disable=SC2016
    "${superuser[@]}" sh -c 'ulimit -f 10000 && "$0" import pipeline text:lines "$1" --force' "$leat" $name >out 2>err
    mv "$part" planted/mine
    "${planter[@]}" sh -c "mkdir -p $name.leat-part/database && : >$name.leat-part/database/data.mdb"
    cp planted/mine/journal "$part" && chown 1003 "$part"/journal
    refuses_part $name "${superuser[@]}"
    [ -s "$part"/database/data.mdb ] && fail "$name: written to"
    # Nor is a file of such a one in an own directory.
    chown 0 "$part"
    for file in journal database database/data.mdb; do
        chown -R 0 "$part"
        chown 1003 "$part"/$file
        refuses_part $name "${superuser[@]}"
    done
    # Its own is.
    rm -r "$part"
    mv planted/mine "$part"
    "${superuser[@]}" "$leat" import pipeline text:lines $name --force >out 2>err || fail "$name: $(cat err)"
    [ ! -e "$part" ] || fail "$name: left: $(find planted)"
done
chown 1001 planted
"${planter[@]}" mkdir new.leat-part
refuses_part new "${member[@]}"
rmdir planted/new.leat-part
# Nor by the group that anybody's files get there, by what the target lets a group
# do, or in a sticky one; but by what it lets all do, and by its owner.
chgrp 4321 planted planted/db planted/db/data.mdb
for access in '03777 770 660 4321' '01777 707 600 1003' '01777 770 600 4321' '01777 1777 644 1003'; do
    # shellcheck disable=SC2086
    set -- $access
    chmod "$1" planted && chmod "$2" planted/db && chmod "$3" planted/db/data.mdb
    "${planter[@]}" mkdir db.leat-part
    chgrp "$4" planted/db.leat-part
    refuses_part db "${superuser[@]}"
    rmdir planted/db.leat-part
done
for access in '777 644 1003' '770 640 4321' '700 600 1003'; do
    # shellcheck disable=SC2086
    set -- $access
    chmod 00777 planted && chmod "$1" planted/db && chmod "$2" planted/db/data.mdb
    [ "$1" != 700 ] || chown -R 1003 planted/db
    "${planter[@]}" mkdir db.leat-part
    chgrp "$3" planted/db.leat-part
    "${superuser[@]}" "$leat" import pipeline text:lines db --force >out 2>err || fail "$access: $(cat err)"
done
if [ -n "$lists" ]; then
    # The list lets the group read, and another one write.
    chown -R 0 planted/db && chmod 770 planted/db && lists share planted/db
    for group in 4321 1234; do
        mkdir -m 777 planted/db.leat-part && chown 1003:$group planted/db.leat-part
        chgrp 1234 planted/db
        [ $group = 4321 ] || {
            refuses_part db "${superuser[@]}"
            rmdir planted/db.leat-part
            continue
        }
        chmod 644 planted/db/data.mdb
        "${superuser[@]}" "$leat" import pipeline text:lines db --force >out 2>err || fail "listed: $(cat err)"
    done
fi

# A list that names users whom a name space does not know is inherited whole.
alone=(setpriv --reuid=1001 --regid=1001 --clear-groups unshare -Ur)
if [ -n "$lists" ] && "${alone[@]}" true 2>/dev/null; then
    mkdir unknown.cache unknown.db unknown.wanted
    for directory in unknown.*; do
        lists give "$directory" && chown 1001:1001 "$directory"
    done
    chmod 777 .
    echo 1,2 >open.list
    "${alone[@]}" sh -c ': >unknown.wanted/file'
    "${alone[@]}" "$leat" cat 'text:open.list | cache:dir=unknown.cache' >out 2>err || fail "$(cat err)"
    "${alone[@]}" "$leat" synth digits --count 3 unknown.db --force >out 2>err || fail "$(cat err)"
    for file in unknown.cache/data unknown.cache/index unknown.db/data.mdb; do
        expect_as unknown.wanted/file $file
    done
else
    echo 'left out: user name spaces'
fi

# So are the flags of files, as of databases on btrfs, which are not to be copied on
# writes; also where a database gives way.
PATH=$PATH:/sbin:/usr/sbin
mkdir disk
truncate -s 200M disk.img
if [ -n "${LEAT_TEST_UNSHARED-}" ] && { mkfs.btrfs -q disk.img && mount -o loop disk.img disk &&
    mkdir disk/cache disk/db && chattr +C disk/cache disk/db; } >/dev/null 2>&1; then
    "$leat" cat 'text:group/lines | cache:dir=disk/cache' >out 2>err || fail "$(cat err)"
    for i in 1 2; do
        "$leat" synth digits --count 2000 disk/db --force >out 2>err || fail "$(cat err)"
        [ "$(lsattr disk/*/* | grep -c 'C.* ')" -eq 3 ] || fail "$i: $(lsattr disk/*/*)"
    done
    umount disk
else
    echo 'left out: flags of files: no btrfs can be made or mounted here'
fi

# Without /proc, too, a cache has the access of the directory that it replaces.
libraries=$(ldd "$leat" | sed -n 's|.* => \(/.*\)/libleat.*|\1|p')
if [ -n "${LEAT_TEST_UNSHARED-}" ] && mount -t tmpfs none /proc 2>/dev/null; then
    mkdir -m 700 own.cache
    chown 1003 own.cache
    # A sanitizer's tool needs /proc itself.
    if LD_LIBRARY_PATH=$libraries "$leat" --version >out 2>err; then
        LD_LIBRARY_PATH=$libraries "$leat" cat 'text:group/lines | cache:dir=own.cache' >out 2>err ||
            fail "$(cat err)"
        [ "$(stat -c '%u %a' own.cache)" = '1003 700' ] || fail "$(stat own.cache)"
        [ -s own.cache/index ] || fail "no cache without /proc: $(cat err)"
    else
        echo 'left out: no /proc, which a sanitizer needs'
    fi
    umount /proc
else
    echo 'left out: no /proc'
fi

[ $failed -eq 0 ] && echo 'the effective rights count'
exit $failed
