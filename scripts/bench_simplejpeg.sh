#!/usr/bin/env bash
# Compares JPEG decoding with simplejpeg's, which has the newest libjpeg-turbo that
# PyPI has, in alternation: bench_simplejpeg.sh [--runs N] [PYTHON [FILE.jpg...]].
# PYTHON has simplejpeg: python3, or one of a virtual environment (pip install
# simplejpeg). Prints, for images of 256x256 and 375x500, or for the files, the
# processor time an image of simplejpeg (the whole image as B G R, without its fast
# variants) and of leat, and the median and range of the ratios of the pairs.
set -eu
cd "$(dirname "$0")/.."

runs=7
python=python3
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 && shift ;;
    -*)
        echo "bench_simplejpeg.sh: $1 is no option; see the head of the script" >&2
        exit 2
        ;;
    *)
        python=$1 && shift
        break
        ;;
    esac
    shift
done
version=$("$python" benchmarks/bench_simplejpeg.py version) || {
    echo "bench_simplejpeg.sh: $python has no simplejpeg: pip install simplejpeg" >&2
    exit 1
}
build=build/bench
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLEAT_CUDA=OFF \
    -DLEAT_BUILD_BENCHMARKS=ON -DLEAT_BUILD_TESTS=OFF -DLEAT_BUILD_EXAMPLES=OFF >/dev/null
cmake --build "$build" --target bench_image >/dev/null
bench=$build/benchmarks/bench_image
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-simplejpeg.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The median time of a whole image.
ours() {
    "$bench" --json --rounds 5 "$@" |
        jq -r '[.results[] | select(.case | endswith("_whole")) | .median][0]'
}

compare() {
    local name=$1 files=("${@:2}") pairs=()
    for ((i = 0; i < runs; i++)); do
        pairs+=("$("$python" benchmarks/bench_simplejpeg.py 5 "${files[@]}") $(ours "${files[@]}")")
    done
    printf '%s\n' "${pairs[@]}" | jq -R -s -r --arg name "$name" '
        def median: sort | .[length / 2 | floor];
        def shown: . * 100 | round / 100;
        [split("\n")[] | select(. != "") | split(" ") | map(tonumber)]
        | map(.[0] / .[1]) as $ratios
        | [$name, (map(.[0]) | median | shown), (map(.[1]) | median | shown),
           ($ratios | median | shown),
           "(\($ratios | min | shown) to \($ratios | max | shown))"]
        | "\(.[0]) | \(.[1]) | \(.[2]) | \(.[3]) \(.[4])"'
}

echo "simplejpeg $version, leat $(git describe --always --dirty)"
echo "case | simplejpeg, us/image | leat, us/image | times as fast"
if [ $# -gt 0 ]; then
    compare files "$@"
    exit
fi
"$bench" --write "$work"
compare 256x256 "$work"/jpeg256-*.jpg
compare 375x500 "$work"/jpeg375x500-*.jpg
