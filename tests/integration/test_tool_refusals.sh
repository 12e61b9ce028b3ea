#!/usr/bin/env bash
# An output that cannot be made is refused before the input is read, here a pipe to
# which nobody writes: test_tool_refusals.sh TOOL. What is mounted needs a name space.
set -u
if [ -z "${LEAT_TEST_UNSHARED-}" ]; then
    for how in '-m' '-rm'; do
        if unshare $how sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
            LEAT_TEST_UNSHARED=1 exec unshare $how "$0" "$@"
        fi
    done
fi
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"
chmod 755 .

# refused TEXT ARGUMENT...: by that line alone, and nothing is made; as `user`.
user=()
refused() {
    local text=$1 before status
    shift
    before=$(find . ! -name out ! -name err | sort)
    exec 8<> <(:)
    "${user[@]}" timeout -k 5 30 "$leat" "$@" >out 2>err <&8
    status=$?
    exec 8>&-
    [ $status -eq 2 ] || fail "status $status: $*"
    [ "$(cat err)" = "leat: $text" ] || fail "$*: $(cat err)"
    [ "$(find . ! -name out ! -name err | sort)" = "$before" ] || fail "left behind: $*"
}

# Each of them reads its standard input.
imports=('images -' 'images - --shuffle' 'mnist /dev/stdin /dev/stdin' 'cifar10 /dev/stdin'
    'pipeline idx:/dev/stdin')
imports() {
    local text=$1 import
    shift
    for import in "${imports[@]}"; do
        # shellcheck disable=SC2086
        refused "$text" import $import "$@"
    done
}
"$leat" synth digits --count 4 db >/dev/null || fail 'cannot synth'
mkdir mine foreign.leat-part && echo text | tee mine/text >foreign.leat-part/text
ln -s nowhere/out dangling
long=$(printf '%0250d' 0)
imports 'nowhere/out: cannot be made in nowhere: No such file or directory' nowhere/out
imports 'nowhere/out: cannot be made in nowhere: No such file or directory' nowhere/out/
imports 'mine/text/out: cannot be made in mine/text: Not a directory' mine/text/out
imports "$long: cannot be made in .: File name too long" "$long"
imports 'mine: exists and is no database directory; choose another name' mine --force
imports 'mine/text: exists and is no database directory; choose another name' mine/text
imports 'dangling: exists and is no database directory; choose another name' dangling
imports 'db: exists already; --force would replace it' db
imports "the database to be made needs a path; this is ''" ''

# As another user, for root may all.
[ "$(id -u)" -ne 0 ] || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
mkdir -m 555 locked
mkdir -m 700 hidden
if "${user[@]}" "$leat" --version >/dev/null 2>&1; then
    imports 'locked/out: cannot be made in locked: Permission denied' locked/out
    [ "$(id -u)" -ne 0 ] ||
        imports 'hidden/out: cannot be made in hidden: Permission denied' hidden/out
else
    echo 'left out: directories without permission: no other user can run leat'
fi
user=()

if [ -n "${LEAT_TEST_UNSHARED-}" ]; then
    trap 'cd / && umount "$work"/*/ 2>/dev/null; rm -rf "$work"' EXIT
    mkdir fixed
    mount -t tmpfs -o ro none fixed || fail 'cannot mount'
    imports 'fixed/out: cannot be made in fixed: Read-only file system' fixed/out
    mount --bind db db || fail 'cannot mount db'
    imports 'db: is a mount point, to which no database can be moved; give a name inside it' \
        db --force
    umount db
    mkdir out.leat-part
    mount --bind out.leat-part out.leat-part || fail 'cannot mount out.leat-part'
    imports 'out.leat-part: is a mount point, which nothing can replace; give another name' out
    umount out.leat-part
    rmdir out.leat-part
else
    echo 'left out: what is mounted: a tmpfs cannot be mounted here'
fi

[ $failed -eq 0 ] && echo 'all refusals are early'
exit $failed
