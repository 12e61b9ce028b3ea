#!/usr/bin/env bash
# leat import images: the records of Caffe's convert_imageset, by digests of what
# it makes; images that cannot be read; lists that are none; runs that are killed.
set -u
tool=$1
[ -x "$tool" ] || {
    echo "skipped: the tool is not built"
    exit 77
}
for program in jq mdb_dump perl; do
    command -v $program >/dev/null || {
        echo "skipped: $program is not installed"
        exit 77
    }
done
leat=$(cd "$(dirname "$tool")" && pwd)/$(basename "$tool")
data=$LEAT_TEST_DATA
shared=${LEAT_SHARED_DATA:-$(cd "$(dirname "$0")" && pwd)/../../../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
    echo "failed: $*"
    failed=1
}

# The records of a database: a line for the key, one for the value.
records() {
    mdb_dump "$1" | sed '1,/HEADER=END/d; /DATA=END/d'
}

# import STATUS ARGUMENT...: runs it; stdout and stderr are files.
import() {
    local status=$1 found
    shift
    timeout 100 "$leat" import images "$@" >stdout 2>stderr </dev/null
    found=$?
    [ "$found" -eq "$status" ] || {
        fail "status $found, not $status: $*"
        head -n 3 stderr
    }
}

says() {
    grep -qE -- "$1" stderr || fail "'$1' is not said: $(head -n 3 stderr)"
}

# refuses STATUS TEXT ARGUMENT...: one line, and no database.
refuses() {
    local text=$2
    import "$1" "${@:3}"
    says "$text"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "not one line: ${*:3}"
    [ "$(echo made*)" = 'made*' ] || {
        fail "left behind: ${*:3}"
        rm -rf made*
    }
}

# All of the test images, as the digests were recorded.
(cd "$data/images" && printf '%s\n' *.jpg *.png) | LC_ALL=C sort |
    grep -v '^exif-bad-order.png$' | awk '{ print $0, NR - 4 }' >list
lines=$(wc -l <list)

compared=0
while read -r digest options; do
    [ "$digest" = '#' ] && continue
    # shellcheck disable=SC2086
    import 1 list made --root "$data/images" $options
    [ "$(records made | sha256sum | cut -d' ' -f1)" = "$digest" ] ||
        fail "other records than Caffe's with '$options'"
    rm -rf made
    compared=$((compared + 1))
done <"$data/imageset/digests.txt"
[ "$compared" -ge 9 ] || fail "only $compared digests"

# The same for any number of threads.
for _ in $(seq 20); do cat list; done >long
import 1 long one --root "$data/images" --resize 40,30
records one >expected
for cores in 0 0-1; do
    taskset -c $cores true 2>/dev/null || continue
    rm -rf some
    taskset -c $cores "$leat" import images long some --root "$data/images" \
        --resize 40,30 >stdout 2>stderr
    cmp -s one/data.mdb some/data.mdb || fail "another file on cores $cores"
done

