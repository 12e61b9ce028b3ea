#!/usr/bin/env bash
# leat show --net: the pictures are those that forward delivers, cropped and
# mirrored, with means and scale undone: test_show_net.sh TOOL
set -u
export LC_ALL=C
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
[ -x "$leat" ] || {
    echo "skipped: the tool is not built"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
    echo "failed: $*"
    failed=1
}

# run STATUS ARGUMENT...: stdout goes to `out`, stderr to `err`.
run() {
    local status=$1 found
    shift
    timeout 60 "$leat" "$@" >out 2>err </dev/null
    found=$?
    [ "$found" -eq "$status" ] ||
        fail "leat $*: status $found, not $status: $(head -n 3 err)"
}

# net NAME TRANSFORM: a net file over the database `noise`, batches of 3.
net() {
    cat >"$1" <<END
layer {
  name: "noise" type: "Data" top: "data" top: "label"
  transform_param { $2 }
  data_param { source: "noise" batch_size: 3 backend: LMDB }
}
END
}

# pixels SHEET: its pixels, which a database and a layer give back.
pixels() {
    echo "$1 0" >list
    "$leat" import images list sheets --force >/dev/null || fail "import of $1"
    "$leat" dump --reader lmdb:sheets --batch 1 --top-type uint8 --out sheets.npy \
        --force >/dev/null || fail "dump of $1"
    tail -c $((3 * 420 * 166)) sheets.npy/data.npy
}

# pictures SHEET: of the pixels of one row of cells those rows in which nothing
# but pictures and cells' edges are.
pictures() {
    local plane
    pixels "$1" >all
    for plane in 0 1 2; do
        tail -c +$((1 + (plane * 166 + 74) * 420)) all | head -c $((24 * 420))
    done
}

show=(show --side 24 --columns 8 --count 8)
"$leat" synth noise --count 8 --shape 1,20,20 --seed 4 noise >/dev/null || exit 1
net plain 'crop_size: 12 mirror: true'
net mean 'crop_size: 12 mirror: true mean_value: 104.5 scale: 0.00390625'
"$leat" mean noise noise.mean >/dev/null || exit 1
net file 'crop_size: 12 mirror: true mean_file: "noise.mean" scale: 2'

# What forward delivers of these crops, as a database of its own.
run 0 dump --net plain --phase TRAIN --seed 7 --batches 3 --top-type uint8 --out crops
{
    printf '\000\000\010\003\000\000\000\010\000\000\000\014\000\000\000\014'
    tail -c $((9 * 144)) crops/data.npy | head -c $((8 * 144))
} >images
printf '\000\000\010\001\000\000\000\010\0\1\2\3\4\5\6\7' >labels
run 0 import mnist images labels expected
run 0 "${show[@]}" expected --out expected.png
pictures expected.png >wanted
[ "$(wc -c <wanted)" -eq $((3 * 24 * 420)) ] || fail 'no pictures'
for name in plain mean file; do
    run 0 "${show[@]}" --net $name --phase TRAIN --seed 7 --out $name.png
    grep -qx "$name.png: 8 samples, 420 x 166 pixels" out || fail "$(cat out)"
    grep -qx 'seed: 7' out || fail "$(cat out)"
    pictures $name.png | cmp -s - wanted || fail "$name: other pictures than forward's"
done
# Other choices, other pictures; without choices the middle, and no seed.
run 0 "${show[@]}" --net plain --phase TRAIN --seed 8 --out other.png
pictures other.png | cmp -s - wanted && fail 'another seed shows the same'
net middle 'crop_size: 12 mean_value: 9'
run 0 "${show[@]}" --net middle --phase TEST --out middle.png --json
grep -q '"shown": 8, "bad": 0, "seed": 0,' out || fail "$(cat out)"

# Whatever types, layouts and numbers of axes there are; pipelines; JPEGs.
for type in float64 float16 uint8; do
    run 0 "${show[@]}" --net plain --phase TRAIN --seed 7 --top-type $type \
        --layout NHWC --transform-on CPU --out typed.png
    pictures typed.png | cmp -s - wanted || fail "$type: other pictures"
done
run 0 "${show[@]}" --reader lmdb:noise --batch 3 --crop 12 --mirror --scale 3 --seed 7 \
    --out reader.png
pictures reader.png | cmp -s - wanted || fail '--reader: other pictures'
"$leat" synth noise --count 3 --shape 3,30,40 --jpeg 90 jpegs >/dev/null
run 0 show --reader lmdb:jpegs --batch 2 --mean-value 1,2,3 --out jpegs.jpg

