#!/usr/bin/env bash
# What `leat dump` writes must be, byte for byte, what Caffe 1.0 delivered for the
# same nets over the same databases: test_tool_dump.sh TOOL
set -u
tool=$1
here=$(cd "$(dirname "$0")" && pwd)
data=${LEAT_SHARED_DATA:-$here/../../../shared/data}
digests=$data/caffe/delivered.json

skip() {
    echo "skipped: $1"
    exit 77
}
[ -x "$tool" ] || skip "the tool is not built"
[ -e "$digests" ] || skip "$digests is absent"
command -v jq >/dev/null || skip "jq is not installed"
data=$(cd "$data" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
    echo "$name: $1"
    failed=1
}

# The length in bytes of an .npy file's header, its magic included.
header_bytes() {
    local length
    length=$(od -An -tu2 -j8 -N2 --endian=little "$1")
    echo $((10 + length))
}

npy_shape() {
    head -c "$2" "$1" | tr -d '\0' | LC_ALL=C sed -nE "s/.*'shape': *\(([^)]*)\).*/\1/p" |
        tr -d ' ' | sed 's/,$//'
}

# The first batch of a top that is not Caffe's, to know where to look.
first_wrong_batch() {
    local file=$1 header=$2 top=$3 bytes batch=0 part
    bytes=$((($(stat -c %s "$file") - header) / batches))
    while read -r part; do
        tail -c "+$((header + 1 + batch * bytes))" "$file" | head -c "$bytes" |
            sha256sum | grep -q "^$part" || break
        batch=$((batch + 1))
    done < <(jq -r --arg top "$top" '.tops[$top].parts[]' <<<"$case")
    echo "$batch"
}

check_top() {
    local top=$1 file=$2/${1//\//_}.npy header expected found
    [ -e "$file" ] || { complain "no ${file##*/} was written" && return; }
    header=$(header_bytes "$file")
    head -c "$header" "$file" | grep -aq "'descr': *'<f4'" ||
        complain "$top is not float32"
    head -c "$header" "$file" | grep -aq "'fortran_order': *False" ||
        complain "$top is not in C order"
    expected=$(jq -r --arg top "$top" '.tops[$top].shape | join(",")' <<<"$case")
    found=$(npy_shape "$file" "$header")
    [ "$found" = "$expected" ] || complain "$top has shape ($found), not ($expected)"
    expected=$(jq -r --arg top "$top" '.tops[$top].sha256' <<<"$case")
    found=$(tail -c "+$((header + 1))" "$file" | sha256sum | cut -d ' ' -f 1)
    [ "$found" = "$expected" ] || complain "$top differs from Caffe's from batch \
$(first_wrong_batch "$file" "$header" "$top") on"
}

check_case() {
    local out=$work/$name top
    jq -r '.prototxt' <<<"$case" | sed "s|{DATA}|$data|g" >"$work/$name.prototxt"
    if ! "$tool" dump --net "$work/$name.prototxt" --phase "$phase" \
        --batches "$batches" --out "$out" >"$work/log" 2>&1; then
        complain "leat dump failed: $(cat "$work/log")"
        return
    fi
    while read -r top; do
        check_top "$top" "$out"
    done < <(jq -r '.tops | keys[]' <<<"$case")
    check_on_device "$out"
}

# With the transform on the device, here the CPU, the files are the same; pixels
# of float32 are refused.
check_on_device() {
    local out=$work/$name.device
    if "$tool" dump --net "$work/$name.prototxt" --phase "$phase" --batches "$batches" \
        --transform-on DEVICE --out "$out" >"$work/log" 2>&1; then
        diff -r "$1" "$out" >/dev/null || complain "--transform-on DEVICE gives other files"
        on_device=$((on_device + 1))
    else
        grep -q 'the pixels are float32: transform_on DEVICE' "$work/log" ||
            complain "--transform-on DEVICE failed: $(cat "$work/log")"
    fi
    rm -rf "$out"
}

on_device=0
cases=0
while read -r case; do
    name=$(jq -r '.name' <<<"$case")
    phase=$(jq -r '.phase' <<<"$case")
    batches=$(jq -r '.batches' <<<"$case")
    check_case
    cases=$((cases + 1))
done < <(jq -c '.cases[]' "$digests")

echo "$cases nets compared with Caffe, $on_device of them with --transform-on DEVICE"
[ "$failed" -eq 0 ] && [ "$cases" -gt 0 ] && [ "$on_device" -gt 0 ]
