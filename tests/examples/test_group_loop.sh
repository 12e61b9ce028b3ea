#!/usr/bin/env bash
# The loop over several devices: whatever their number, the same samples, and the
# same place to go on: test_group_loop.sh TOOL GROUP_LOOP
set -u

tool=$1 group_loop=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
    echo "$1"
    failed=1
}

"$tool" synth noise --count 50 --shape 1,4,4 --seed 3 lmdb >/dev/null || exit 1
# 12 batches, on 1, 2 and 3 devices.
"$group_loop" lmdb:lmdb 12 - cpu >one || fail 'one device'
"$group_loop" lmdb:lmdb 6 - cpu cpu >two || fail 'two devices'
"$group_loop" lmdb:lmdb 4 - cpu cpu cpu >three || fail 'three devices'
cmp one two || fail 'two devices differ from one'
cmp one three || fail 'three devices differ from one'
grep -q '^sum of labels [0-9.]*$' one || fail "no sum: $(<one)"
# Half of it on two, the rest on three, or on one.
"$group_loop" lmdb:lmdb 3 - cpu cpu >half || fail 'half of it'
token=$(sed -n 's/^next //p' half)
for rest in '2 cpu cpu cpu' '6 cpu'; do
    read -ra words <<<"$rest"
    "$group_loop" lmdb:lmdb "${words[0]}" "$token" "${words[@]:1}" >rest ||
        fail "$rest did not go on"
    [ "$(sed -n 's/^next //p' rest)" = "$(sed -n 's/^next //p' one)" ] ||
        fail "$rest ends elsewhere"
    awk '/^sum/ { sum[FILENAME] = $4 }
        END { exit !(sum["half"] + sum["rest"] == sum["one"]) }' \
        half rest one || fail "$rest saw other samples"
done
# What is wrong is said once, and ends all threads.
"$group_loop" lmdb:lmdb 3 - cpu nowhere >out 2>err && fail 'an unknown device'
grep -q 'there is no device "nowhere"' err || fail "$(<err)"
"$group_loop" lmdb:lmdb 3 >out 2>err
[ $? -eq 2 ] || fail 'no usage'
exit $failed
