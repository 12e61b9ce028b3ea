#!/usr/bin/env bash
# Compares random data layers with a slow reference, sample for sample:
#   soak.sh [--minutes N] [--seed S] [--build DIR] [--double]
# Half an hour unless told otherwise; --double: with devices of CUDA, over the
# double of its runtime. A failure names the configuration and the command that
# runs it alone; so does a layer that hangs.
set -eu
cd "$(dirname "$0")/.."

minutes=30
seed=$(date +%s)
build=build
target=soak
soak=tests/soak
while [ $# -gt 0 ]; do
    case $1 in
    --minutes) minutes=$2 ;;
    --seed) seed=$2 ;;
    --build) build=$2 ;;
    --double)
        target=soak_double
        soak=tests/cuda_double/soak
        shift
        continue
        ;;
    *)
        sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done

[ -e "$build/CMakeCache.txt" ] ||
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --target "$target" >/dev/null
echo "commit $(git rev-parse --short HEAD), seed $seed, $minutes minutes"
if ! "$build/$soak" --seed "$seed" --seconds $((minutes * 60)); then
    echo "soak is $build/$soak"
    exit 1
fi
