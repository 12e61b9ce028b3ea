#!/usr/bin/env bash
# The examples as their users run them: test_train_digits.sh TOOL TRAIN_DIGITS
# FIRST_BATCH NET
set -u

tool=$1 train_digits=$2 first_batch=$3 net=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
    echo "$1"
    failed=1
}

# expect STATUS LINE COMMAND...: the exit status, and just one line on stderr,
# which has LINE in it; no line where that is empty.
expect() {
    local status=$1 line=$2
    shift 2
    "$@" >out 2>err
    local found=$?
    [ "$found" -eq "$status" ] || fail "$*: exit $found, expected $status: $(<err)"
    if [ -z "$line" ]; then
        [ ! -s err ] || fail "$*: $(<err)"
    elif ! grep -qF -- "$line" err || [ "$(wc -l <err)" -ne 1 ]; then
        fail "$*: expected one line with '$line', found: $(<err)"
    fi
}

# What training printed, without what depends on the machine's speed.
steady() {
    grep -v '^waited\|^images/s\|^verdict' out | sed 's/, [0-9]* images\/s$//'
}

mkdir -p build/demo
expect 0 '' "$tool" synth digits --count 2000 --seed 1 build/demo/digits_train_lmdb
expect 0 '' "$tool" synth digits --count 250 --seed 2 build/demo/digits_test_lmdb

expect 0 '' "$train_digits" --iterations 80 "$net"
grep -q '^2000 records to train on, 250 to test; 80 iterations of 64 images$' out ||
    fail "the counts of records are wrong: $(<out)"
grep -q '^images/s: [0-9]*$' out || fail "no images/s: $(<out)"
grep -q '^waited for data: [0-9.]* %$' out || fail "no share of waiting: $(<out)"
grep -qE '^verdict: .*bound by .*forward waits [0-9]+ %, helps' out || fail "no verdict: $(<out)"
accuracy=$(sed -n 's/^accuracy: \([0-9]*\)\.[0-9] %$/\1/p' out)
[ "${accuracy:-0}" -ge 80 ] || fail "accuracy after 80 iterations: $(<out)"

expect 0 '' "$train_digits" --iterations 10 "$net"
steady >first
expect 0 '' "$train_digits" --iterations 10 "$net"
steady | cmp -s first - || fail "two runs differ: $(<first) $(<out)"
expect 0 '' "$train_digits" --iterations 10 --seed 2 "$net"
steady | cmp -s first - && fail "another seed changes nothing"

# The bar on a terminal is the tool's, fits from 40 columns on, and goes.
if script --version >/dev/null 2>&1; then
    for columns in 40 55 80; do
        printf -v words '%q ' "$train_digits" --iterations 30 "$net"
        script -qec "stty cols $columns && exec $words" shown </dev/null >/dev/null 2>&1 ||
            fail "training on a terminal: status $?"
        tr '\r' '\n' <shown | grep '^\[[#.]' | sed 's/\x1b\[K.*//' >bars
        grep -qE '^\[#*\.*\] +[0-9]+ %  loss [0-9.]+' bars || fail "no bar: $(cat -v shown)"
        awk -v most=$columns 'length >= most { exit 1 }' bars ||
            fail "a bar too wide for $columns columns: $(<bars)"
        grep -qP '\r\x1b\[Kverdict:' shown || fail "a bar is left: $(cat -v shown)"
    done
    grep -qE 'images/s  +[0-9]+ s left$' bars || fail "80 columns have room: $(<bars)"
else
    echo "left out: the bar, for there is no script (bsdutils)"
fi

expect 0 '' "$first_batch" "$net"
[ "$(grep -c '^64 images, 50176 values, first label [0-9]$' out)" -eq 3 ] ||
    fail "the first three batches: $(<out)"

# What README says comes after the demo, word for word, on what the demo leaves.
mkdir -p build/examples examples
ln -s "$(realpath "$tool")" build/leat
ln -s "$(realpath "$first_batch")" build/examples/first_batch
cp "$net" examples/
sed -n '/^Afterwards these/,/^Each script works/s/^    //p' "$(dirname "$net")/../README.md" |
    grep '^build/' >next
[ "$(wc -l <next)" -eq 2 ] || fail "README has no two commands after the demo: $(<next)"
while read -r command; do
    # shellcheck disable=SC2086
    expect 0 '' $command
done <next
grep -qx '64 images, 50176 values, first label [0-9]' out || fail "README's first_batch: $(<out)"
[ -s sheet.png ] || fail "README's show makes no sheet"

expect 1 nowhere.prototxt "$train_digits" nowhere.prototxt
expect 1 nowhere.prototxt "$first_batch" nowhere.prototxt
expect 0 '' "$tool" synth digits --count 20 --shape 1,32,32 other
sed 's,build/demo/digits_test_lmdb,other,' "$net" >other.prototxt
expect 1 'differ in shape' "$train_digits" other.prototxt

# One image of MNIST's format, whose label is 12.
{
    printf '\0\0\10\3\0\0\0\1\0\0\0\34\0\0\0\34'
    head -c 784 /dev/zero
} >images
printf '\0\0\10\1\0\0\0\1\14' >labels
expect 0 '' "$tool" import mnist images labels dozen
sed 's,build/demo/digits_train_lmdb,dozen,' "$net" >dozen.prototxt
expect 1 'dozen: record 0: label 12, expected 0 to 9' "$train_digits" dozen.prototxt

# Interrupted once training has begun, which the first line says.
coproc "$train_digits" --iterations 100000 "$net" 2>err
pid=$COPROC_PID
read -r _ <&"${COPROC[0]}"
kill -INT "$pid"
wait "$pid"
found=$?
[ "$found" -eq 130 ] || fail "interrupted: exit $found: $(<err)"
[ "$(<err)" = 'train_digits: interrupted' ] || fail "interrupted: $(<err)"

rm -r build/demo/digits_test_lmdb
expect 1 digits_test_lmdb "$train_digits" "$net"

"$train_digits" 2>/dev/null
[ $? -eq 2 ] || fail "no net file is not called wrong usage"
"$train_digits" --iterations 0 "$net" 2>/dev/null
[ $? -eq 2 ] || fail "no iterations are not called wrong usage"

exit "$failed"