# Stopped by a full disk, the same command resumes, and counts what an earlier run
# left out.
rm -rf some
(
    ulimit -f 4000
    import 2 long some --root "$data/images" --resize 40,30 --check-size
    says 'records are kept; rerun the same command to resume'
    exit "$failed"
) || failed=1
import 1 long some --root "$data/images" --resize 40,30 --check-size --json
says "of its $((lines * 20)) images cannot be read.* of them found before"
[ "$(jq '.added < .records and .added > 0 and
    .unreadable > (.unreadable_images | length) and
    .records + .unreadable == '$((lines * 20)) stdout)" = true ] ||
    fail "gone on with: $(cut -c 1-200 stdout)"
records some | cmp -s - expected || fail "other records after a stop"

# The memory that an image may take: none is read with little. Another bound makes
# another database, so it does not go on with what was begun.
rm -rf some
import 2 list made --root "$data/images" --max-image-bytes 1000
says 'max_image_bytes allows 1000'
says 'none of its'
(
    ulimit -f 4000
    import 2 long some --root "$data/images" --resize 40,30 --check-size
) || failed=1
import 2 long some --root "$data/images" --resize 40,30 --check-size \
    --max-image-bytes 300000000
says "other files or options: '--max-image-bytes [0-9]*', now '--max-image-bytes 300000000'"
import 2 long some --root "$data/images" --resize 30,40 --check-size
says "other files or options: '--resize 40x30', now '--resize 30x40'"
import 2 "$data/images" none --root "$data/images"
says 'images: expected a list of lines NAME LABEL, found a directory; --root has the one'
rm -rf some*

# An image that changed since, or came, is another input, whether or not it was read.
cp -r "$data/images" changing
(
    ulimit -f 4000
    import 2 long some --root changing --resize 40,30
    says 'records are kept'
    exit "$failed"
) || failed=1
last=$(tail -n 1 long)
touch "changing/${last% *}"
import 2 long some --root changing --resize 40,30
says "unfinished import of other files.*sizes and times [0-9a-f]*', now 'files' sizes"
rm -rf some*

# So is one that is written while others are read, of which nothing is left. A run that
# was the faster one is begun anew.
tries=0
until [ $((tries += 1)) -gt 20 ]; do
    timeout 100 "$leat" import images long some --root changing >stdout 2>stderr &
    until [ -e some.leat-part/journal ] || ! kill -0 $! 2>/dev/null; do :; done
    touch "changing/${last% *}"
    wait $!
    [ $? -ne 2 ] || break
    rm -rf some
done
says 'long: its images were written or removed while they were read; run the command again'
[ "$(echo some*)" = 'some*' ] || fail "left of images that were written: $(echo some*)"
rm -rf some*

# So is a list that is replaced, with its folder, before its images were looked at.
# Its blank lines take time.
for release in release1 release2; do
    cp -r "$data/images" $release
    { cat long && yes '' | head -n 3000000; } >$release/list
done
tries=0
until [ $((tries += 1)) -gt 20 ]; do
    ln -sfn release1 current
    timeout -s KILL 30 "$leat" import images current/list some --root current >stdout 2>stderr &
    sleep "0.0$((tries % 10))"
    ln -s release2 next
    mv -T next current
    wait $!
    ! grep -q 'was removed or replaced' stderr || break
    rm -rf some*
done
says 'current/list: was removed or replaced while its images were looked at; run'
[ "$(echo some*)" = 'some*' ] || fail "left of a list that was replaced: $(echo some*)"

# A directory is no image, and changes as the database is made in it.
cp -r "$data/images" around
{ echo '. 0' && sed 's/^/.\//' long; } >listed
(cd around && timeout 100 "$leat" import images ../listed some) >stdout 2>stderr
[ $? -eq 1 ] || fail "a list that names the database's directory: $(cat stderr)"
[ -s around/some/data.mdb ] || fail "a list that names the database's directory makes none"
rm -rf around listed

# Whoever reads the report may be gone: the import is complete all the same.
(
    until [ -e gone ]; do :; done
    exec "$leat" import images long some --root changing --resize 40,30 2>stderr
) | {
    exec <&-
    : >gone
}
[ "$(echo some*)" = some ] || fail "left by a report nobody reads: $(echo some*)"
records some | cmp -s - expected || fail 'other records of a report nobody reads'
rm -rf some changing

# Killed at any moment, it does, too.
rm -rf some
for delay in 0.01 0.02 0.03 0.05 0.07 0.1 0.14 0.2 0.3; do
    (
        timeout -s KILL $delay "$leat" import images long some \
            --root "$data/images" --resize 40,30 >stdout 2>stderr
        true # or bash would be replaced by what is killed, and say so
    ) 2>/dev/null
    [ -e some ] && break
done
[ -e some ] || import 1 long some --root "$data/images" --resize 40,30
records some | cmp -s - expected || fail "other records after kills"
rm -rf one some

# What cannot be read is named, left out, and keeps its number.
mkdir set 'set/a directory'
cp "$data/images/rgb-8.png" 'set/a b.png'
cp "$data/images/gray.jpg" set/c.jpg
cp "$data/images/gray.jpg" set/$'\303\244\377.jpg'
head -c 200 "$data/images/baseline-420.jpg" >set/cut.jpg
: >set/empty.jpg
echo text >set/text.png
mkfifo set/pipe.jpg
printf '%s 1\r\n' cut.jpg 'a b.png' nothing.jpg 'a directory' '' empty.jpg \
    text.png pipe.jpg >few
printf '\r\n\n%s 2\n%s 3' $'\303\244\377.jpg' c.jpg >>few
sed -i 's/^ 1\r$//' few
import 1 few made --root set
[ "$(wc -l <stderr)" -eq 7 ] || fail "not 7 lines: $(cat stderr)"
for text in 'set/cut.jpg: JPEG ends early' 'set/nothing.jpg: No such file' \
    'set/a directory: is a directory' 'set/empty.jpg: .*no bytes' \
    'set/text.png: neither' 'set/pipe.jpg: is a pipe' \
    'few: 6 of its 9 images cannot be read'; do
    says "$text"
done
[ "$(records made | sed -n 'p;n' | perl -ne 's/^ //; print pack("H*", $_ =~ s/\n//r), "\n"')" = \
    "00000001_a b.png"$'\n'"00000010_"$'\303\244\377.jpg'$'\n'00000011_c.jpg ] ||
    fail "other keys: $(records made | cut -c 1-60)"
rm -rf made
import 1 few made --root set --json
[ "$(jq -c '[.records, .unreadable, [.unreadable_images[].number], (.unreadable_images[1] | .name, .error)]' stdout)" = \
    '[3,6,[0,2,3,5,6,7],"nothing.jpg","set/nothing.jpg: No such file or directory"]' ] ||
    fail "--json: $(cat stdout)"
rm -rf made

# Many of them are counted, not all named; when none can be read that is wrong.
{ sed 's/^/no/' long; echo 'a b.png 1'; } >missing
import 1 missing made --root set
[ "$(wc -l <stderr)" -eq 21 ] || fail "$(wc -l <stderr) lines, not 21"
says "missing: $((lines * 20)) of its $((lines * 20 + 1)) images"
rm -rf made
import 2 long made --root set
says "long: none of its $((lines * 20)) images can be read; do their names begin in --root?"
[ -e made ] && fail 'a database of nothing'
echo 'nothing.jpg 1' >nothing
timeout 100 "$leat" import images - made <nothing >stdout 2>stderr
says 'stdin: its only image cannot be read'
[ "$(grep -c 'nothing.jpg' stderr)" -eq 1 ] || fail 'an image told of twice'

# A list on stdin; names with blanks; a path without a root.
printf 'a b.png 5\n' | "$leat" import images - made --root set >stdout ||
    fail 'a list on stdin'
rm -rf made
printf '%s 5\n' "$work/set/a b.png" >absolute
import 0 absolute made
[ -s stderr ] && fail "something said: $(cat stderr)"
"$leat" info made --json >report
[ "$(jq -c '[.records, .labels]' report)" = '[1,{"5":1}]' ] ||
    fail "$(cat report)"
rm -rf made

# What its codec warned of is kept and named, the first ones; all are counted.
cp "$data/images/junk-before-restart.jpg" set/junk.jpg
{
    echo 'c.jpg 1'
    for i in $(seq 25); do echo "junk.jpg $i"; done
} >dubious
import 0 dubious made --root set
says '^leat: junk.jpg: kept, but its codec warns: JPEG: Corrupt JPEG data: '
says '^leat: dubious: 25 images are kept, but made their codec warn$'
[ "$(wc -l <stderr)" -eq 21 ] || fail "$(wc -l <stderr) lines of warnings, not 21"
rm -rf made
import 0 dubious made --root set --encoded --json
[ "$(jq -c '[.records, .unreadable, .warned, (.warned_images | length),
    (.warned_images[24] | .number, .name)]' stdout)" = \
    '[26,0,25,25,25,"junk.jpg"]' ] || fail "--json: $(cut -c 1-200 stdout)"
rm -rf made
import 0 dubious made --root set --encoded --gray --json
[ "$(jq .warned stdout)" = 25 ] ||
    fail "--encoded --gray: $(cut -c 1-200 stdout)"
rm -rf made

# A PNG of 16 bits that keeps its bytes is one that not every layer reads.
cp "$data/images/rgb-16.png" set/deep.png
echo 'deep.png 1' >deep
import 0 deep made --root set --encoded
says '^leat: deep.png: kept, but its codec warns: PNG of 16 bits per channel, which'
rm -rf made
import 0 deep made --root set
[ -s stderr ] && fail "said of 16 bits: $(cat stderr)"
rm -rf made

# The last record of a stopped run is made again, but warned of once.
(
    ulimit -f 24000
    import 2 dubious made --root set --resize 1000,1000
    says 'records are kept'
    exit "$failed"
) || failed=1
import 0 dubious made --root set --resize 1000,1000 --json
[ "$(jq '.added > 0 and .added < 26 and .warned == .added and
    (.warned_images | length) == .added' stdout)" = true ] ||
    fail "warned of after a stop: $(cut -c 1-200 stdout) $(jq .warned stdout)"
rm -rf made

# Shuffled: other numbers, the same images, the same for a seed.
grep -v 'cut\|mark\|missing\|bad' list >sound
dumped() {
    rm -rf made
    import 1 sound made --root "$data/images" "$@"
    records made
}
dumped >plain
dumped --shuffle >one
dumped --shuffle --seed 1 >again
dumped --shuffle --seed 2 >two
cmp -s one again || fail 'the seed is not 1'
cmp -s one two && fail 'seeds make no difference'
cmp -s one plain && fail 'not shuffled'
# The hex of eight digits and a "_" is 18 letters.
for dump in plain one two; do
    paste -d' ' - - <$dump | cut -c 20- | LC_ALL=C sort >$dump.sorted
done
cmp -s plain.sorted one.sorted || fail 'shuffling changes records'
cmp -s plain.sorted two.sorted || fail 'shuffling changes records'
rm -rf made

# One shape for all, if that is asked for.
cp "$data/images/40x3.jpg" set/d.jpg
printf '%s 1\n' c.jpg d.jpg >mixed
refuses 2 'd.jpg: 3x3x40, where the first image is 3x' mixed made \
    --root set --check-size
import 0 mixed made --root set --check-size --resize 9,9
rm -rf made
import 0 mixed made --root set
rm -rf made

# A line about a path of any length ends in the reason.
refuses 2 'x: File name too long$' mixed made --root "$(printf '%5000s' '' | tr ' ' x)"

# Lists that are none.
printf 'c.jpg 1\na b.png one\n' >bad
refuses 2 'bad: line 2: expected a label' bad made --root set
printf 'c.jpg 1\nc.jpg\n' >bad
refuses 2 'bad: line 2: expected a name' bad made --root set
printf 'c.jpg 1\0\n' >bad
refuses 2 'NUL' bad made --root set
printf '\n\n' >bad
refuses 2 'bad: lists no images' bad made --root set
refuses 2 'No such file' nolist made --root set
refuses 2 'irectory' set made --root set
refuses 2 'noroot: No such file' few made --root noroot
refuses 2 'stdin: lists no images' - made
head -c 100000 /dev/zero | tr '\0' x >bad
refuses 2 'longer than' bad made

# Several labels a line: beside the pixels, which Caffe reads with the label 0; what
# is delivered has them all, encoded or not, also after a copy, and info, show and
# compare know them.
sed 's/$/ 0.5 -2e1/' mixed >several
import 0 several made --root set --resize 4,4 --labels 3
"$leat" dump --reader lmdb:made --batch 2 --batches 1 --out dumped >stdout ||
    fail 'several labels are not delivered'
dumped_labels() {
    tail -c 24 "$1/label.npy" | od -An -tf4 | tr -s ' \n' ' '
}
[ "$(dumped_labels dumped)" = ' 1 0.5 -20 1 0.5 -20 ' ] ||
    fail "other labels: $(dumped_labels dumped)"
grep -aq "(1, 2, 3)\|(2, 3)" dumped/label.npy || fail 'another shape of labels'
"$leat" info made --json >report
[ "$(jq -c .labels report)" = '{"3 x float32":2}' ] || fail "info: $(cat report)"
"$leat" show made --out sheet.png >stdout 2>stderr || fail "show: $(cat stderr)"
"$leat" import pipeline lmdb:made copied >stdout 2>stderr || fail "a copy: $(cat stderr)"
"$leat" compare made copied >stdout || fail 'a copy has other labels'
rm -rf made copied
import 0 several first --root set --encoded --labels 3
sed 's/0\.5/0.25/' several >other
import 0 other second --root set --encoded --labels 3
"$leat" compare first second >stdout 2>&1 && fail 'compare takes other labels for the same'
records first | sed -n 2p | grep -q '350000803f350000003f350000a0c13801$' ||
    fail "not float_data: $(records first | tail -c 60)"
rm -rf first second
refuses 2 'several: line 1: expected a name and as many' several made --root set --labels 4
printf 'c.jpg 1 2\nd.jpg 1 x\n' >bad
refuses 2 "bad: line 2: expected as many numbers.*found 'd.jpg 1 x'" bad made --root set --labels 2
printf 'c.jpg 1 2\nd.jpg 1 16777217\n' >bad
refuses 2 'bad: line 2: a label is a whole number over 16777216' bad made --root set --labels 2
printf 'c.jpg 1.5\n' >bad
refuses 2 'bad: line 1: expected a label.*--labels N' bad made --root set
# As many as a line may have, each as long as it may be.
printf 'c.jpg%s\n' "$(printf ' 0.%062d' $(seq 1024))" >many
import 0 many made --root set --labels 1024
"$leat" info made --json >report
[ "$(jq -c .labels report)" = '{"1024 x float32":1}' ] || fail "1024 labels: $(cat report)"
rm -rf made
# Stopped, it resumes; with other labels it is another import.
rm -rf some whole
sed 's/$/ 0.5/' long >several
import 1 several whole --root "$data/images" --resize 40,30 --labels 2
(
    ulimit -f 4000
    import 2 several some --root "$data/images" --resize 40,30 --labels 2
    says 'records are kept; rerun the same command to resume'
    sed 's/$/ 0.25/' long >several
    import 2 several some --root "$data/images" --resize 40,30 --labels 2
    says other
    exit "$failed"
) || failed=1
sed 's/$/ 0.5/' long >several
import 1 several some --root "$data/images" --resize 40,30 --labels 2 --json
[ "$(jq '.added < .records and .added > 0' stdout)" = true ] ||
    fail "several labels begun anew: $(cut -c 1-200 stdout)"
"$leat" compare some whole >stdout || fail 'other labels after a stop'
rm -rf some whole

# Wrong usage.
refuses 64 'labels' few made --labels 0
refuses 64 'labels' few made --labels 1025
refuses 64 'encode-type' few made --encode-type gif
refuses 64 'resize' few made --resize 32
refuses 64 'resize' few made --resize 0,32
refuses 64 'resize' few made --resize 1000000,1000000
refuses 64 'seed' few made --seed 2
refuses 64 'LIST OUT' few
refuses 64 'append no longer exists' few made --append

# Encoded images of a database made by Caffe's own tool go back into the same
# records.
if [ -d "$shared/lmdb/imagenet5_jpeg_lmdb" ]; then
    mkdir caffe
    cp "$shared/lmdb/imagenet5_jpeg_lmdb/data.mdb" caffe/
    records caffe >expected
    mkdir jpegs
    perl -e '
        while (my $key = <>) {
            my $value = <>;
            s/^ // for $key, $value;
            $key = pack("H*", $key =~ s/\n//r);
            $value = pack("H*", $value =~ s/\n//r);
            my $name = substr($key, 9);
            my $start = index($value, "\xff\xd8\xff");
            # Behind the image are its label, of one byte or two, and encoded.
            my ($image, $label) = substr($value, $start) =~
                /^(.*\xff\xd9)\x28([\x00-\x7f]|[\x80-\xff].)\x38\x01$/s or die;
            open my $file, ">:raw", "jpegs/$name" or die;
            print $file $image;
            my @digit = unpack("C*", $label);
            print $name, " ", $digit[0] % 128 + 128 * ($digit[1] // 0), "\n";
        }' <expected >ours || fail 'the images cannot be taken out'
    import 0 ours made --root jpegs --encoded
    records made | cmp -s - expected || fail "other records than in Caffe's database"
    rm -rf made
else
    echo "left out: Caffe's own records, for there is no shared data"
fi

[ "$failed" -eq 0 ] && echo "$compared sets of options, and what can go wrong"
exit "$failed"
