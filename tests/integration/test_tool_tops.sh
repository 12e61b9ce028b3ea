#!/usr/bin/env bash
# `leat dump` of a net that lists its tops: a file for each, or one for each batch
# of ragged ones, and the bytes of the records: test_tool_tops.sh TOOL
set -u
tool=$1
[ -x "$tool" ] || { echo "skipped: the tool is not built" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
    echo "$1"
    failed=1
}

# The element type and shape in an .npy file's header.
header() {
    head -c 256 "$1" | tr -d '\0' |
        LC_ALL=C sed -nE "s/.*'descr': *'([^']*)'.*'shape': *\(([^)]*)\).*/\1 \2/p" |
        tr -d ',' | sed 's/ $//'
}

expect() {
    local found
    found=$(header "$work/out/$1.npy" 2>/dev/null)
    [ "$found" = "$2" ] || complain "$1: expected $2, found $found"
}

"$tool" synth noise --count 5 --shape 1,4,6 --seed 1 "$work/db" >/dev/null ||
    complain "synth failed"
cat >"$work/net" <<END
layer { name: "d" type: "Data"
  top: "image" top: "bytes" top: "bytes.offsets" top: "wide" top: "wide.lengths"
  top: "label"
  data_param { source: "$work/db" backend: LMDB batch_size: 2 }
  leat_param {
    top { name: "image" field: "data" is_image: true dtype: UINT8
          transform_param { crop_size: 3 } }
    top { name: "bytes" field: "data" form: RAGGED dtype: INT16 }
    top { name: "wide" field: "data" form: PAD shape: [1, 5, 6] pad_value: 7 }
    top { name: "label" dtype: INT64 } } }
END
"$tool" dump --net "$work/net" --phase TEST --batches 2 --out "$work/out" \
    >"$work/log" 2>&1 || complain "$(cat "$work/log")"
expect image "|u1 4 1 3 3"
expect bytes.0000 "<i2 2 4 6"
expect bytes.offsets.0001 "<i8 3"
expect wide "|u1 4 1 5 6"
expect wide.lengths "<i8 4 3"
expect label "<i8 4"
[ ! -e "$work/out/bytes.npy" ] || complain "bytes.npy is one file"

# Row by row the padded array is the ragged one, and then sevens.
rows() { tail -c +257 "$1" | od -An -v "-t$2" | tr -s '[:space:]' '\n' | grep .; }
rows "$work/out/bytes.0000.npy" d2 >"$work/ragged"
rows "$work/out/wide.npy" u1 | head -60 | awk '(NR-1) % 30 < 24' >"$work/padded"
cmp -s "$work/ragged" "$work/padded" || complain "wide has other pixels than bytes"
rows "$work/out/wide.npy" u1 | awk '(NR-1) % 30 >= 24 && $1 != 7' | grep -q . &&
    complain "wide is not padded with 7"
[ "$(rows "$work/out/bytes.offsets.0000.npy" d8 | tr '\n' ' ')" = "0 1 2 " ] ||
    complain "bytes.offsets are not 0 1 2"

"$tool" compare "$work/out" "$work/out" >"$work/log" 2>&1
grep -q 'bytes.offsets are the offsets of a ragged top; compare takes tops' "$work/log" ||
    complain "compare of a ragged top: $(cat "$work/log")"

# --top lists them by the same names, and gives the same files.
"$tool" dump --reader "lmdb:$work/db" --phase TEST --batch 2 --batches 2 --crop 3 \
    --top image=data,is_image,dtype=UINT8 --top bytes=data,form=ragged,dtype=INT16 \
    --top wide=data,shape=9,form=PAD,shape=1x5x6,pad_value=7 --top label,dtype=INT64 \
    --out "$work/same" >"$work/log" 2>&1 || complain "--top: $(cat "$work/log")"
diff -r "$work/out" "$work/same" >"$work/log" || complain "--top: $(cat "$work/log")"

# refuse TEXT LINE: what --top says of a text that is none, with status 64.
refuse() {
    local line
    line=$("$tool" dump --reader "lmdb:$work/db" --batch 2 --out "$work/no" --top "$1" 2>&1)
    [ $? -eq 64 ] || complain "--top $1: expected status 64"
    [[ $line == "leat: --top: $2"* ]] || complain "--top $1: expected $2, found $line"
}
refuse "" "expected NAME or NAME=FIELD, found ''"
refuse "a=" "expected NAME or NAME=FIELD, found 'a='"
refuse "a,size=3" "expected dtype, form, is_image, cast_lossy, choices_of, pad_value or shape, found 'size'"
refuse "a,form=ROUND" "form: expected DENSE, PAD or RAGGED, found 'ROUND'"
refuse "a,shape=3x" "shape: expected lengths such as 3x28, found ''"
refuse "a,shape=1x1x1x1x1x1x1x1" "shape: expected at most 7 dimensions"
refuse "$(printf 'x%.0s' {1..512})" "expected a text of less than 512 bytes"
refuse "a,pad_value=x" "pad_value: expected a number, found 'x'"
refuse "a,is_image=perhaps" "is_image: expected true or false, found 'perhaps'"
"$tool" dump --net "$work/net" --phase TEST --top label --out "$work/no" 2>&1 |
    grep -q "with --net, the file lists the tops" || complain "--top with --net"
[ ! -e "$work/no" ] || complain "a refused --top left $work/no"

# show draws the images of a list, under their own crops.
"$tool" show --net "$work/net" --phase TEST --count 2 --out "$work/sheet.png" \
    >"$work/log" 2>&1 || complain "show: $(cat "$work/log")"
exit $failed
