#!/usr/bin/env bash
# leat info and mean on small databases of known contents:
# test_tool_reports.sh TOOL
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

hex() {
    od -An -v -tx1 "$@" | tr -d ' \n'
}

# Three images of 2 x 3 pixels, labels 0, 1, 9; pixels a..f, g..l, m..r.
printf '\000\000\010\003\000\000\000\003\000\000\000\002\000\000\000\003%s' \
    abcdefghijklmnopqr >images
printf '\000\000\010\001\000\000\000\003\000\001\011' >labels
"$leat" import mnist images labels three >/dev/null || exit 1

# info
"$leat" info --json three >json
for text in '"records": 3' '"shapes": {"1x2x3": 3}' '"encodings": {"raw": 3}' \
    '"labels": {"0": 1, "1": 1, "9": 1}' '"bad": 0' \
    '"keys": \["00000000", "00000002"\]'; do
    check "info --json lacks $text" grep -q "$text" json
done
"$leat" info three >text
check 'info lacks the records' grep -q '3 records' text
"$leat" synth noise --count 12 --shape 3,32,48 --jpeg 80 jpegs >/dev/null
"$leat" info jpegs --json >json
check 'the shape of JPEGs' grep -q '"shapes": {"3x32x48": 12}' json
check 'the encoding of JPEGs' grep -q '"encodings": {"jpeg": 12}' json
"$leat" synth digits --count 0 none >/dev/null
check 'info of an empty database' "$leat" info none >/dev/null

# mean: a..f + 6 each, which are the pixels g..l of the second image.
"$leat" mean three three.mean >text
check 'the mean of the channel' grep -qx 'mean_value: 105.5' text
check 'the mean file' test "$(hex three.mean)" = \
    "08011001180220032a180000ce420000d0420000d2420000d4420000d6420000d842"
! "$leat" mean none none.mean 2>stderr
check 'the mean of nothing' grep -q '^leat: .*no records' stderr

exit "$failed"