# What is wrong with the layer itself is found, a mean of another shape, too; bad
# records are the layer's.
"$leat" mean jpegs jpegs.mean >/dev/null
net wrong 'mean_file: "jpegs.mean"'
run 2 show --net wrong --phase TRAIN --out wrong.png
[ ! -e wrong.png ] || fail 'a sheet in spite of a wrong mean'
cp -r jpegs broken
offset=$(grep -aboP '\xff\xd8\xff' broken/data.mdb | head -n 1 | cut -d : -f 1)
printf '\0' | dd of=broken/data.mdb bs=1 seek="$offset" conv=notrunc status=none
run 2 show --reader lmdb:broken --batch 3 --out broken.png
grep -q 'neither JPEG nor PNG' err || fail "$(cat err)"
run 0 show --reader lmdb:broken --batch 3 --count 3 --on-error ZERO --out broken.png
grep -qx 'bad records: 1' out || fail "$(cat out)"
# They are listed; a sheet does not take the list's place, and one that is refused
# leaves no empty list.
show=(show --reader lmdb:broken --batch 3 --count 3 --on-error ZERO)
run 0 "${show[@]}" --bad-record-file bad.list --out broken.png
grep -q '^broken	[0-2]	.*	zeros	neither JPEG nor PNG' bad.list ||
    fail "the list: $(cat bad.list)"
[ "$(wc -l <bad.list)" -eq 1 ] || fail "the list: $(cat bad.list)"
# What cannot be written there is said, as of a full disk.
lines=20000
yes '# a comment' | head -n $lines >full.list
for full in "${show[*]} --out broken.png" \
    'dump --reader lmdb:broken --batch 3 --on-error ZERO --out full'; do
    read -ra full <<<"$full"
    ulimit -S -f 200
    run 0 "${full[@]}" --bad-record-file full.list
    ulimit -S -f unlimited
    [ "$(<err)" = 'leat: full.list: 1 bad record could not be written to it' ] || fail "$(<err)"
    [ "$(wc -l <full.list)" -eq $lines ] || fail 'a line beyond the limit'
done
run 2 "${show[@]}" --bad-record-file list.png --out list.png
grep -qx 'leat: list.png: is the list of bad records; give another name' err || fail "$(cat err)"
[ ! -e list.png ] || fail 'an empty list, or a sheet in its place'
run 2 show --reader lmdb:jpegs --batch 3 --bad-record-file none --out nowhere/sheet.png
[ ! -e none ] || fail 'an empty list of a sheet that cannot be written'
# A page is filled from its end, so its last image is the first record's.
cp -r jpegs first
offset=$(grep -aboP '\xff\xd8\xff' first/data.mdb | tail -n 1 | cut -d : -f 1)
printf '\0' | dd of=first/data.mdb bs=1 seek="$offset" conv=notrunc status=none
run 1 show --reader lmdb:first --batch 1 --count 1 --on-error ZERO --out broken.png
grep -q 'none of the records shown is good' err || fail "$(cat err)"

# A pipe is read once.
seq -f '%03g' 1 64 | tr -d '\n' >raw
fields='fields=(data=uint8@0:3x4x4)'
run 0 show --reader "fixed:raw,$fields" --batch 2 --count 4 --out file.png
pixels file.png >wanted
ln -s /dev/stdin 'a pipe'
ln -s /dev/stdin "it's"
for name in - /dev/stdin 'a pipe' "it's"; do
    # shellcheck disable=SC2002
    cat raw | timeout 60 "$leat" show --reader "fixed:$name,$fields" --batch 2 --count 4 \
        --out pipe.png >out 2>err || fail "show of a pipe: $(cat err)"
    grep -qx 'pipe.png: 4 samples, .*' out || fail "$(cat out)"
    rm -f pipe.png
done

# The layer's limit of memory is that of what draws, whose batches are larger.
"$leat" synth noise --count 8 --shape 1,90,90 large >/dev/null
groups=(--reader '(lmdb:noise)(lmdb:large) | chain | batch:8,pad=0 | unbatch' --batch 4
    --crop 12 --max-memory)
run 2 dump "${groups[@]}" 60000 --batches 4 --out limited
grep -q 'max_memory is 60000' err || fail "$(cat err)"
cp err wanted
run 2 show "${groups[@]}" 60000 --count 16 --out limited.png
cmp -s err wanted || fail "$(cat err)"
run 0 show "${groups[@]}" 600000 --count 16 --out limited.png
tight=(--reader lmdb:noise --batch 8 --top-type uint8 --max-memory)
least=$(for ((bytes = 1000; bytes <= 30000; bytes += 100)); do
    "$leat" dump "${tight[@]}" $bytes --batches 1 --out tight --force >/dev/null 2>&1 &&
        echo $bytes && break
done)
run 0 show "${tight[@]}" "$least" --count 8 --out limited.png

# Wrong usage.
run 64 show --out x.png
run 64 show --net plain --out x.png
run 64 show noise --net plain --phase TRAIN --out x.png
run 64 show --net plain --phase TRAIN --records 1 --out x.png
run 64 show --net plain --phase TRAIN --worst --out x.png
run 64 show noise --phase TRAIN --out x.png
run 64 show noise --crop 3 --out x.png
run 64 show --net plain --phase TRAIN --out x.gif
[ ! -e x.png ] || fail 'a sheet of wrong usage'
exit $failed
