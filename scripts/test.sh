#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests. Where there is an
# nvcc the build has CUDA or fails.
#   test.sh [-- CMAKE_ARGUMENT...]
set -eu -o pipefail
cd "$(dirname "$0")/.."

case ${1---} in
--) ;;
-h | --help)
    sed -n '2,4s/^# //p' "$0"
    exit 0
    ;;
*)
    echo "test.sh: $1 is no option; see test.sh --help" >&2
    exit 2
    ;;
esac
[ $# -eq 0 ] || shift

scripts/deps.sh test
mapfile -t cuda < <(scripts/cuda.sh)
scripts/build.sh -- -DLEAT_BUILD_TESTS=ON -DLEAT_BUILD_EXAMPLES=ON \
    -DLEAT_BUILD_BENCHMARKS=ON "${cuda[@]}" "$@"

# What was skipped, and why, goes before the summary, with which the output ends. One
# test more at a time than there are cores, as many wait.
log=build/Testing/Temporary/LastTest.log
ctest --test-dir build --output-on-failure --parallel $(($(nproc) + 1)) | {
    summary=
    skipped=()
    while IFS= read -r line; do
        if [ -n "$summary" ] || [[ $line =~ ^[0-9]+%\ tests\ passed ]]; then
            summary+=$line$'\n'
        else
            printf '%s\n' "$line"
        fi
        if [[ $line =~ ^$'\t'\ *[0-9]+\ -\ ([^ ]+)\ \(Skipped\) ]]; then
            skipped+=("${BASH_REMATCH[1]}")
        fi
    done
    scripts/skips.sh "$log" "${skipped[@]}"
    printf '\n%s' "$summary"
}
