#!/bin/sh
# leat import mnist, cifar10, pipeline: Caffe's very records, and damaged files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
roomy=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
[ "${roomy:-0}" -gt 800000 ] && TMPDIR=${TMPDIR-/dev/shm}
export TMPDIR="${TMPDIR-/tmp}"
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

# A label from 128 on makes its record a byte longer than the first one is, which
# with 14 pixels fills what malloc gave.
printf '\000\000\010\003\000\000\000\002\000\000\000\002\000\000\000\007%s' \
    abcdefghijklmnopqrstuvwxyzAB >images14
printf '\000\000\010\001\000\000\000\002\003\310' >labels200
"$leat" import mnist images14 labels200 wide >/dev/null || fail "a label of 200"
"$leat" info --json wide | grep -q '"labels": {"3": 1, "200": 1}' || fail "labels: $("$leat" info wide)"

refuses 64 'unknown command' "$leat" import cifar5 images made
refuses 64 'arguments are missing' "$leat" import mnist images made
refuses 64 'expected A:B' "$leat" import mnist images labels made --range 2:1
refuses 2 'only 3 images' "$leat" import mnist images labels made --range 0:4
refuses 2 'No such file' "$leat" import mnist nothing labels made
refuses 2 'expected magic number 2051, found 2049' "$leat" import mnist labels images made
head -c 10 images >part
refuses 2 'header' "$leat" import mnist part labels made
head -c 30 images >part
refuses 2 'image 2 of the 3' "$leat" import mnist part labels made
head -c 10 labels >part
refuses 2 'label 2 of the 3' "$leat" import mnist images part made
head -c 30 images.gz >part
refuses 2 'part: its gzip data ends early' "$leat" import mnist part labels made

# More members than one are one file; what follows them and is none is ignored.
{
    head -c 20 images | gzip
    tail -c +21 images | gzip
    echo padding
} >members
"$leat" import mnist members labels joined >/dev/null || fail "two gzip members"
cmp plain/data.mdb joined/data.mdb || fail "two gzip members give other records"
mkfifo pipe
cat images.gz >pipe &
"$leat" import mnist pipe labels piped >/dev/null || fail "a gzipped pipe"
cmp plain/data.mdb piped/data.mdb || fail "a gzipped pipe gives other records"

# A pipe that has come in the place of the journal is not waited for.
"$leat" import mnist pipe labels late >/dev/null 2>stderr &
exec 8>pipe
head -c 1000 images.gz >&8
until [ -s late.leat-part/journal ]; do sleep 0.01; done
rm late.leat-part/journal
mkfifo late.leat-part/journal
tail -c +1001 images.gz >&8
exec 8>&-
timeout 60 tail --pid=$! -f /dev/null || {
    kill $!
    fail "an import waits for a pipe in the place of its journal"
}
wait $! && fail "an import without a journal"
grep -q late.leat-part stderr || fail "the line of one without: $(cat stderr)"
rm -r late.leat-part

# What is damaged in its bytes or its sum; and a file that unpacks to far more than
# its header promises is not unpacked.
{ head -c -8 images.gz && printf '\1\2\3\4\5\6\7\10'; } >part
refuses 2 'part: damaged gzip data: incorrect data check' "$leat" import mnist part labels made
printf '\037\213\010\377\0\0\0\0\0\0' >part
refuses 2 'part: .*gzip data' "$leat" import mnist part labels made
{ cat labels && head -c 1000000000 /dev/zero; } | gzip -1 >bomb.gz
# shellcheck disable=SC2016
refuses 2 'continues past the' sh -c 'ulimit -t 10; exec "$@"' - \
    "$leat" import mnist images bomb.gz made
rm bomb.gz
{ cat images; echo; } >long
refuses 2 'continues past' "$leat" import mnist long labels made
printf '\000\000\010\001\000\000\000\002\000\001' >two
refuses 2 '3 images, but' "$leat" import mnist images two made
printf '\000\000\010\003\000\000\000\003\377\377\377\377\377\377\377\377%s' $pixels >absurd
refuses 2 'are no images' "$leat" import mnist absurd labels made
printf '\000\000\010\003\000\000\000\003\000\000\000\000\000\000\000\003' >absurd
refuses 2 'are no images' "$leat" import mnist absurd labels made
: >nothing
refuses 2 'header' "$leat" import mnist nothing labels made
refuses 2 'irectory' "$leat" import mnist . labels made
refuses 2 'needs a path' "$leat" import mnist images labels ''

# CIFAR-10: a byte of label and three planes of 32 x 32; keys of five digits run on
# over all batches.
head -c 30730000 /dev/zero | tr '\000' '\003' >threes.bin
head -c 30730000 /dev/zero | tr '\000' '\011' | gzip -1 >nines.bin.gz
"$leat" import cifar10 threes.bin nines.bin.gz cifar --json >json
grep -q '"records": 20000, "added": 20000,' json || fail "$(cat json)"
"$leat" info cifar >text
for line in 'keys: 00000 to 19999' '  3x32x32      20000' '  3            10000' \
    '  9            10000'; do
    grep -qx "$line" text || fail "cifar10: no '$line' in: $(cat text)"
