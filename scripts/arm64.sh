#!/usr/bin/env bash
# Builds leat for arm64 by a cross compiler and runs tests under qemu-user:
#   arm64.sh [REGEX]
# REGEX chooses tests by name, as ctest -R; without it, those of what depends on the
# processor: row kernels, conversions, generators, LMDB pages, decoders, Datum, the
# layer. Libraries for arm64 are fetched by apt-get into build/arm64/sysroot, with
# lists of their own: nothing of this system changes but for the packages
# gcc-aarch64-linux-gnu and qemu-user. Debian and Ubuntu.
set -eu
cd -P "$(dirname "$0")/.."
build=$PWD/build/arm64
sysroot=$build/sysroot

case $#:${1-} in
*:-*)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] && exit 0
    exit 2
    ;;
0:* | 1:*) ;;
*)
    echo "arm64.sh: give one expression; see arm64.sh --help" >&2
    exit 2
    ;;
esac
# Left out: test_image, as libjpeg-turbo has other pixels for a damaged JPEG on arm64,
# test_image_jpeg, which takes minutes, and test_lmdb_storage and test_lmdb_drop_behind, as
# qemu-user passes over madvise.
tests='transform|float16|cast|random|test_lmdb_(walker|map|index|free|file|snapshot)'
tests+='|test_datum|test_wire|test_image_arena|test_mean|test_prototxt|test_queue'
tests+='|test_thread|test_data_layer$|test_layer_order'
[ $# -eq 0 ] || tests=$1

# apt_arm64 ARGUMENT...: apt-get, of arm64's packages and of nothing installed.
apt_arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
        -o APT::Sandbox::User=root -o Debug::NoLocking=1 \
        -o Dir::State="$build/apt" -o Dir::State::status="$build/apt/status" \
        -o Dir::Cache="$build/apt" "$@" </dev/null
}

fetch_sysroot() {
    local package link target
    mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial"
    : >"$build/apt/status"
    apt_arm64 update
    apt_arm64 -y --no-install-recommends --download-only install check libc6-dev \
        liblmdb-dev libprotobuf-c-dev libjpeg-dev libpng-dev zlib1g-dev \
        libjansson-dev >/dev/null
    rm -rf "$sysroot.new"
    mkdir "$sysroot.new"
    for package in "$build"/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$sysroot.new"
    done
    # Links from the root would lead to this system's files.
    find "$sysroot.new" -type l -lname '/*' | while read -r link; do
        target=$(readlink "$link")
        ln -sfr "$sysroot.new$target" "$link"
    done
    mv "$sysroot.new" "$sysroot"
}

scripts/deps.sh build arm64
[ -d "$sysroot" ] || fetch_sysroot
cat >"$build/toolchain.cmake" <<TOOLCHAIN
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT $sysroot)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L $sysroot)
TOOLCHAIN
export PKG_CONFIG_SYSROOT_DIR=$sysroot
libraries=$sysroot/usr/lib/aarch64-linux-gnu
export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$sysroot/usr/share/pkgconfig
cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$build/toolchain.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DLEAT_CUDA=OFF -DLEAT_WERROR=ON \
    -DLEAT_BUILD_BENCHMARKS=OFF -DLEAT_BUILD_EXAMPLES=OFF >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log" >&2
    exit 1
}
# The tests that are chosen, as ctest lists them, and leat itself.
mapfile -t targets < <(ctest --test-dir "$build" -N -R "$tests" |
    sed -n 's/^ *Test *#[0-9]*: //p' |
    grep -xFf <(ninja -C "$build" -t targets all | sed 's/: .*//'))
ninja -C "$build" leat leat_tool "${targets[@]}"
ctest --test-dir "$build" -R "^($(IFS='|' && echo "${targets[*]}"))\$" \
    --no-tests=error --output-on-failure --parallel "$(nproc)"
