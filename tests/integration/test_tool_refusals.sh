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
# What is in the place of the directory in which it is made.
ln -s mine linked.leat-part && : >filled.leat-part && mkfifo piped.leat-part
imports 'linked.leat-part: Not a directory' linked
imports 'filled.leat-part: Not a directory' filled
imports 'piped.leat-part: Not a directory' piped
imports 'foreign.leat-part: holds files that leat did not write; remove it' foreign

# A root in which no image can be.
for path in /dev/null piped.leat-part filled.leat-part; do
    refused "$path: Not a directory" import images - new --root $path
done
refused 'nowhere: No such file or directory' import images - new --root nowhere

# The file of a mean or a sheet, before the database is opened.
for path in mine linked.leat-part dangling piped.leat-part; do
    refused "$path: exists and is not a regular file" mean nowhere $path --force
    refused "$path: exists and is not a regular file" show nowhere --out $path --force
done
# A name beside it would be too long.
: >"$long"
refused "$long: File name too long" mean nowhere "$long"
refused "$long: File name too long" show nowhere --out "$long"

# dumps TEXT OUT TOKEN OPTION...
dumps() {
    refused "$1" dump --reader 'text:- | columns:x=float32' --top x --batch 2 --out "$2" \
        --token "$3" "${@:4}"
}
mkfifo pipe
: >empty
mkdir written foreign && printf text >foreign/text.npy
printf '1\n2\n3\n4\n' >numbers
"$leat" dump --reader 'text:numbers | columns:x=float32' --top x --batch 2 --out written \
    --token written.at >out || fail 'cannot dump'
mkdir locked.dump && cp written/x.npy locked.dump && chmod 555 locked.dump
# A directory that cannot be made, or takes no dump.
dumps 'mine/text: Not a directory' mine/text/out new.at
dumps 'mine/text: Not a directory' mine/text new.at
dumps 'mine/text: Not a directory' mine/text/ new.at
dumps 'pipe: Not a directory' pipe new.at
dumps 'dangling: Not a directory' dangling/ new.at
dumps 'new/../out: No such file or directory' new/../out new.at
dumps "${long}1234567: File name too long" "${long}1234567" new.at
dumps 'mine: holds text; --force would put the dump beside it' mine new.at
dumps 'written: holds x.npy already; --force would replace the files of that dump' written new.at
dumps "db: is a database's directory; a dump needs another one" db new.at
dumps 'foreign: holds text.npy, which leat dump did not write; remove it first' foreign new.at --force
# A token that cannot be written.
dumps 'nowhere/at: No such file or directory' new nowhere/at
dumps 'nowhere/at: No such file or directory' written nowhere/at --force
dumps 'new.at/: No such file or directory' new new.at/
dumps 'mine/text/at: Not a directory' new mine/text/at
dumps 'empty/: Not a directory' new empty/
dumps 'mine: exists and is not a regular file' new mine
dumps 'pipe: exists and is not a regular file' new pipe
dumps "${long}1234567: File name too long" new "${long}1234567"
dumps "${long:6}: File name too long" new "${long:6}"
# A token to go on from, which is read before the pipe.
dumps 'nowhere: No such file or directory' new new.at --at nowhere
dumps 'mine/text: not a resume token: too short' new new.at --at mine/text
dumps 'pipe: expected a regular file, found a named pipe' new new.at --at pipe
# The directory that is made for the dump is no token's, as is found before the
# batches, which have no end.
for path in new ./new "$PWD/new"; do
    timeout -k 5 30 "$leat" dump --reader 'range:9 | repeat' \
        --top value=value,dtype=INT64 --batch 2 --batches 1000000000 --out new --token "$path" \
        >out 2>err
    status=$?
    [ $status -eq 2 ] || fail "a token in place of the directory: status $status"
    grep -q 'new: exists and is not a regular file' err ||
        fail "a token in place of the directory: $(cat err)"
    [ ! -e new ] || fail 'the directory is left'
done
# One in a directory that is made for the dump.
for path in 'below/new below/at' './below/new below/at' 'below/new below/new/at' \
    "below/new $PWD/below/./at" "below/new below/${long:7}"; do
    # shellcheck disable=SC2086
    set -- $path
    "$leat" dump --reader 'text:numbers | columns:x=float32' --top x --batch 2 --out "$1" \
        --token "$2" >out 2>err || fail "$path: $(cat err)"
    [ -s "$2" ] || fail "$2 is not there"
    rm -r below
done

