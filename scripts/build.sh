#!/usr/bin/env bash
# Builds the library and the tool into build/; the tool is build/leat.
#   build.sh [--cpu-only] [-- CMAKE_ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

arguments=(-DLEAT_BUILD_TESTS=OFF -DLEAT_BUILD_EXAMPLES=OFF
    -DLEAT_BUILD_BENCHMARKS=OFF)
while [ $# -gt 0 ]; do
    case $1 in
    --cpu-only) arguments+=(-DLEAT_CUDA=OFF) ;;
    --)
        shift
        arguments+=("$@")
        break
        ;;
    -h | --help)
        sed -n '2,3s/^# //p' "$0"
        exit 0
        ;;
    *)
        echo "build.sh: $1 is no option; see build.sh --help" >&2
        exit 2
        ;;
    esac
    shift
done

scripts/deps.sh build
[ -e build/CMakeCache.txt ] || arguments+=(-G Ninja)
if command -v ccache >/dev/null; then
    arguments+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
fi
mkdir -p build
# Of another user's build the log that is there tells of another run.
if ! : >build/configure.log; then
    echo "build.sh: build/ cannot be written to by $(id -un); remove it first" >&2
    exit 1
fi
cmake -S . -B build "${arguments[@]}" >build/configure.log 2>&1 || {
    cat build/configure.log >&2
    exit 1
}
cmake --build build --parallel "$(nproc)"
