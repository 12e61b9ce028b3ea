#!/usr/bin/env bash
# leat verify, show, compare and cat on databases with damage planted at known
# places: test_tool_inspect.sh TOOL
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

# run STATUS ARGUMENT...: the tool's output goes to out and err.
run() {
    local status=$1
    shift
    timeout 120 "$leat" "$@" >out 2>err </dev/null
    local found=$?
    [ "$found" -eq "$status" ] && return
    echo "failed: leat $*: status $found, not $status"
    head -n 3 out err
    failed=1
}

has() {
    check "no '$1' in: $(head -c 600 out)" grep -qE -- "$1" out
}

# Where the key of a record begins in a file, in the last of its copies.
key_at() {
    grep -abo "$(printf '%08d' "$2")" "$1/data.mdb" | tail -n 1 | cut -d : -f 1
}

# put FILE OFFSET BYTES: overwrites bytes, written as printf writes them.
put() {
    printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# The records that verify says are bad, in its order.
bad_records() {
    sed 's/, "warned_records".*//' out | grep -oE '"record": [0-9]+' | grep -oE '[0-9]+' | tr '\n' ' '
}

"$leat" synth digits --count 1000 --seed 3 good >/dev/null || exit 1

# verify: nothing bad, in whole, empty and encoded databases.
run 0 verify good
check 'the summary' test "$(cat out)" = \
    'good: 1000 of 1000 records are good, 100 %'
check 'nothing on stderr' test ! -s err
"$leat" synth digits --count 0 none >/dev/null
run 0 verify none
has '^none: 0 of 0 records are good, 100 %$'
"$leat" synth noise --count 40 --shape 3,40,50 --jpeg 90 jpegs >/dev/null
run 0 verify --json jpegs
has '"good": 40, "bad": 0, .*"good_share": 1.0'

# Bad records at known places, one of them its leaf's first: a Datum of two
# channels, another tag, a key out of order.
cp -r good planted
planted='0 7 8 42 500 770 999'
for record in 0 7 500 999; do
    put planted/data.mdb $(($(key_at planted $record) + 9)) '\002'
done
for record in 8 770; do
    put planted/data.mdb $(($(key_at planted $record) + 8)) '\017'
done
put planted/data.mdb "$(key_at planted 42)" 'z'
run 1 verify --json planted
check "the planted records, found: $(bad_records)" \
    test "$(bad_records)" = "$planted "
has '"good": 993, "bad": 7, "lost": 0'
has '"key": "00000500", .*needs 1568 bytes, data has 784'
check 'one line on stderr' test "$(wc -l <err)" -eq 1
run 1 verify planted
check 'the same on paper' test "$(sed -n 's/^record \([0-9]*\), key .*/\1/p' out |
    tr '\n' ' ')" = "$planted "
has '^planted: 993 of 1000 records are good, 99.3 %; 7 bad$'
cp out first
for _ in 1 2 3; do
    run 1 verify planted
    check 'always the same output' cmp -s out first
done
if command -v taskset >/dev/null; then
    taskset -c 0 "$leat" verify planted >out 2>/dev/null
    check 'the same on one core' cmp -s out first
fi

# A page lost: the page, its records, and those after it by their number.
cp -r planted page
page=$(($(key_at page 300) / 4096))
put page/data.mdb $((page * 4096 + 2)) '\007'
run 1 verify page
has "^records (29[0-9]|300) to (300|30[0-9]) are lost: page $page is damaged"
check 'the others by number' test "$(sed -n 's/^record \([0-9]*\), key .*/\1/p' \
    out | tr '\n' ' ')" = "$planted "
put page/data.mdb $(($(key_at page 600) / 4096 * 4096 + 2)) '\007'
run 1 verify --json page
has '"exact_numbers": false'
check 'both pages' test "$(grep -o '"loses_records": true' out | wc -l)" -eq 2

# Images: a JPEG that is none, and one that ends early.
cp -r jpegs broken
# Where a record's image has these bytes first.
image_at() {
    local key
    key=$(key_at broken "$1")
    grep -aboP "$2" broken/data.mdb | cut -d : -f 1 |
        awk -v key="$key" '$1 > key { print $1; exit }'
}
put broken/data.mdb "$(image_at 5 '\xff\xd8\xff')" '\000'
put broken/data.mdb $(($(image_at 9 '\xff\xc0\x00\x11') + 5)) '\000\000'
put broken/data.mdb $(($(image_at 20 '\xff\xda') + 100)) '\377\331'
run 1 verify --json broken
has '"good": 38, "bad": 2, "lost": 0, "warned": 1'
has 'neither JPEG nor PNG'
check "JPEGs at 5 and 9, found $(bad_records)" test "$(bad_records)" = '5 9 '
# Whose codec warned is named, though it is good.
has '"warned_records": \[\{"record": 20, "key": "00000020", "warning": "JPEG: Corrupt JPEG data: [^"]*"\}\]\}$'
run 1 verify broken
has '^record 20, key 00000020: good, but its codec warns: JPEG: Corrupt JPEG data: '
has '^1 image is good, but made'
run 0 verify --json jpegs
has '"warned_records": \[\]'

# show: where nothing that is shown is good, the sheet is made, with status 1.
run 1 show broken --records 5,9 --out sheet.png
has '^sheet.png: 2 of 40 records, 2 of them bad'
check 'a sheet of bad records says so' grep -q 'none of them is good; see leat verify' err
run 0 show broken --records 5,9,20 --out sheet.png

# A bad record's cell is the same, without the title, where the path looks like
# a reason.
"$leat" synth digits --count 10 datum >/dev/null
put datum/data.mdb $(($(grep -abo 00000005 datum/data.mdb | head -n 1 | cut -d : -f 1) + 8)) '\377'
cp -r datum 'a, key z: b'
for name in datum 'a, key z: b'; do
    run 0 show "$name" --records 4,5,6 --out sheet.png
    echo 'sheet.png 0' >list
    has '1 of them bad'
    run 0 import images list "$name.sheet"
    run 0 dump --reader "$name.sheet" --batch 1 --crop 120 --phase TEST --out "$name.cell"
done
check 'a reason does not begin in the path' \
    cmp datum.cell/data.npy 'a, key z: b.cell/data.npy'

run 1 show broken --worst --count 2 --out sheet.png
run 0 show broken --worst --count 20 --out sheet.png
cp -r jpegs allbad
"$leat" synth noise --count 1 --shape 3,40,50 --jpeg 90 allbad --force >/dev/null
put allbad/data.mdb "$(grep -aboP '\xff\xd8\xff' allbad/data.mdb | head -n 1 | cut -d : -f 1)" '\000'
run 1 show allbad --out sheet.png
run 1 show allbad --worst --json --out sheet.png
has '"bad": 1'
run 0 show none --out sheet.png
rm sheet.png

