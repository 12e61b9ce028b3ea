#!/usr/bin/env bash
# The readers of docs/adding-a-reader.md, read by a data layer:
# test_own_reader.sh OWN_READER
set -u

own_reader=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
    echo "$1"
    failed=1
}

# expect STATUS OUT LINE PIPELINE: the exit status, what is printed, and the one
# line on stderr, which has LINE in it; none where that is empty.
expect() {
    local status=$1 out=$2 line=$3 found
    "$own_reader" "$4" >out 2>err
    found=$?
    [ "$found" -eq "$status" ] || fail "$4: exit $found, expected $status: $(<err)"
    [ "$(<out)" = "$out" ] || fail "$4: expected '$out', found '$(<out)'"
    if [ -z "$line" ]; then
        [ ! -s err ] || fail "$4: $(<err)"
    elif ! grep -qF -- "$line" err || [ "$(wc -l <err)" -ne 1 ]; then
        fail "$4: expected one line with '$line', found: $(<err)"
    fi
}

# Ten records of 1 x 2 x 2: label i, pixels 10 i, 10 i + 1 and so on.
for i in 0 1 2 3 4 5 6 7 8 9; do
    for value in $i $((10 * i)) $((10 * i + 1)) $((10 * i + 2)) $((10 * i + 3)); do
        printf '%b' "\\0$(printf '%o' "$value")"
    done
done >records
shape=channels=1,height=2,width=2

expect 0 '0:0 1:10 2:20 3:30 
4:40 5:50 6:60 7:70 
8:80 9:90 0:0 1:10 ' '' "cifar:records,$shape"
expect 0 '0:0 3:30 6:60 9:90 
0:0 3:30 6:60 9:90 
0:0 3:30 6:60 9:90 ' '' "cifar:records,$shape | every:step=3"
expect 0 '0:0 6:60 0:0 6:60 
0:0 6:60 0:0 6:60 
0:0 6:60 0:0 6:60 ' '' "cifar:records,$shape | every:step=3 | every:step=2"
expect 0 '0:0 1:10 2:20 3:30 
bad: records: record 5: no such label
bad: records: record 8: no such label' '' "cifar:records,$shape,classes=5"

expect 1 '' 'nowhere: No such file' 'cifar:nowhere'
expect 1 '' '50 bytes are not a number of records of 4' \
    'cifar:records,channels=1,height=1,width=3'
expect 1 '' "1:24: cifar: channels: expected 1 to 4096, found '0'" \
    'cifar:records,channels=0'
expect 1 '' 'has no argument "depth"' 'cifar:records,depth=3'
expect 1 '' 'there is no reader "other"' 'cifar:records | other'
expect 1 '' 'reads 1 to 1 other readers' 'every:step=2'
: >empty
expect 1 '' 'there are no samples in it' "cifar:empty,$shape"

[ "$failed" -eq 0 ] && echo "two readers of one's own are read by name"
exit "$failed"
