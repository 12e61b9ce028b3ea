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

# show draws the images of a list, under their own crops.
"$tool" show --net "$work/net" --phase TEST --count 2 --out "$work/sheet.png" \
    >"$work/log" 2>&1 || complain "show: $(cat "$work/log")"
exit $failed