# A sheet is a JPEG by its name, and nothing else than that or a PNG.
run 0 show jpegs --out sheet.jpg
check 'a JPEG' test "$(head -c 3 sheet.jpg | od -An -tx1)" = ' ff d8 ff'
echo 'sheet.jpg 1' >list
run 0 import images list sheets
check 'the JPEG is whole' test "$("$leat" info sheets | grep -c '3x.*x.* *1$')" -eq 1
run 0 show jpegs --out sheet.jpg
cp good/data.mdb other.jpeg
run 2 show jpegs --out other.jpeg
echo text >other.jpeg
run 2 show jpegs --out other.jpeg
run 0 show jpegs --out other.jpeg --force
for name in sheet.gif sheet.webp sheet.; do
    run 64 show jpegs --out $name
    check "$name is refused" grep -q 'written as PNG or JPEG: name it .png, .jpg or .jpeg' err
    check "$name is not made" test ! -e $name
done
rm -r sheet.jpg other.jpeg list sheets

# Files cut short, and one without its first meta page.
cp -r good cut
size=$(stat -c %s good/data.mdb)
truncate -s $((size / 2 / 4096 * 4096 + 100)) cut/data.mdb
run 1 verify cut
has '^truncated: it has [0-9]+ bytes, pages 0 to [0-9]+, but its last page is '
has ' [0-9]+ of 1000 records are good'
has '^records [0-9]+ to 999 are lost: '
check 'told once' test "$(grep -cE '^(records .* are lost|before)' out)" -eq 1
has '^with them: [0-9]+ damaged pages more, .* one: damaged: a pointer to page '
check 'other pages share a line' test "$(grep -c '^with them: ' out)" -eq 1
run 0 show cut --records 999,0 --out cut.png --json
has '"shown": 2, "bad": 0, "lost": 1'
run 1 show cut --records 999 --out cut.png
has '^cut.png: 1 of 1000 records, 1 of them lost, '
rm cut.png
# What was printed stands before the line of the error where both go to one.
"$leat" verify cut >both 2>&1
check 'the error comes last' test "$(grep -n '^leat: ' both | cut -d : -f 1)" \
    -eq "$(wc -l <both)"
truncate -s 5000 cut/data.mdb
run 2 verify cut
check 'a line on stderr' test "$(wc -l <err)" -eq 1
cp -r good headless
put headless/data.mdb 16 '\000\000\000\000'
run 1 verify headless
has ' 1000 of 1000 records are good'
cp -r good count
put count/data.mdb 120 '\001'
put count/data.mdb 4216 '\001'
run 1 verify count
has 'were expected, 1000 found'

# Free pages, of which a database of several commits has some: none lost; then
# one that is listed twice, and one that is listed nowhere.
"$leat" synth digits --count 12000 --seed 3 written >/dev/null || exit 1
number_at() { # of BYTES at OFFSET
    od -An -t "u$1" -j "$2" -N "$1" written/data.mdb | tr -d ' '
}
meta=0
[ "$(number_at 8 144)" -gt "$(number_at 8 $((4096 + 144)))" ] || meta=4096
leaf=$(($(number_at 8 $((meta + 80))) * 4096))
list=$((leaf + $(number_at 2 $((leaf + 16))) + 16))
free=$(number_at 8 $list)
check "a list of free pages: $free" test "$free" -ge 2
run 0 verify --json written
has '"pages": \{"all": [0-9]+, "used": [0-9]+, "free": [0-9]+, "leaked": 0\}'
cp written/data.mdb whole.mdb
dd if=whole.mdb of=written/data.mdb bs=1 skip=$((list + 8)) seek=$((list + 16)) \
    count=8 conv=notrunc status=none
twice=$(number_at 8 $((list + 8)))
run 1 verify --json written
has "\"page\": $twice, .*\"loses_records\": false, .*page $twice is on the freelist twice"
has '"good": 12000, .*"leaked": null'
run 1 verify written
has "page $twice is on the freelist twice: .*mdb_copy -c"
has ' 12000 of 12000 records are good, 100 %$'
check 'it is told' grep -q 'written: no record is bad or lost; the first trouble: page .* on the freelist twice' err
cp whole.mdb written/data.mdb
put written/data.mdb $list "$(printf '\\%03o' $((free - 1)))"
run 0 verify --json written
has '"leaked": 1}'
run 0 verify written
has '^1 of [0-9]+ pages is neither in use nor listed as free'
check 'nothing on stderr' test ! -s err

# What is no database.
mkdir foreign bare
head -c 20000 /dev/urandom >foreign/data.mdb
: >empty
for path in foreign bare absent empty /dev/null; do
    for command in 'verify' 'show --out sheet.png' 'compare good'; do
        # The words of a command are several arguments.
        # shellcheck disable=SC2086
        run 2 $command "$path"
        check "$command $path: one line" test "$(wc -l <err)" -eq 1
    done
done
check 'no sheet is left' test -z "$(ls ./*.png* 2>/dev/null)"
if [ "$(id -u)" -ne 0 ]; then
    cp -r good secret
    chmod 000 secret/data.mdb
    run 2 verify secret
    check 'who may not' grep -q 'ermission' err
fi

# Every byte of the first leaf's and branches' headers flipped: never a signal.
cp -r good flipped
for at in 0 2 8 10 12 14 16 18 40; do
    for page in 0 1 2 3 "$(($(key_at good 500) / 4096))"; do
        cp good/data.mdb flipped/data.mdb
        put flipped/data.mdb $((page * 4096 + at)) '\145'
        timeout 60 "$leat" verify flipped >out 2>err
        status=$?
        check "byte $at of page $page: status $status" test "$status" -le 2
    done
done

# show
png_size() {
    od -An -tu1 -j16 -N8 "$1" | awk '{ print $3 * 256 + $4, $7 * 256 + $8 }'
}
run 0 show good --out sheet.png --json
has '"records": 1000, "shown": 60, "bad": 0'
check 'a PNG' test "$(od -An -tx1 -N8 sheet.png | tr -d ' ')" = 89504e470d0a1a0a
check 'its size' test "$(png_size sheet.png)" = \
    "$(sed -E 's/.*"width": ([0-9]+), "height": ([0-9]+).*/\1 \2/' out)"
