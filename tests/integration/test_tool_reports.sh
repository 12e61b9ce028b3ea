#!/usr/bin/env bash
# leat info, mean, dump and bench on small databases of known contents:
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

# Of more records than --help says it reads some.
most=$("$leat" info --help | tr '\n' ' ' | grep -oE 'more than [0-9]+' | grep -oE '[0-9]+')
"$leat" synth noise --count "$most" --shape 1,1,1 most >/dev/null || failed=1
"$leat" synth noise --count $((most + 1)) --shape 1,1,1 more >/dev/null || failed=1
check "all of $most" grep -q '"sampled": 0' <("$leat" info --json most)
check 'some of one more' grep -q '"sampled": [1-9]' <("$leat" info --json more)
rm -r most more

# dump: floats of a..r, then around the end.
"$leat" dump --reader lmdb:three --batch 2 --phase TEST --batches 2 --out out \
    --json >json
check 'dump --json' grep -q '"files": \["out/data.npy", "out/label.npy"\]' json
check "the labels' header" grep -aqF \
    "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }" out/label.npy
check "the images' header" grep -aqF "'shape': (4, 1, 2, 3), }" out/data.npy
check 'the labels' test "$(hex -j256 out/label.npy)" = \
    000000000000803f0000104100000000
check 'the first pixels' test "$(hex -j256 -N8 out/data.npy)" = 0000c2420000c442
"$leat" dump --reader lmdb:three --batch 1 --out one >out.text || failed=1
check 'one batch is one' grep -qx 'one/data.npy: 1 batch' out.text
check 'only these files' test "$(echo out/*)" = 'out/data.npy out/label.npy'

# A drawn seed is told, and gives the same again; without choices there is none.
check 'no seed without choices' test "$(grep -c seed out.text)" -eq 0
"$leat" dump --reader lmdb:jpegs --batch 4 --batches 3 --crop 24 --mirror \
    --out drawn >text || failed=1
seed=$(sed -n 's/^seed: //p' text)
check "a seed on its own line, not '$seed'" test "$seed" -gt 0
"$leat" dump --reader lmdb:jpegs --batch 4 --batches 3 --crop 24 --mirror \
    --seed "$seed" --out again >/dev/null || failed=1
check 'the same dump by its seed' diff -r drawn again

# A dump goes where nothing is, or with --force into the place of an earlier one.
refuses() {
    local text=$1
    shift
    "$leat" dump --reader lmdb:three --batch 1 "$@" >text 2>stderr
    check "status of a dump that says '$text'" test $? -eq 2
    check "'$text', not $(cat stderr)" grep -qF -- "$text" stderr
}
mkdir -p full other/sub numpy records
"$leat" dump --reader lmdb:three --batch 1 --batches 3 --top-type uint8 --out full >/dev/null
cp full/label.npy full/data.0000.npy
cp full/label.npy full/gone.npy
head -c 300 full/data.npy >full/data.npy.leat-abc234
: >full/label.npy.leat-abc234
echo mine >full/notes
cp -r full before
refuses 'full: holds ' --out full
check 'a refusal removes nothing' diff -r before full
refuses 'no reader "nonesuch"' --reader nonesuch:x --out full --force
check 'a dump that failed left the earlier one' diff -r before full
"$leat" dump --reader lmdb:three --batch 1 --out full --force >/dev/null || failed=1
check 'another dump in its place' test "$(echo full/*)" = 'full/data.npy full/label.npy full/notes'
check 'which compares' "$leat" compare three full >/dev/null
refuses 'other: holds sub; --force would put the dump beside it' --out other
"$leat" dump --reader lmdb:three --batch 1 --out other --force >/dev/null || failed=1
check 'beside it' test "$(echo other/*)" = 'other/data.npy other/label.npy other/sub'
printf '\223NUMPY\1\0\166\0' >numpy/data.npy
# NumPy's header for records of nine fields is as long as a dump's.
fields=$(printf "('field_%d', '<f4'), " 0 1 2 3 4 5 6 7 8)
printf "\\223NUMPY\\1\\0\\366\\0%-245s\\n%036d" \
    "{'descr': [${fields%, }], 'fortran_order': False, 'shape': (1,), }" 0 >records/table.npy
for force in '' --force; do
    # shellcheck disable=SC2086
    refuses 'numpy: holds data.npy, which leat dump did not write; remove it first' \
        $force --out numpy
    # shellcheck disable=SC2086
    refuses 'records: holds table.npy, which leat dump did not write; remove it first' \
        $force --out records
    # shellcheck disable=SC2086
    refuses 'three: is a database' $force --out three
done
check "somebody's file is as it was" test "$(wc -c <numpy/data.npy)" -eq 10
check 'and the records' test "$(wc -c <records/table.npy)" -eq 292

