#!/usr/bin/env bash
# Makes the Debian packages libleat0.1, libleat-dev and leat, for the CPU alone:
#   package.sh [FOLDER [-- CMAKE_ARGUMENT...]]     (out/packages)
# They are built in build/package (LEAT_PACKAGE_BUILD is another folder), for the
# system and processor of this machine.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${LEAT_PACKAGE_BUILD:-$here/build/package}

case ${1-} in
-h | --help)
    sed -n '2,5s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
folder=$here/out/packages
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    folder=$1
    shift
fi
if [ $# -gt 0 ] && [ "$1" != -- ]; then
    echo "package.sh: $1 is no option; see package.sh --help" >&2
    exit 2
fi
[ $# -eq 0 ] || shift

"$here/scripts/deps.sh" package
arguments=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr
    -DBUILD_SHARED_LIBS=ON -DLEAT_CUDA=OFF -DLEAT_BUILD_TOOL=ON
    -DLEAT_BUILD_TESTS=OFF -DLEAT_BUILD_EXAMPLES=OFF -DLEAT_BUILD_BENCHMARKS=OFF)
[ -e "$build/CMakeCache.txt" ] || arguments+=(-G Ninja)
if command -v ccache >/dev/null; then
    arguments+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
fi
mkdir -p "$build" "$folder"
folder=$(cd "$folder" && pwd)
make_packages() {
    cmake -S "$here" -B "$build" "${arguments[@]}" "$@" &&
        cmake --build "$build" --parallel "$(nproc)" &&
        (cd "$build" && cpack -G DEB -B "$folder")
}
if ! : >"$build/package.log"; then
    echo "package.sh: $build cannot be written to by $(id -un); remove it first" >&2
    exit 1
fi
make_packages "$@" >"$build/package.log" 2>&1 || {
    cat "$build/package.log" >&2
    exit 1
}
rm -rf "$folder/_CPack_Packages"
sed -n 's/^CPack: - package: \(.*\) generated\.$/\1/p' "$build/package.log"