cp sheet.png first.png
run 0 show good --out sheet.png
check 'the same picture again' cmp -s sheet.png first.png
# On stdout the picture is alone, and no file has the name.
run 0 show good --out -
check 'the same picture on stdout' cmp -s out first.png
check 'the report on stderr' grep -q '^stdout: 60 of 1000 records, ' err
check 'no file -' test ! -e ./-
run 64 show good --out - --json
check 'one of the two on stdout' grep -q 'would both write to stdout' err
run 0 show good --out ./-
check 'a file of that name' cmp -s ./- first.png
rm ./-
if [ -w /dev/full ]; then
    "$leat" show good --out - >/dev/full 2>err
    check 'a full stdout' test $? -eq 2
    check 'why' grep -q 'stdout: .*No space left' err
fi
run 0 show good --records 5,9-11,0 --columns 2 --out sheet.png --json
has '"shown": 5'
run 0 show planted --records 6-8 --out sheet.png --json
has '"shown": 3, "bad": 2'
run 0 show planted --worst --count 12 --out sheet.png --json
has '"shown": 12, "bad": 7'
run 0 show page --out sheet.png --count 1000 --side 24 --json
has '"bad": 7, "lost": [0-9]+, "exact_numbers": false'
# Behind lost pages the numbers are those of verify, and what is lost is told.
cp -r good lossy
lost=$(($(key_at lossy 300) / 4096))
put lossy/data.mdb $((lost * 4096 + 2)) '\007'
run 1 verify --json lossy
lost=$(grep -oE '"lost": [0-9]+' out | grep -oE '[0-9]+')
"$leat" cat --skip 700 --count 2 lmdb:good >text
records=$(cut -f 1 text | paste -sd ,)
run 0 show lossy --records 300,"$records" --out one.png --json
has '"shown": 3, "bad": 0, "lost": 1, "exact_numbers": true'
run 0 show lossy --records "$records" --out one.png
has "^$lost records are lost of the database; see leat verify"
# The same two pictures as of the sound one, but for the path above them.
mkdir in_lossy in_good
mv lossy in_lossy/same
cp -r good in_good/same
(cd in_lossy && "$leat" show same --records "$records" --out ../one.png) >/dev/null
(cd in_good && "$leat" show same --records "$records" --out ../two.png) >/dev/null
check 'the records of these numbers' cmp -s one.png two.png
# Where the newer meta page claims a number of records that cannot be, those that verify
# finds are shown, and the damage is told, which is no record's.
entries=$((4096 + 16 + 24 + 48 + 32))
"$leat" synth digits --count 50 --seed 3 fifty >/dev/null
cp -r fifty claim
put claim/data.mdb $((entries + 5)) '\001'
run 1 verify claim
has '^claim: 50 of 50 records are good, 100 %$'
claimed='damaged: 1099511627826 records cannot be in 13 pages'
run 0 show claim --out claim.png
has '^claim.png: 50 of 50 records, 1476 x '
has "^$claimed; see leat verify\$"
run 0 show claim --count 7 --out claim.png
has '^claim.png: 7 of 50 records, '
run 0 show claim --out claim.png --json
has "\"records\": 50, \"shown\": 50, \"bad\": 0, \"lost\": 0, .*\"damage\": \"$claimed\""
run 0 show claim --records 3,49 --out claim.png
has '^claim.png: 2 of 50 records, '
run 2 show claim --records 50 --out other.png
check 'the number that verify finds' grep -q 'record 50 is wanted, there are 50$' err
run 0 show claim --worst --out claim.png
has '^claim.png: 50 of 50 records, 1476 x '
has "^$claimed; see leat verify\$"
# The same pictures as of the sound one, but for the path above them.
mkdir in_claim in_fifty
mv claim in_claim/same
mv fifty in_fifty/same
for choice in '--count 60' '--records 3,49'; do
    # shellcheck disable=SC2086
    (cd in_claim && "$leat" show same $choice --out ../one.png) >/dev/null
    # shellcheck disable=SC2086
    (cd in_fifty && "$leat" show same $choice --out ../two.png) >/dev/null
    check "the same pictures: $choice" cmp -s one.png two.png
done
# One that cannot be read at all but is a database still, by its older meta page.
put in_fifty/same/data.mdb $((entries - 26)) '\041'
levels='damaged: a tree of 33 levels and 50 records with its root on page [0-9]+ of 13'
for choice in '' --worst; do
    # shellcheck disable=SC2086
    run 1 show in_fifty/same $choice --out none.png
    has '^none.png: 0 of 0 records, '
    has "^$levels; see leat verify\$"
    check 'why nothing is shown' grep -qE "^leat: in_fifty/same: no record was found: $levels; see" err
done
# Without that, too, the number is the meta page's.
put in_fifty/same/data.mdb 16 '\000'
for command in verify 'show --out other.png'; do
    # shellcheck disable=SC2086
    run 2 $command in_fifty/same
    check "the number of $command" grep -qE "^leat: in_fifty/same/data.mdb: $levels\$" err
done
rm -r in_claim in_fifty claim.png none.png
run 0 show jpegs --out sheet.png --side 64 --json
has '"shown": 40'
run 0 show good --count 6 --columns 1000 --out wide.png --json
wide=$(png_size wide.png | cut -d ' ' -f 1)
check "no wider than six pictures: $wide" test "$wide" -lt 1000
rm wide.png
run 0 show none --out sheet.png --json
has '"shown": 0'
for shape in 2,9,7 4,3,3 7,1,1 1,1,1 1,1,5000 3,1,900; do
    "$leat" synth noise --count 3 --shape $shape --force odd >/dev/null
    run 0 show odd --out sheet.png --side 50 --json
    has '"shown": 3'
done
run 2 show good --records 1000 --out other.png
check 'which record is not there' grep -q 'record 1000 is wanted' err
run 2 show good --records 9223372036854775807 --out other.png
check 'the last number' grep -q 'record 9223372036854775807 is wanted' err
run 2 show good --out nowhere/sheet.png
run 2 show good --count 60000 --out other.png --side 500
mkfifo pipe
ln -s first.png link
for kind in pipe link; do
    run 2 show good --out $kind
    check "why not on a $kind" \
        grep -qx "leat: $kind: exists and is not a regular file" err
