#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests. Where there is an
# nvcc the build has CUDA or fails.
#   test.sh [-- CMAKE_ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

if [ $# -gt 0 ] && [ "$1" != -- ]; then
    echo "usage: test.sh [-- CMAKE_ARGUMENT...]" >&2
    exit 2
fi
[ $# -eq 0 ] || shift

scripts/deps.sh test
mapfile -t cuda < <(scripts/cuda.sh)
scripts/build.sh -- -DLEAT_BUILD_TESTS=ON -DLEAT_BUILD_EXAMPLES=ON \
    -DLEAT_BUILD_BENCHMARKS=ON "${cuda[@]}" "$@"
ctest --test-dir build --output-on-failure --parallel "$(nproc)"