# A name like that of a temporary file does not make it one of a dump's.
mkdir -p mine directory/x.npy.leat-backup
echo precious >mine/x.npy.leat-backup
cp -r three database
cp mine/x.npy.leat-backup database
refuses 'mine: holds x.npy.leat-backup; --force would put the dump beside it' --out mine
refuses 'directory: holds x.npy.leat-backup; --force would put' --out directory
refuses 'database: is a database' --out database --force
for out in mine directory; do
    "$leat" dump --reader lmdb:three --batch 1 --out $out --force >/dev/null || failed=1
    check 'and the dump is beside it' test -e $out/label.npy -a -e $out/x.npy.leat-backup
done
check 'precious' test "$(cat mine/x.npy.leat-backup)" = "$(cat database/x.npy.leat-backup)"

# The size of a batch is the net file's, where it has one.
cat >net.prototxt <<'TEXT'
layer {
  name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "three" batch_size: 2 backend: LMDB }
}
TEXT
net() {
    "$leat" dump --net net.prototxt --phase TEST --out netted --force "$@" >text 2>stderr
}
check 'the same --batch' net --batch 2
check 'a batch of two' grep -aq "'shape': (2, 1, 2, 3)" netted/data.npy
! net --batch 3 || failed=1
check 'another --batch' grep -qF -- '--batch 3: net.prototxt sets the size of a batch' stderr
sed -i 's/batch_size: 2//' net.prototxt
check 'a --batch that the file leaves open' net --batch 3
check 'a batch of three' grep -aq "'shape': (3, 1, 2, 3)" netted/data.npy

# Names that are no UTF-8, or hold quotes, leave JSON whole: a byte that JSON cannot
# hold is \xNN.
odd=$(printf 'odd\377"')
"$leat" dump --reader lmdb:three --batch 1 --out "$odd" --json >json
check 'odd files of a dump' grep -qF \
    '"files": ["odd\\xff\"/data.npy", "odd\\xff\"/label.npy"]' json
"$leat" show three --out "$odd.png" --json >json
check 'an odd sheet' grep -qF '{"out": "odd\\xff\".png", "records": 3,' json

# Directories are made as deep as asked for.
for out in deep/er/ deep/er/est "$PWD//deep/other"; do
    "$leat" dump --reader lmdb:three --batch 2 --phase TEST --batches 2 \
        --out "$out" >text || failed=1
    check "a dump into $out" cmp -s out/data.npy "$out/data.npy"
done