done
check 'a pipe and a link are left alone' test -p pipe -a -L link
rm pipe link
# What stands at the target: a file of a database stays, with --force too;
# another one gives way with it, and one of the command's own kind at once.
"$leat" mean good own.mean >/dev/null || failed=1
run 0 show good --count 1 --out own.png
"$leat" synth digits --count 5 spared >/dev/null
echo >spared/lock.mdb
cp spared/data.mdb alone
head -c 100 /dev/urandom >notes
cp notes text
: >blank
for command in 'show good --count 1 --out' 'mean good'; do
    for target in spared/data.mdb spared/lock.mdb alone good/data.mdb; do
        cp $target before
        # shellcheck disable=SC2086
        run 2 $command $target --force
        check "$command: a database's $target" grep -q 'file of .* database' err
        check "$target stays" cmp -s $target before
    done
    for target in text own.mean own.png; do
        case "$command $target" in
        show*png | mean*mean) status=0 ;;
        *) status=2 ;;
        esac
        # shellcheck disable=SC2086
        run $status $command $target
        [ $status -eq 0 ] || check "$command: --force is named" \
            grep -q "^leat: $target: exists already.*--force" err
    done
    check 'the text stays' cmp -s text notes
    # shellcheck disable=SC2086
    run 0 $command text --force
    # shellcheck disable=SC2086
    run 0 $command blank
    cp notes text
    : >blank
done
run 64 show good
run 64 show good --records 3- --out other.png
run 64 show good --records 9-5 --out other.png
run 64 show good --records 1 --worst --out other.png
cp first.png sheet.png
(
    ulimit -f 1
    "$leat" show good --out sheet.png >out 2>err
)
check 'no room for the sheet' test $? -eq 2
check 'the reason' grep -qx 'leat: sheet.png: File too large' err
check 'the old one stays' cmp -s sheet.png first.png
check 'and no part of a new one' test -z "$(find . -name 'sheet.png.leat-*')"
# The same on a disk that is full, where a file system may be mounted.
mkdir disk
for how in -m -rm; do
    unshare $how mount -t tmpfs none disk 2>/dev/null || continue
    # shellcheck disable=SC2016  # the inner shell expands it
    unshare $how sh -c 'mount -t tmpfs -o size=16k none disk || exit 3
        "$0" show good --out disk/sheet.png; status=$?
        [ -z "$(ls disk)" ] || exit 4
        exit $status' "$leat" >out 2>err
    check 'a full disk' test $? -eq 2
    check 'what is full' grep -qx 'leat: disk/sheet.png: No space left on device' err
    full=1
    break
done
[ -n "${full-}" ] || echo "skipped: a full disk, for nothing can be mounted here"
check 'no sheet after an error' test -z "$(ls other* 2>/dev/null)"

# The pixels of a sheet: it is made a record, and dumped.
if command -v mdb_load >/dev/null; then
    records() {
        printf 'VERSION=3\nformat=bytevalue\ntype=btree\nmapsize=10485760\n'
        printf 'HEADER=END\n'
        printf ' %s\n' "$@"
        printf 'DATA=END\n'
    }
    hex() {
        od -An -v -tx1 "$@" | tr -d ' \n'
    }
    # A raw picture of one pixel, B G R, and three floats that span the greys.
    mkdir tiny
    records 30 0803100118012203102030280b \
        31 0801100118032805320c000000000000003f0000803f | mdb_load tiny
    run 0 show tiny --out sheet.png --side 24 --columns 2
    # Labels of ten digits, of which none is rounded away.
    mkdir most less
    records 30 08011001180122010528ffffffff07 | mdb_load most
    records 30 08011001180122010528feffffff07 | mdb_load less
    run 0 cat lmdb:most
    has '	label=2147483647$'
    run 1 compare most less
    has 'label: 2147483647 in A, 2147483646 in B$'
    # A channel's mean that is no number keeps its place in JSON.
    mkdir endless
    records 30 080210011801350000807f350000803f2801 | mdb_load endless
    run 0 mean endless endless.mean --json
    has '"mean_value": \[null, 1.0\]'
    data=$(hex sheet.png) bytes=$(stat -c %s sheet.png)
    mkdir sheet
    low=$(printf '%02x' $((bytes % 128 + 128))) high=$(printf '%02x' $((bytes / 128)))
    if [ "$bytes" -lt 16384 ]; then
        records 30 "22$low$high${data}28003801" | mdb_load sheet
        run 0 dump --reader lmdb:sheet --batch 1 --top-type uint8 --out pixels
        width=$(png_size sheet.png | cut -d ' ' -f 1)
        height=$(png_size sheet.png | cut -d ' ' -f 2)
        # pixel X Y: blue, green and red in hex.
        pixel() {
            local plane
            for plane in 0 1 2; do
                hex -j$((256 + (plane * height + $2) * width + $1)) -N1 \
                    pixels/data.npy
            done
        }
        check "blue first, found $(pixel 34 86)" test "$(pixel 34 86)" = 102030
        check "black, found $(pixel 67 86)" test "$(pixel 67 86)" = 000000
        check "grey, found $(pixel 78 86)" test "$(pixel 78 86)" = 808080
        check "white, found $(pixel 86 86)" test "$(pixel 86 86)" = ffffff
        run 0 show tiny --out sheet.png --side 24 --columns 2 --rgb
    fi
else
    echo 'skipped: the pixels of a sheet (needs mdb_load)'
fi

# info of what is too large to be read
"$leat" synth noise --count 100100 --shape 1,2,2 large >/dev/null
run 0 info large --json
has '"records": 100100, .*"keys": \["00000000", "00100099"\].*"sampled": 49[0-9]{3}\}'
run 0 info large
has 'sampled from all over'
run 0 info large --all --json
has '"shapes": \{"1x2x2": 100100\}.*"sampled": 0\}'
run 0 info good --json
has '"sampled": 0\}'
# No record is counted twice: the last one is bad once, and the sum of all is sampled.
cp -r large bad_end
put bad_end/data.mdb $(($(grep -abo 00100099 bad_end/data.mdb | head -n 1 | cut -d : -f 1) + 8)) '\377'
run 1 info bad_end --json
has '"bad": 1, '
check 'as many are counted as are sampled' test "$(jq '.sampled - .bad' out)" -eq \
    "$(jq '.labels | add' out)"
rm -rf bad_end
# Damage of the root alone is told, too.
meta=0
number_in() { # of BYTES at OFFSET
    od -An -t "u$1" -j "$2" -N "$1" large/data.mdb | tr -d ' '
}
[ "$(number_in 8 144)" -gt "$(number_in 8 $((4096 + 144)))" ] || meta=4096
root=$(number_in 8 $((meta + 128)))
put large/data.mdb $((root * 4096 + 10)) '\167'
run 1 info large
check 'the root is named' grep -q "page $root is damaged" err
run 1 cat large
check 'the root is named' grep -q "page $root is damaged" err