# As another user, for root may all.
[ "$(id -u)" -ne 0 ] || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
mkdir -m 777 open
mkdir locked
cp -r db locked/db
mkdir -m 777 locked/{begun,db}.leat-part locked/cache.partial
[ "$(id -u)" -ne 0 ] || chown 65534 locked/begun.leat-part
chmod 777 locked/db
chmod 555 locked
mkdir -m 700 hidden
if "${user[@]}" "$leat" --version >/dev/null 2>&1; then
    imports 'locked/out: cannot be made in locked: Permission denied' locked/out
    # Also where the directory in which it is made is there.
    for path in locked/out locked/begun; do
        text="$path: cannot be made in locked: Permission denied"
        imports "$text" $path
        imports "$text" $path --force
        refused "$text" synth digits --count 4 $path
    done
    refused 'cannot make the directory locked/cache.partial: Permission denied' \
        cat 'text:numbers | cache:dir=locked/cache'
    # A database whose files give way stays in its directory.
    "${user[@]}" "$leat" synth digits --count 3 locked/db --force >out 2>err ||
        fail "no database in the place of another: $(cat err)"
    [ "$("$leat" cat locked/db | wc -l)" -eq 3 ] || fail 'the database is not replaced'
    dumps 'locked/out: Permission denied' locked/out/more open/at
    dumps 'locked: Permission denied' locked open/at
    dumps 'locked.dump: Permission denied' locked.dump open/at --force
    dumps 'locked/at: Permission denied' new locked/at
    [ "$(id -u)" -ne 0 ] ||
        imports 'hidden/out: cannot be made in hidden: Permission denied' hidden/out
else
    echo 'left out: directories without permission: no other user can run leat'
fi
user=()
chmod 755 locked

# What chattr has fixed.
fixed='is immutable or append-only (chattr), so that nothing can replace it; give another name'
cp written.at token.at
cp -r db adds
if chattr +i token.at 2>/dev/null; then
    dumps "token.at: $fixed" new token.at
    chattr -i token.at
    for flag in i a; do
        chattr +$flag db/data.mdb
        imports "db/data.mdb: $fixed" db --force
        chattr -$flag db/data.mdb
    done
    mkdir -p held/{begun.leat-part,cache.partial}
    chattr +i held
    imports 'held/begun: cannot be made in held: Operation not permitted' held/begun
    refused 'cannot make the directory held/cache.partial: Operation not permitted' \
        cat 'text:numbers | cache:dir=held/cache'
    chattr -i held
    # Nothing is renamed or removed in a directory to which files are only added.
    adds='is append-only (chattr), so that nothing in it can be renamed, replaced or removed; give another directory'
    cp -r written added && cp written.at added
    mkdir added/{out,new}.leat-part added/cache.partial
    chattr +a adds added
    imports "adds: $adds" adds --force
    imports "added: $adds" added/made
    imports "added: $adds" added/new
    refused "added: $adds" synth digits --count 4 added/made
    refused "added: $adds" synth digits --count 4 added/out
    dumps "added: $adds" added new.at --force
    dumps "added: $adds" new added/at
    dumps "added: $adds" new added/written.at
    for path in added/made added/cache; do
        refused "added: $adds" cat "text:numbers | cache:dir=$path"
    done
    # A new file is written without a name and gets one.
    "$leat" mean db added/mean >out 2>err || fail "no mean beside others: $(cat err)"
    refused "added: $adds" mean db added/mean --force
    chattr -a adds added
    [ -s added/mean ] || fail 'the mean is not there'
else
    echo 'left out: files that chattr fixes'
fi

if [ -n "${LEAT_TEST_UNSHARED-}" ]; then
    trap 'cd / && umount "$work"/*/ 2>/dev/null; rm -rf "$work"' EXIT
    mkdir fixed
    mount -t tmpfs -o ro none fixed || fail 'cannot mount'
    imports 'fixed/out: cannot be made in fixed: Read-only file system' fixed/out
    dumps 'fixed/out: Read-only file system' fixed/out new.at
    dumps 'fixed: Read-only file system' fixed new.at
    dumps 'fixed/at: Read-only file system' new fixed/at
    mount --bind empty empty || fail 'cannot mount empty'
    dumps 'empty: is a mount point, which nothing can replace; give another name' new empty
    dumps 'empty: Not a directory' empty new.at
    umount empty
    mount --bind written/x.npy written/x.npy || fail 'cannot mount a file'
    dumps 'written/x.npy: is a mount point, which nothing can replace; give another name' \
        written new.at --force
    umount written/x.npy
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