# Shapes that change give a file for each batch; bad records end a dump.
if command -v mdb_load >/dev/null; then
    records() {
        printf 'VERSION=3\nformat=bytevalue\ntype=btree\nmapsize=1048576\n'
        printf 'HEADER=END\n'
        printf ' %s\n' "$@"
        printf 'DATA=END\n'
    }
    small=080110011801220105 large=0801100118022202060728 bad=08011001180a220105
    mkdir mixed broken
    records 30 "${small}2803" 31 "${small}2804" 32 "${large}05" | mdb_load mixed
    "$leat" dump --reader lmdb:mixed --batch 1 --batches 4 --out apart >/dev/null
    check 'a file for each batch' test "$(cd apart && echo data*)" = \
        'data.0000.npy data.0001.npy data.0002.npy data.0003.npy'
    check 'one file of labels' test "$(cd apart && echo label*)" = label.npy
    check 'the second batch' test "$(hex -j256 apart/data.0001.npy)" = 0000a040
    check 'the third batch' test "$(hex -j256 apart/data.0002.npy)" = \
        0000c0400000e040
    "$leat" info --json mixed >json
    check 'two shapes' grep -q '"shapes": {"1x1x1": 2, "1x1x2": 1}' json
    ! "$leat" mean mixed mixed.mean 2>stderr
    check 'a mean of two shapes' grep -q '^leat: mixed: record 2, key 2: .*a mean is of images of one shape' stderr

    records 30 "${small}2803" 31 "$bad" 32 "${small}2803" | mdb_load broken
    "$leat" info broken >text 2>stderr
    check 'status of info with a bad record' test $? -eq 1
    check 'the bad record on stdout' grep -q 'bad records: 1' text
    check 'and in one line on stderr' test "$(wc -l <stderr)" -eq 1
    check 'and by number and key' grep -q '^  broken: record 1, key 1: ' text
    cp -r broken "$odd.db"
    ! "$leat" cat "lmdb:$odd.db" --json >json 2>stderr
    check 'a bad record of an odd database' grep -qF \
        '{"record": 1, "bad": "odd\\xff\".db: record 1, key 1: ' json
    check 'and the one after it' grep -q '^{"record": 2, "key": "2", ' json
    ! "$leat" compare "$odd.db" "$odd.db" --json >json
    check 'in a comparison' grep -qF '"reason": "bad in A: odd\\xff\".db: record 1' json
    ! "$leat" compare "$odd.db" "$odd.db" >text
    check 'and on paper' grep -qF 'record 1, key 1: bad in A: odd\xff".db: record 1' text
    check 'without numbers that nobody has' test "$(grep -c ' in A, ' text)" -eq 0
    # Keys are text in JSON as on paper, and no two of them are the same text.
    mkdir keyed
    records c3a90a7d5c "${small}2803" c3a95c786666ff00 "${small}2804" | mdb_load keyed
    json_keys='"é\n}\\", "é\\x5cxff\\xff\\x00"'
    "$leat" cat --json keyed >json
    check 'keys of cat' test "$(grep -oE '"é[^,]*"' json | paste -sd , | sed 's/,/, /')" = "$json_keys"
    "$leat" info --json keyed >json
    check 'and of info' grep -qF "\"keys\": [$json_keys]" json
    "$leat" cat keyed >text
    check 'and on paper' grep -qF "$(printf '0\té\\x0a}\\\tdata=')" text
    check 'and on paper' grep -qF "$(printf '1\té\\x5cxff\\xff\\x00\tdata=')" text
    "$leat" info keyed >text
    check 'and of info' grep -qxF 'keys: é\x0a}\ to é\x5cxff\xff\x00' text
    ! "$leat" compare --keys keyed mixed >text
    check 'and of a comparison' grep -qF 'record 0, key é\x0a}\: the keys are é\x0a}\ and 0' text

    mkdir foreign
    records 30 "${small}2803" 31 2204deadbeef28013801 | mdb_load foreign
    ! "$leat" info foreign >text 2>stderr
    check 'an image that is none, too' grep -q '^  record 1, key 1: ' text
    check 'and on stderr' grep -q 'the first: record 1, key 1: ' stderr
    ! "$leat" mean foreign foreign.mean 2>stderr
    check 'the key in the line of mean' grep -q '^leat: foreign: record 1, key 1: ' stderr
    ! "$leat" dump --reader lmdb:broken --batch 1 --batches 3 --out left 2>stderr
    check 'the bad record named' grep -q '^leat: broken.*1' stderr
    check 'nothing left of a dump' test ! -e left
else
    echo 'skipped: databases of several shapes (needs mdb_load)'
fi

# bench
"$leat" bench layer --reader lmdb:jpegs --batch 4 --crop 24 --mirror \
    --seconds 0.1 --limit --json >json || failed=1
for key in first_batch_ms images_per_s payload_bytes_per_s batches seconds \
    wait_us p50 p99 max limit_images_per_s limit_share stages name threads busy \
    blocked_empty blocked_full blocked_lock helped bound_by verdict slices memory pinned device \
    host mapped cpu_seconds peak_rss; do
    check "bench layer --json lacks $key" grep -q "\"$key\": " json
done
check 'one line of JSON' test "$(wc -l <json)" -eq 1
check 'the most memory in use' grep -qE '"memory_peak": {"pinned": 0, .*"host": [1-9]' json
# What the log reports of long waits takes no memory; with a sanitizer nothing counts.
"$leat" synth noise --count 200 --shape 3,128,128 --jpeg 80 slow >/dev/null
LD_PRELOAD=${LEAT_ALLOCATION_COUNT-} LEAT_LOG_LEVEL=info \
    "$leat" bench layer --reader lmdb:slow --batch 64 --workers 1 --seconds 2.5 --json >json 2>stderr || failed=1
if grep -q 'waited for data' stderr; then
    [ -z "${LEAT_ALLOCATION_COUNT-}" ] ||
        check 'waits are reported without an allocation' grep -q '"steady_allocations": 0,' json
else
    echo 'left out: allocations of the log, for nothing was waited for'
fi
LEAT_LOG_LEVEL=info "$leat" dump --reader lmdb:jpegs --batch 4 --batches 1 --crop 24 \
    --out told >/dev/null 2>stderr
check 'memory told by kind at setup' grep -qE 'memory reserved for batches, and of it in use, in bytes: pinned 0, 0; pageable 0, 0; device 0, 0; host ([0-9]+), \1; files mapped [1-9]' stderr
"$leat" bench limit --reader lmdb:three --batch 2 --seconds 0.1 >text || failed=1
check 'bench limit' grep -qE '^limit +[0-9.]+( [kMG])? images/s' text
! "$leat" bench layer --reader lmdb:none --batch 4 2>stderr
check 'a bench of nothing' test "$(wc -l <stderr)" -eq 1

exit "$failed"
