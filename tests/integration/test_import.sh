#!/bin/sh
# leat import mnist: Caffe's very records, and damaged IDX files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "failed: $*" >&2
    exit 1
}

# Expects exit status $1, one line on stderr that holds $2, and no database.
refuses() {
    expected=$1 text=$2
    shift 2
    status=0
    "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
    [ "$status" -eq "$expected" ] || fail "status $status of: $*"
    [ "$(wc -l <"$work/stderr")" -eq 1 ] || fail "not one line of: $*"
    grep -q "$text" "$work/stderr" || fail "'$text' is missing: $(cat "$work/stderr")"
    [ "$(echo "$work"/made*)" = "$work/made*" ] || fail "left behind by: $*"
}

# Three images of 2 x 3 pixels and their labels.
cd "$work"
pixels='abcdefghijklmnopqr'
printf '\000\000\010\003\000\000\000\003\000\000\000\002\000\000\000\003%s' $pixels >images
printf '\000\000\010\001\000\000\000\003\000\001\011' >labels
"$leat" import mnist images labels plain >stdout
grep -q '3 records' stdout || fail "no count: $(cat stdout)"
gzip -k images labels
"$leat" import mnist images.gz labels zipped >/dev/null
cmp plain/data.mdb zipped/data.mdb || fail "gzipped files give other records"
"$leat" import mnist images labels.gz one --range 1:2 --json >json
grep -q '"records": 1,' json || fail "--range: $(cat json)"

refuses 2 'knows mnist' "$leat" import cifar10 images made
refuses 2 'IMAGES LABELS OUT' "$leat" import mnist images made
refuses 2 'expected A:B' "$leat" import mnist images labels made --range 2:1
refuses 1 'only 3 images' "$leat" import mnist images labels made --range 0:4
refuses 1 'No such file' "$leat" import mnist nothing labels made
refuses 1 'expected magic number 2051, found 2049' "$leat" import mnist labels images made
head -c 10 images >part
refuses 1 'header' "$leat" import mnist part labels made
head -c 30 images >part
refuses 1 'image 2 of 3' "$leat" import mnist part labels made
head -c 10 labels >part
refuses 1 'label 2 of 3' "$leat" import mnist images part made
head -c 30 images.gz >part
refuses 1 'gzip' "$leat" import mnist part labels made
{ cat images; echo; } >long
refuses 1 'goes on' "$leat" import mnist long labels made
printf '\000\000\010\001\000\000\000\002\000\001' >two
refuses 1 '3 images, but' "$leat" import mnist images two made
printf '\000\000\010\003\000\000\000\003\377\377\377\377\377\377\377\377%s' $pixels >absurd
refuses 1 'are no images' "$leat" import mnist absurd labels made
printf '\000\000\010\003\000\000\000\003\000\000\000\000\000\000\000\003' >absurd
refuses 1 'are no images' "$leat" import mnist absurd labels made
: >nothing
refuses 1 'header' "$leat" import mnist nothing labels made
refuses 1 'irectory' "$leat" import mnist . labels made

# The real files give what Caffe's convert_mnist_data made of them.
shared=${LEAT_SHARED_DATA:-$here/../../../shared/data}
if [ ! -d "$shared/idx" ] || ! command -v mdb_dump >/dev/null; then
    echo "skipped: comparison with Caffe's records (needs shared data, mdb_dump)"
    exit 0
fi
"$leat" import mnist "$shared/idx/t10k-images-idx3-ubyte.gz" \
    "$shared/idx/t10k-labels-idx1-ubyte.gz" mnist >/dev/null
mkdir caffe
cp "$shared/lmdb/mnist_test_lmdb/data.mdb" caffe/
mdb_dump caffe | sed 1,/HEADER=END/d >expected
mdb_dump mnist | sed 1,/HEADER=END/d >found
cmp expected found || fail "other records than Caffe's"
