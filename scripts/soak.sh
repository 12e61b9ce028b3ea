#!/usr/bin/env bash
# Compares random data layers with a slow reference, sample for sample:
#   soak.sh [--minutes N] [--seed S] [--build DIR]
# Half an hour unless told otherwise. A failure names the configuration and the
# command that runs it alone; so does a layer that hangs.
set -eu
cd "$(dirname "$0")/.."

minutes=30
seed=$(date +%s)
build=build
while [ $# -gt 0 ]; do
    case $1 in
    --minutes) minutes=$2 ;;
    --seed) seed=$2 ;;
    --build) build=$2 ;;
    *)
        sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done

[ -e "$build/CMakeCache.txt" ] ||
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --target soak >/dev/null
echo "commit $(git rev-parse --short HEAD), seed $seed, $minutes minutes"
if ! "$build/tests/soak" --seed "$seed" --seconds $((minutes * 60)); then
    echo "soak is $build/tests/soak"
    exit 1
fi