# compare
run 0 compare good good
has '^1000 records are the same$'
"$leat" synth digits --count 1000 --seed 3 again >/dev/null
run 0 compare good again --keys --json
has '"same": true, "compared": 1000, "different": 0'
cp -r planted readable
put readable/data.mdb "$(grep -abo z0000042 readable/data.mdb | cut -d : -f 1)" '0'
run 1 compare good readable --json --differences 1
has '"same": false, "compared": 1000, "different": 6'
has '"differences": \[\{"record": 0, "key": "00000000", "reason": "bad in B:'
cp -r good other
put other/data.mdb $(($(key_at other 321) + 8 + 9 + 28 + 3)) '\377'
was=$(od -An -tu1 -j$(($(key_at good 321) + 8 + 9 + 28 + 3)) -N1 good/data.mdb)
was=$((was))
put other/data.mdb $(($(key_at other 654) + 8 + 9 + 784 + 1)) '\012'
run 1 compare good other
has "^record 321, key 00000321: data\[0, 1, 3\]: $was in A, 255 in B$"
has '^record 654, key 00000654: label: [0-9] in A, 10 in B$'
has '^2 of 1000 records differ, in 2 values by up to [0-9]+$'
run 0 compare good other --tolerance 255
run 1 compare none good
check 'an empty side' test "$(cat out)" = 'none has no records, good has 1000'
run 0 info none
check 'no headings of nothing' test "$(grep -c ':$' out)" -eq 0
if [ -w /dev/full ]; then
    "$leat" info good >/dev/full 2>err
    check 'why stdout cannot be written' \
        grep -qx 'leat: stdout: cannot write: No space left on device' err
    "$leat" compare good other >/dev/full 2>err
    check 'that a difference could not be written' \
        grep -qx 'leat: stdout: cannot write: No space left on device' err
fi
"$leat" synth digits --count 900 --seed 3 fewer >/dev/null
run 1 compare good fewer
has '^only good has the last 100 records$'
"$leat" synth digits --count 1000 --seed 4 another >/dev/null
run 1 compare good another --differences 3
check 'three differences' test "$(grep -c '^record' out)" -eq 3
# Whether there was more to be written after that or not.
for size in 1 2 4 8; do
    (ulimit -f $size && trap '' XFSZ &&
        exec "$leat" compare good another --differences 1000 >full) 2>err
    check "a disk full at $size: $(cat err)" \
        grep -qx 'leat: stdout: cannot write: File too large' err
done

# What follows the last record may be damage, such as a leaf that branches share.
"$leat" synth digits --count 1000 --seed 3 shared >/dev/null
number_of() { # of BYTES at OFFSET
    od -An -t "u$1" -j "$2" -N "$1" shared/data.mdb | tr -d ' '
}
meta=0
[ "$(number_of 8 144)" -gt "$(number_of 8 $((4096 + 144)))" ] || meta=4096
branch=$(number_of 8 $((meta + 128)))
check 'leaves below the root' test "$(number_of 2 $((meta + 94)))" -eq 2
first=$((branch * 4096 + $(number_of 2 $((branch * 4096 + 16)))))
second=$((branch * 4096 + $(number_of 2 $((branch * 4096 + 18)))))
leaf=$(number_of 2 $first)
records=$((($(number_of 2 $((leaf * 4096 + 12))) - 16) / 2))
dd if=shared/data.mdb of=shared/data.mdb bs=1 skip=$first seek=$second count=2 \
    conv=notrunc status=none
put shared/data.mdb $((meta + 120)) "$(printf '\\%03o\\000' $records)"
"$leat" synth digits --count $records --seed 3 beginning >/dev/null
run 1 info shared
check 'a shared leaf' grep -q "$records records were expected, page $leaf has more" err
cp err err_of_info
run 2 compare beginning shared
check 'what info says of a shared leaf' cmp err err_of_info
run 2 compare shared beginning --json
check 'no statement on a shared leaf' test ! -s out
run 0 compare beginning beginning

# Where there is no value there is nothing to be the same.
npy() {
    printf "\\223NUMPY\\1\\0\\166\\0%-117s\\n" \
        "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
}
for shape in '0,' '0, 3' '5, 0'; do
    mkdir -p hollow
    npy "$shape" >hollow/data.npy
    run 2 compare hollow hollow
    check "nothing to compare in $shape: $(cat out err)" \
        grep -qx 'leat: hollow and hollow hold no values: there is nothing to compare' err
    check "no statement on $shape" test ! -s out
    run 2 compare --json hollow hollow
    has '"same": null, "compared": [05], "different": 0'
done
npy '4611686018427387904, 0' >hollow/data.npy
run 2 compare hollow hollow
check 'rows without an element' \
    grep -qx 'leat: hollow: data has 4611686018427387904 rows without an element' err
mv hollow/data.npy hollow/data.0001.npy
{
    npy '1, 1'
    printf abcd
} >hollow/data.0000.npy
run 2 compare hollow hollow
check "rows without an element, beside one with: $(cat err)" \
    grep -qx 'leat: hollow: data has 4611686018427387904 rows without an element' err
rm hollow/data.*
# One file is mapped at a time, of however many; sanitizers take more than there is here.
if ! grep -qaE '__[at]san_init' "$leat"; then
    for number in 0 1 2 3 4 5 6 7 8 9; do
        {
            npy '2, 1'
            printf 'abc%sabcd' "$number"
        } >hollow/data.000$number.npy
        truncate -s 1G hollow/data.000$number.npy
    done
    status=0
    (ulimit -v 4000000 && exec "$leat" compare hollow hollow >out 2>err) || status=$?
    check "files that are large in all: $(cat err)" test "$status" -eq 0
    has '^20 records are the same$'
    rm hollow/data.*
fi
# Of any number of differences the text takes no memory, and the JSON object ends
# where there is none.
if ! grep -qaE '__[at]san_init' "$leat"; then
    mkdir -p filled
    for side in hollow filled; do
        npy '400000, 1' >$side/data.npy
    done
    head -c 1600000 /dev/zero >>hollow/data.npy
    head -c 1600000 /dev/zero | tr '\0' '@' >>filled/data.npy
    compare_many() {
        status=0
        (ulimit -v 300000 && exec "$leat" compare --differences 400000 "$@" hollow filled \
            >out 2>err) || status=$?
    }
    compare_many
    check "many differences: $(cat err)" test "$status" -eq 1
    check 'each difference' test "$(grep -c '^record' out)" -eq 400000
    compare_many --json
    check "many differences in JSON: $status" test "$status" -eq 2
    check 'no part of an object' test ! -s out
    check "why there is no object: $(cat err)" \
        grep -qx 'leat: out of memory: the output is not complete' err
    rm -r filled hollow/data.npy
