#!/usr/bin/env bash
# What only a machine with an NVIDIA GPU can show: the GPU tests, these again under
# compute-sanitizer, `bench h2d` and `bench layer`. Writes the figures to
# benchmarks/results/<gpu>.json; exits with 77 where there is no GPU.
#   gpu_check.sh [BUNDLE [FOLDER]]
# BUNDLE is a folder of scripts/bundle.sh; without one, build/ is packed first. In
# a bundle the script takes that bundle, and FOLDER is results/ in it.
set -eu

fail() {
    echo "gpu_check.sh: $1" >&2
    exit "${2:-1}"
}

case ${1-} in
-h | --help)
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
-*) fail "$1 is no option; see gpu_check.sh --help" 2 ;;
esac
[ $# -le 2 ] || fail "give a bundle and a folder, no more" 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! command -v nvidia-smi >/dev/null ||
    ! gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null |
        head -n 1) || [ -z "$gpu" ]; then
    echo "skipped: there is no NVIDIA GPU on this machine"
    exit 77
fi

if [ $# -gt 0 ]; then
    bundle=$(cd "$1" && pwd)
elif [ -f "$here/BUNDLE" ]; then
    bundle=$here
else
    "$here/bundle.sh" "$here/../build" "$work/bundle"
    bundle=$work/bundle
fi
[ -f "$bundle/BUNDLE" ] || fail "$bundle is no bundle of scripts/bundle.sh"
[ -s "$bundle/gpu_tests" ] || fail "$bundle has no GPU tests; build with CUDA"
folder=$here/../benchmarks/results
[ ! -f "$here/BUNDLE" ] || folder=$here/results
folder=${2:-$folder}
leat=$bundle/bin/leat
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-600}

# run_tests [COMMAND...]: each GPU test, behind COMMAND; a skip is no pass here.
run_tests() {
    local line words
    while read -r line; do
        read -ra words <<<"$line"
        echo "test: $line" >&2
        "$@" "$bundle/bin/${words[0]}" "${words[@]:1}" >&2 </dev/null ||
            return 1
    done <"$bundle/gpu_tests"
}

run_tests || fail "a GPU test failed or was skipped"

# It may be missing, or not work under this driver or in this container.
sanitizer=(compute-sanitizer --target-processes all --error-exitcode 99)
memcheck="skipped: there is no compute-sanitizer"
if command -v compute-sanitizer >/dev/null; then
    if compute-sanitizer "$leat" bench h2d --bytes 4096:4097 --streams 1 \
        >"$work/sanitizer" 2>&1; then
        run_tests "${sanitizer[@]}" || fail "compute-sanitizer found an error"
        memcheck=passed
    else
        memcheck="skipped: compute-sanitizer does not work here"
        tail -n 5 "$work/sanitizer" >&2
    fi
fi
echo "compute-sanitizer: $memcheck"

"$leat" bench h2d --json >"$work/h2d"
"$leat" synth noise --count 4096 --shape 3,256,256 --seed 1 "$work/lmdb" \
    >/dev/null
layer=("$leat" bench layer --device cuda:0 --reader "lmdb:$work/lmdb"
    --batch 256 --crop 227 --mirror --seconds 5 --json)
"${layer[@]}" --top-type uint8 >"$work/uint8"
"${layer[@]}" --transform-on DEVICE >"$work/device"
"${layer[@]}" --transform-on DEVICE --sleep-ms 1 >"$work/overlap"

# quoted TEXT: as a string of JSON.
quoted() {
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

name=$(tr -cs 'A-Za-z0-9\n' _ <<<"$gpu" | tr '[:upper:]' '[:lower:]')
{
    printf '{"gpu": %s,\n' "$(quoted "$gpu")"
    printf ' "commit": %s,\n' \
        "$(quoted "$(sed -n 's/^commit: //p' "$bundle/BUNDLE")")"
    printf ' "gpu_tests": "passed",\n "compute_sanitizer": %s,\n' \
        "$(quoted "$memcheck")"
    printf ' "h2d": %s,\n' "$(cat "$work/h2d")"
    printf ' "layer_uint8": %s,\n' "$(cat "$work/uint8")"
    printf ' "layer_device": %s,\n' "$(cat "$work/device")"
    printf ' "layer_overlap": %s}\n' "$(cat "$work/overlap")"
} >"$work/result"
mkdir -p "$folder"
cp "$work/result" "$folder/$name.json"
echo "$folder/$name.json"