done
if command -v mdb_dump >/dev/null; then
    # channels 3, height 32, width 32, data of 3072 bytes, label 3.
    mdb_dump cifar | sed 1,/HEADER=END/d | sed -n 2p | grep -qE \
        '^ 080310201820228018(03){3072}2803$' || fail "another Datum than Caffe's"
    [ "$(mdb_dump cifar | sed 1,/HEADER=END/d | sed -n 1p)" = ' 3030303030' ] ||
        fail "another key than Caffe's"
fi
head -c 3072999 threes.bin >part
refuses 2 'ends in record 999 of the 10000' "$leat" import cifar10 part made
refuses 2 'ends in record 999' "$leat" import cifar10 threes.bin part made
head -c 30726927 threes.bin >part
refuses 2 'ends before record 9999' "$leat" import cifar10 part made
{ cat threes.bin && echo; } >part
refuses 2 'continues past the 10000 records' "$leat" import cifar10 part made
head -c 20000 nines.bin.gz >part
refuses 2 'gzip data ends early' "$leat" import cifar10 part made
printf '\200\002}q\001(U' >part
refuses 2 "not a batch of CIFAR-10's binary version" "$leat" import cifar10 part made
refuses 2 'No such file' "$leat" import cifar10 threes.bin absent made

# Files of another number of records, by its name or as many as there are; stopped
# by a full disk, the same command resumes, and another count is another import.
head -c 15365000 threes.bin >half
head -c 9219 threes.bin >three
"$leat" import cifar10 --count 5000 half half counted >/dev/null || fail "--count 5000"
"$leat" import cifar10 --count 0 half half half three threes.bin counted --force --json >json
grep -q '"records": 25003, "added": 25003,' json || fail "--count 0: $(cat json)"
"$leat" info counted | grep -qx 'keys: 00000 to 25002' || fail "keys of --count"
refuses 2 'continues past the 4999 records' "$leat" import cifar10 --count 4999 half made
refuses 2 'ends before record 5000 of the 10000 .*--count' "$leat" import cifar10 half made
head -c 9000 threes.bin >part
refuses 2 'ends in record 2, expected records of 3073 bytes' \
    "$leat" import cifar10 --count 0 part made
# Where nothing counts the records, what follows gzip's may have been some; zeros pad.
gzip -k three
{ cat three.gz && head -c 512 /dev/zero; } >padded
"$leat" import cifar10 --count 0 padded three padded_lmdb --json >json
grep -q '"records": 6,' json || fail "gzip with padding: $(cat json)"
{ cat three.gz && printf '\036' && tail -c +2 three.gz; } >torn
refuses 2 'torn: damaged gzip data: after record 2 other bytes follow its end' \
    "$leat" import cifar10 --count 0 torn made
{ cat padded three.gz; } >torn
refuses 2 'after record 2 other bytes follow' "$leat" import cifar10 --count 0 torn made
{ cat three.gz && printf '\037'; } >torn
refuses 2 'after record 2 other bytes follow' "$leat" import cifar10 --count 0 three torn made
refuses 64 'keys of 5 digits end at 100000' "$leat" import cifar10 --count 50001 half half made
refuses 64 'count' "$leat" import cifar10 --count -1 half made
status=0
(
    ulimit -f 12000
    "$leat" import cifar10 --count 0 half half stopped 2>stderr
) || status=$?
[ "$status" -eq 2 ] || fail "status $status of an import to a full disk"
grep -q 'rerun the same command to resume' stderr || fail "a full disk: $(cat stderr)"
"$leat" import cifar10 --count 5000 half half stopped 2>stderr &&
    fail "another count resumed"
"$leat" import cifar10 --count 0 half half stopped --json >json
grep -q '"records": 10000,' json || fail "resumed: $(cat json)"
grep -q '"added": 10000,' json && fail "started over: $(cat json)"
"$leat" import cifar10 --count 5000 half half whole >/dev/null
"$leat" compare whole stopped >/dev/null || fail "other records after a stop"
refuses 2 'irectory' "$leat" import cifar10 . made
refuses 2 'irectory' "$leat" import cifar10 threes.bin . made
refuses 64 'arguments are missing' "$leat" import cifar10 made

# What readers give, under new keys: all kinds of data, in one pass.
"$leat" import pipeline lmdb:plain again >/dev/null
cmp plain/data.mdb again/data.mdb || fail "a pipeline gives other records"
"$leat" import pipeline lmdb:cifar renamed >/dev/null
"$leat" info renamed | grep -qx 'keys: 00000000 to 00019999' || fail "the keys of a pipeline"
"$leat" synth noise --count 5 --shape 3,24,32 --jpeg 80 jpegs >/dev/null
"$leat" import pipeline lmdb:jpegs again --force >/dev/null
cmp jpegs/data.mdb again/data.mdb || fail "a pipeline gives other images"
"$leat" synth digits --count 0 none >/dev/null
"$leat" import pipeline lmdb:none empty | grep -q ' 0 records' || fail "a pipeline of nothing"
refuses 2 'nowhere' "$leat" import pipeline lmdb:nowhere made
refuses 2 'nonesuch' "$leat" import pipeline nonesuch:x made
refuses 2 'has no end' timeout 10 "$leat" import pipeline 'lmdb:plain | repeat' made
refuses 2 'has no end' timeout 10 "$leat" import pipeline \
    'lmdb:plain | where:label=0.. | repeat' made
refuses 64 'arguments are missing' "$leat" import pipeline lmdb:plain

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