fi
# A file that is another one when its turn comes: the layer waits for its second batch.
# Files are mapped when they are opened too, but there the process does not wait.
mkfifo pipe
other_when_read() {
    for number in 0 1; do
        {
            npy '2, 1'
            printf abcdefgh
        } >hollow/data.000$number.npy
    done
    "$leat" compare --reader 'fixed:pipe,fields=(data=float32@0:1)' --batch 2 hollow \
        >out 2>err &
    pid=$!
    exec 8<>pipe
    printf abcdefgh >&8
    until ! kill -0 $pid 2>/dev/null ||
        { grep -q 'data.0000.npy$' /proc/$pid/maps &&
            grep -q '^State:.S' /proc/$pid/status; } 2>/dev/null; do
        sleep 0.01
    done
    "$@" >hollow/data.0001.npy
    printf abcdefgh >&8
    exec 8>&-
    status=0
    wait $pid || status=$?
}
other_when_read :
check "a file that is empty by then: $status, $(cat err)" test "$status" -eq 2
check "what is no file of a dump: $(cat err)" \
    grep -qx 'leat: hollow/data.0001.npy: no .npy file' err
other_when_read npy '0, 1'
check "a file of other rows by then: $status, $(cat err)" test "$status" -eq 2
check "what was written to: $(cat err)" \
    grep -qx 'leat: hollow/data.0001.npy: was written to while it was compared' err
rm pipe hollow/data.*
run 2 compare none none
check 'nothing to compare' grep -q 'nothing to compare' err
rm -r hollow

# compare with dumps
"$leat" dump --reader lmdb:good --batch 50 --batches 3 --crop 20 --mirror \
    --seed 9 --out dump >/dev/null
run 0 compare good dump --crop 20 --mirror --seed 9
has '^150 records are the same$'
run 0 compare --reader lmdb:good --batch 7 --crop 20 --mirror --seed 9 dump
run 0 compare dump good --crop 20 --mirror --seed 9
run 1 compare good dump --crop 20 --mirror --seed 8
check 'a seed that was given' test -z "$(grep -- --seed out)"
run 1 compare good dump --crop 20 --mirror
has '^the layer of good chose at random with seed [0-9]+; give --seed '
run 1 compare good dump
check 'nothing at random' test -z "$(grep -- --seed out)"
run 1 compare good dump --seed 9
has 'the shapes are 1x28x28 and 1x20x20'
run 0 compare dump dump
"$leat" dump --reader lmdb:good --batch 50 --batches 3 --seed 9 --out whole \
    --top-type uint8 >/dev/null
run 0 compare whole good
put whole/data.npy $((256 + 784 * 60 + 28 * 5 + 6)) '\377'
run 1 compare good whole --json
has '"different": 1, "values": 1, .*"record": 60, .*"field": "data", "at": \[0, 5, 6\]'
mv whole/label.npy whole/labels.npy
run 1 compare good whole
has 'only A has this field'
has 'only B has this field'
truncate -s -1 whole/data.npy
run 2 compare good whole
check 'a dump cut short' grep -q 'whole/data.npy: truncated' err
for header in '' '\0223NUMPY' '\0223NUMPY\0001\0000\0377\0377{' \
    '\0223NUMPY\0001\0000\0002\0000{}'; do
    printf '%b' "$header" >whole/data.npy
    run 2 compare good whole
    check 'one line of it' test "$(wc -l <err)" -eq 1
done
run 2 compare planted dump --crop 20 --mirror --seed 9

# compare images as they are decoded, and dumps of a file for each batch
run 0 compare jpegs jpegs
has '^40 records are the same$'
run 0 compare good good --keys
cp -r good renamed
put renamed/data.mdb $(($(key_at renamed 999) + 7)) 'x'
run 1 compare good renamed --keys --json
has 'the keys are 00000999 and 0000099x'
run 1 compare good renamed --keys
has 'the keys are 00000999 and 0000099x'
run 0 compare good renamed
images=${LEAT_TEST_DATA-}/images
if [ -f "$images/rgb.jpg" ]; then
    printf '%s 1\n' rgb.jpg 40x3.jpg 1x9.jpg gray-8.png rgb-8.png >list
    run 0 import images list sizes --root "$images/"
    run 0 dump --reader lmdb:sizes --batch 1 --batches 5 --top-type uint8 --out parts
    check 'a file a batch' test "$(echo parts/data.*.npy | wc -w)" -eq 5
    run 0 compare sizes parts
    has '^5 records are the same$'
    put parts/data.0003.npy 300 '\377'
    put parts/data.0003.npy 301 '\000'
    run 1 compare parts sizes
    has '^record 3: data'
    rm parts/data.0002.npy
    run 2 compare sizes parts
fi
# bfloat16 is compared as numbers, not as bits, with what a layer delivers.
"$leat" dump --reader lmdb:good --batch 10 --top-type bfloat16 --scale 0.5 --out halves >/dev/null
run 0 compare good halves --batch 10 --top-type bfloat16 --scale 0.501 --tolerance 0.6
has '^10 records are the same$'
run 1 compare good halves --batch 10 --top-type bfloat16 --scale 0.501 --tolerance 0.1
has 'by up to 0\.[0-9]+$'
run 1 compare good halves --batch 10 --top-type bfloat16
has '^all differ: good was read with the options given here; give those of the dump$'
rm -r halves
# A top whose file would be taken for a batch's of another top.
cat >net <<END
layer { name: "d" type: "Data" top: "data" top: "data.0000" include { phase: TEST }
  data_param { source: "good" backend: LMDB batch_size: 5 } }
END
run 2 dump --net net --phase TEST --out numbered
check 'the top is named' grep -q 'top data.0000: its file data.0000.npy would' err
check 'no dump is left' test ! -e numbered
sed -i s/data.0000/data.000/ net
run 0 dump --net net --phase TEST --out numbered
run 0 compare --net net --phase TEST numbered
rm -r numbered net
mkdir lone
printf '%b' '\0223NUMPY\0001\0000\0166\0000' >lone/data.npy
printf "%-117s\\n" "{'descr': '|u1', 'fortran_order': False, 'shape': ()}" >>lone/data.npy
printf 'x' >>lone/data.npy
run 2 compare good lone
check 'a lone number' grep -q 'lone number' err
for number in 0 1; do
    printf '%b' '\0223NUMPY\0001\0000\0166\0000' >lone/data.000$number.npy
    printf "%-117s\\n" "{'descr': '|u1', 'fortran_order': False, 'shape': (9000000000000000000, 0)}" \
        >>lone/data.000$number.npy
