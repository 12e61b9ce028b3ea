#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests.
#   test.sh [-- CMAKE_ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

if [ $# -gt 0 ] && [ "$1" != -- ]; then
    echo "usage: test.sh [-- CMAKE_ARGUMENT...]" >&2
    exit 2
fi
[ $# -eq 0 ] || shift

scripts/deps.sh test
scripts/build.sh -- -DLEAT_BUILD_TESTS=ON -DLEAT_BUILD_EXAMPLES=ON \
    -DLEAT_BUILD_BENCHMARKS=ON "$@"
ctest --test-dir build --output-on-failure --parallel "$(nproc)"
