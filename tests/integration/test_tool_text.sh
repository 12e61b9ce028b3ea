#!/usr/bin/env bash
# Paths of any bytes print as plain text, on stdout and stderr, and as what they are
# in JSON: test_tool_text.sh TOOL
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
failed=0
commands=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

# An escape sequence, a line break, a tab, DEL, U+009B, U+061C, U+200E, U+202E,
# U+2028, U+2066, no UTF-8; and a letter that stays.
odd=$(printf 'odd\033[31m\nx\ty\177\302\233\330\234\342\200\216\342\200\256\342\200\250\342\201\246\377\303\244end')
plain='odd\x1b[31m\x0ax\x09y\x7f\xc2\x9b\xd8\x9c\xe2\x80\x8e\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6\xff'$(printf '\303\244')end
# A file name without the byte that JSON cannot hold, and how JSON writes it.
text=$(printf 'odd\033[31m\nx\ty\177\302\233\330\234\342\200\216\342\200\256\342\200\250\342\201\246\303\244end')
json='odd\u001B[31m\nx\ty\u007F\u009B\u061C\u200E\u202E\u2028\u2066'$(printf '\303\244')end
raw='\x1b|\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xff|x\ty|odd\['

# run STATUS ARGUMENT...: no such character is printed.
run() {
    local status=$1 found
    shift
    commands=$((commands + 1))
    timeout 60 "$leat" "$@" >out 2>err </dev/null
    found=$?
    check "leat $1 ${2-}: status $found, not $status: $(cat -v err)" \
        test "$found" -eq "$status"
    if grep -qaP "$raw" out err; then
        echo "failed: leat $1 prints: $(cat -v out err | head -n 3)"
        failed=1
    fi
}

# names [FILE]: the odd path is there, in its plain form.
names() {
    check "no plain path in: $(cat -v "${1-out}")" grep -qaF "$plain" "${1-out}"
}

run 0 synth digits --count 12 --seed 3 "$odd"
names
run 0 info "$odd"
names
run 0 verify "$odd"
names
run 0 show "$odd" --out "$odd.png"
names
run 0 mean "$odd" "$odd.mean"
names
run 0 dump --reader "lmdb:$odd" --batch 4 --batches 3 --phase TEST --out "$odd.dump"
names

run 0 synth digits --count 0 "$odd.none"
run 1 compare "$odd" "$odd.none"
names
run 0 synth digits --count 11 --seed 3 "$odd.fewer"
run 1 compare "$odd" "$odd.fewer"
names
printf '\000\000\010\003\000\000\000\001\000\000\000\001\000\000\000\001a' >images
printf '\000\000\010\001\000\000\000\001\000' >labels
run 0 import mnist images labels "$odd.made"
names
run 0 import pipeline "lmdb:$odd.made" "$odd.copy"
names
cp -r "$odd" other
for command in info verify 'show --out x.png' cat 'compare other'; do
    # shellcheck disable=SC2086
    case $command in
    cat) run 2 cat "lmdb:$odd.gone" ;;
    *) run 2 $command "$odd.gone" ;;
    esac
    names err
done
run 64 "$odd"
names err
run 64 info "--$odd"
names err
run 64 info --all=3 "$odd"

# A field's name that a file has: of a dump.
mv "$odd.dump/data.npy" "$odd.dump/$odd.npy"
cp -r "$odd.dump" dumped
mv "dumped/$odd.npy" "dumped/$odd.other.npy"
run 1 compare "$odd.dump" dumped
names
run 1 compare --json "$odd.dump" dumped

# Bad records and their lines.
cp -r "$odd" "$odd.bad"
at=$(grep -abo 00000003 "$odd.bad/data.mdb" | tail -n 1 | cut -d : -f 1)
printf '\002' | dd of="$odd.bad/data.mdb" bs=1 seek=$((at + 9)) conv=notrunc status=none
run 1 info "$odd.bad"
names
run 1 verify "$odd.bad"
names
run 1 cat "lmdb:$odd.bad"
names
run 1 cat --json "lmdb:$odd.bad"
run 1 verify --json "$odd.bad"
run 1 info --json "$odd.bad"

# JSON reads back as the path itself; a byte that it cannot hold is \xNN.
cp -r "$odd" "$text"
run 0 show "$text" --out "$text.png" --json
check "the path in JSON: $(cat -v out)" grep -qaF "\"out\": \"$json.png\"" out
run 0 dump --reader "lmdb:$text" --batch 4 --out "$text.dump" --json
check "paths in JSON: $(cat -v out)" grep -qaF "\"$json.dump/label.npy\"" out
run 0 show "$text" --out "$odd.png" --json
check "a byte in JSON: $(cat -v out)" \
    grep -qaF '\u2066\\xff'"$(printf '\303\244')"'end.png"' out
if command -v python3 >/dev/null; then
    run 0 show "$text" --out "$text.png" --json
    TEXT=$text python3 -c 'import json, os
with open("out", "rb") as file:
    assert json.load(file)["out"] == os.environb[b"TEXT"].decode() + ".png"' ||
        check 'JSON reads back' false
fi

# The log is no other way round.
LEAT_LOG_LEVEL=debug timeout 60 "$leat" dump --reader "lmdb:$odd" --batch 4 \
    --out logged >out 2>err
check "the log prints: $(cat -v err | head -n 3)" test -z "$(grep -aP "$raw" err)"

[ $failed -eq 0 ] && echo "$commands commands print plain text"
exit $failed