done
run 2 compare good lone
check 'rows without end' grep -q 'data.0001.npy: more rows than can be counted' err
rm lone/data.*
run 2 compare good lone
run 2 compare --reader lmdb:absent --batch 1 lone
run 64 compare good
run 64 compare --reader lmdb:good good good
run 64 compare good dump --top-type kittens
run 2 compare --reader lmdb:good --batch 2 good
check 'a layer is held against a dump' grep -q 'good: expected a directory of .npy files' err
run 0 info --json 'lmdb:good | take:2'
check 'info counts the fields of a pipeline' grep -qE \
    '"records": 2, "fields": \{"data uint8 [0-9x]+": 2, "label int32": 2\}' out
# Names are those that readers gave: escapes of JSON there, of a terminal here.
named=$(printf 'range:2 | select:caf\303\251\033\342\200\256=value')
run 0 info --json "$named"
check "JSON's names" grep -qF "$(printf '{"caf\303\251\\u001B\\u202E int64": 2}')" out
run 0 info "$named"
check "a terminal's names" grep -qF "$(printf 'caf\303\251')\\x1b\\xe2\\x80\\xae int64 2" out
# Features are named as example takes them: two records, of which one has ids.
{
    printf '\040\0\0\0\0\0\0\0)\355\251P\012\036\012\016\012\005label\022\005\032\003\012\001\007'
    printf '\012\014\012\003a,b\022\005\012\003\012\001x\366\257\013F/\0\0\0\0\0\0\0m]\035P'
    printf '\012-\012\016\012\005label\022\005\032\003\012\001\010\012\014\012\003a,b\022\005\012'
    printf '\003\012\001y\012\015\012\003ids\022\006\032\004\012\002\001\002\001\355\025_'
} >features
run 0 info tfrecord:features
check 'the features of a file' test "$(sed -n '/features, as/,$p' out)" = "$(
    printf '%s\n' 'features, as example takes them:' '  a\,b=bytes   2' \
        '  ids=int64[-1] 1' '  label=int64  2')"
run 0 info --json tfrecord:features
has '"name": "ids", "type": "int64", "sequence": false, "values": \[2, 2\], "records": 1,'
run 0 info tfrecord:features
taken=$(sed -n '/features, as/,$s/^  \(.*[^ ]\)  *[0-9]*$/,\1/p' out | tr -d '\n')
run 0 cat "tfrecord:features | example:${taken#,}"
check 'and example takes them so' grep -q 'a,b=bytes 1	ids=int64 2	label=8' out
# A record without features lacks those of the others.
{
    cat features
    printf '\0\0\0\0\0\0\0\0\051\003\230\007\330\352\202\242'
} >lacking
run 0 info tfrecord:lacking
check 'a record without features counts' grep -q '^  label=int64\[-1\] 2$' out
taken=$(sed -n '/features, as/,$s/^  \(.*[^ ]\)  *[0-9]*$/,\1/p' out | tr -d '\n')
run 0 cat "tfrecord:lacking | example:${taken#,}"
# Of more features than a record may show the first ones are listed.
{
    printf '\012\350\040'
    for name in {100..399}; do
        printf '\012\014\012\003%d\022\005\032\003\012\001\007' "$name"
    done
} >many
run 0 info fixed:many,record=4203
check 'of 300 features the first 256' test "$(grep -c '=int64 ' out)" = 256
check 'the last of these' grep -q '^  355=int64 ' out
check 'that there are more' grep -q '^  [.][.][.]$' out
run 0 info --json fixed:many,record=4203
has '"incomplete": \["features"\]'
# Of more labels than are kept the first ones are listed, with all their records.
for ((i = 0; i < 100000; i++)); do
    printf '\\x%02x\\x%02x\\x%02x\\0' $((i & 255)) $((i >> 8 & 255)) $((i >> 16))
done >escapes
printf '%b' "$(cat escapes)" >labelled
labelled='fixed:labelled,fields=(data=uint8@0:1x1x1,label=int32@0)'
run 0 info "$labelled"
check '100000 labels are all listed' test "$(sed '1,/^labels:$/d' out | wc -l)" = 100000
run 0 info --json "$labelled"
check 'no list is incomplete' test "$(jq -c .incomplete out)" = '[]'
printf '\240\206\001\0\241\206\001\0\007\0\0\0' >>labelled # two others, and 7 again
run 0 info "$labelled"
check 'more labels are not listed' test "$(sed '1,/^labels:$/d' out | wc -l)" = 100001
check 'that there are more labels' test "$(tail -n 1 out)" = '  ... (more than 100000)'
check 'a listed label is still counted' grep -qE '^  7 +2$' out
run 0 info --json "$labelled"
check 'JSON has as many' test "$(jq '.labels | length' out)" = 100000
check 'and the count' test "$(jq '.labels["7"]' out)" = 2
check 'and that there are more' test "$(jq -c .incomplete out)" = '["labels"]'
# Three dimensions alone are no image, as in an IDX file of int32.
for type in int32 float16 float64; do
    run 0 info --json "random:2,shape=3x4x5,dtype=$type"
    has "\"fields\": \{\"data $type 3x4x5\": 2\}, \"shapes\": \{\}, .*\"bad\": 0"
done
for type in uint8 float32; do
    run 0 info --json "random:2,shape=3x4x5,dtype=$type"
    has '"shapes": \{"3x4x5": 2\}'
done
# Samples without keys have no empty ones.
run 0 info --json range:3
has '"keys": \[null, null\]'
run 0 info --json none
has '"keys": \[null, null\]'
run 2 info 'lmdb:good | tale:2'
for text in 'range:3 | repeat' 'range:3 | where:value=0.. | repeat' \
    'range:3 | repeat | where:value=0..' 'range:3 | repeat | share'; do
    run 2 info "$text"
    check "$text is refused" grep -q 'the pipeline has no end: add | take:N' err
done
for command in 'verify' 'compare good' 'show --out png'; do
    # shellcheck disable=SC2086
    run 2 $command lmdb:good
    check "$command takes a path" grep -q \
        'lmdb:good: expected an LMDB by its path, without lmdb:, a directory' err
done
run 64 show good --out png --records 1 --count 3
check 'which records' grep -q -- '--records and --count exclude each other' err
run 64 mean good ''
check 'a mean without a name' grep -q 'the file to write has no name' err
run 64 compare good dump --layer data
check 'what --layer is for' grep -q -- '--layer, --stage and --level are for --net' err
for option in '--crop 20' '--batch 3' '--seed 9' --mirror '--workers 1' '--phase TEST'; do
    # shellcheck disable=SC2086
    run 64 compare good good $option
    check "no layer for $option" grep -q 'both sides are databases' err
done
run 64 compare dump dump --seed 9
check 'no layer between dumps' grep -q 'both sides are dumps' err
run 64 compare good dump --seed 9 --keys
check 'no keys of a dump' grep -q -- '--keys is for two databases' err
run 64 compare

# cat
run 0 cat lmdb:good --count 2
check 'two lines' test "$(wc -l <out)" -eq 2
has '^1	00000001	data=uint8 1x28x28	label=[0-9]$'
run 0 cat lmdb:good --skip 998
check 'the last two' test "$(cut -f 1 out | tr '\n' ' ')" = '998 999 '
# Past the end there is nothing, known or not; inputs stay side by side.
for text in range:3 'range:9 | where:value=3 | take:1'; do
    run 0 cat "$text" --skip 5
    check 'nothing' test ! -s out
done
# Damage has its line and status whether it is met or passed.
printf '\3\0\0\0\0\0\0\0\xb0\x99\x49\x0eabc\x6e\x57\xf1\x21cut' >cut.tfrecord
for skip in 0 5; do
    run 1 cat tfrecord:cut.tfrecord --skip "$skip"
    check 'a cut file' grep -q 'cut.tfrecord: record 1 at byte 19' err
done
run 0 cat '(range:9) (range:9 | where:value=0..9) | zip:prefix=(a_,b_)' --skip 3 --count 1
has 'a_value=3	b_value=3$'
run 0 cat lmdb:jpegs --count 1
has 'data=bytes [0-9]+ jpeg 3x40x50'
run 0 cat lmdb:jpegs --json --count 3
check 'an object a line' test "$(grep -c '^{"record": [0-9]*, .*}$' out)" -eq 3
run 1 cat lmdb:planted --count 10
check 'bad ones have lines' test "$(grep -c '	bad	' out)" -eq 3
run 1 cat lmdb:planted --json --count 10
check 'and objects' test "$(grep -c '"bad": ".*' out)" -eq 3
# Fields have their names after more bad records than are looked at for them.
cp -r good late
sed 's/\(00000[0-2][0-9][0-9]\)\x08\x01\x10/\1\x0f\x01\x10/g' good/data.mdb >late/data.mdb
run 0 cat late --json --skip 300 --count 1
has '"key": "00000300", "data": \{"dtype": "uint8", "shape": \[1, 28, 28\]\}, "label": [0-9]\}$'
run 1 info lmdb:late
has '^lmdb:late: 1000 records, 552 kB$'
has '^  data uint8 1x28x28 700$'
rm -r late
run 0 cat lmdb:good --values --count 1
has 'data=uint8 1x28x28: [0-9]+( [0-9]+){783}	label=[0-9]$'
run 0 cat lmdb:good --values --count 1 --json
has '"values": \[([0-9]+, ){783}[0-9]+\]'
# Numbers read back: of float64 with up to 17 digits, of float32 with 9.
printf '%s\n' 0.1234567890123456 0.1 1e300 -3 0.30000000000000004 >numbers
run 0 cat --json 'text:numbers | columns:a=float64'
check 'float64 in JSON' test "$(grep -oE '[-0-9.e+]+\}$' out | tr -d '}\n' | sed 's/e+/e/g')" = \
    0.12345678901234560.11e300-3.00.30000000000000004
run 0 cat 'text:numbers | columns:a=float64'
has 'a=0.1234567890123456$'
run 0 cat --json 'text:numbers | columns:a=float32'
has '"a": 0.123456791\}$'
has '"a": null\}$'
# An element takes no memory of its own; sanitizers take more than there is here.
if ! grep -qaE '__[at]san_init' "$leat"; then
    (ulimit -v 400000 && exec "$leat" cat --json --values 'random:1,shape=3x1500x1500' >out 2>err)
    check "elements in little memory: $(cat err)" test $? -eq 0
fi
# A field's name never takes the place of the sample's number or key.
printf abcdefghijklmnopqrst >letters
run 0 cat --json fixed:letters,record=4 --skip 1 --count 1
has '^\{"record": 1, "fields": \{"record": \{"dtype": "bytes", "shape": \[4\]\}\}\}$'
fields='record=uint8@0,key=uint8@1,bad=uint8@2,fields=uint8@3,rest=uint8@4'
run 0 cat --json "fixed:letters,fields=($fields)" --count 1
has '^\{"record": 0, "rest": 101, "fields": \{"record": 97, "key": 98, "bad": 99, "fields": 100\}\}$'
for option in '' --json; do
    "$leat" cat $option lmdb:good >/dev/full 2>err
    check 'a full disk' test $? -eq 2
    check 'is one line' test "$(wc -l <err)" -eq 1
    # Whether there was more to be written after that or not.
    for size in 1 2 3 4 8; do
        (ulimit -f $size && trap '' XFSZ && exec "$leat" cat $option range:1000 >full) 2>err
        check "a disk full at $size" grep -qx 'leat: stdout: cannot write: File too large' err
    done
done
run 2 cat lmdb:absent
run 2 cat nonsense:x
run 64 cat

# --max-image-bytes: each image of 1 x 28 x 28 takes more than these.
few=10000 enough=1000000
run 1 verify jpegs --max-image-bytes $few
has "max_image_bytes allows $few"
run 0 verify jpegs --max-image-bytes $enough
run 1 show jpegs --count 3 --out few.png --force --max-image-bytes $few
has '3 of them bad'
run 0 show jpegs --count 3 --out few.png --force --max-image-bytes $enough
check 'none bad' test "$(grep -c bad out)" -eq 0
run 1 compare jpegs jpegs --max-image-bytes $few
run 0 compare jpegs jpegs --max-image-bytes $enough
layer=(dump --reader lmdb:jpegs --batch 2 --batches 1 --force --max-image-bytes)
run 2 "${layer[@]}" $few --out few
check 'the bound is told' grep -q "max_image_bytes allows $few" err
run 0 "${layer[@]}" $enough --out few
run 64 verify jpegs --max-image-bytes 0

exit "$failed"
