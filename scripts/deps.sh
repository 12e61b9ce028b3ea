#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing: deps.sh PROFILE...
#   build  the library and the tool        test   what the tests need, too
#   check  compilers and linters as well   demo   the example net
#   bench  what measuring cold data and plotting need
#   docs   the reference of the headers    package  Debian packages
#   arm64  a compiler for arm64, and an emulator to run what it makes
# Asks the machine for each program and library itself, not for a package, so
# whatever brings them will do. Where nothing is missing, nothing is run.
set -eu

missing=()

# need PROBE PACKAGE: PACKAGE may list alternatives, as names differ between
# releases; the first one known to apt is taken.
need() {
    local probe=$1 package=$2
    "probe_${probe%%:*}" "${probe#*:}" || missing+=("$package")
}
probe_program() { command -v "$1" >/dev/null; }
probe_module() { command -v pkg-config >/dev/null && pkg-config --exists "$1"; }
# Debian's packages are for Debian's own python3, which need not be the first.
probe_python() {
    python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null
}
probe_clang_runtime() {
    command -v clang >/dev/null || return 1
    local found
    found=$(clang -print-file-name="libclang_rt.$1-$(uname -m).a")
    [ -e "$found" ] && return
    found=$(clang -print-runtime-dir 2>/dev/null)
    [ -e "$found/libclang_rt.$1.a" ] || [ -e "$found/libclang_rt.$1-$(uname -m).a" ]
}

profile_build() {
    need program:gcc gcc
    need program:cmake cmake
    need program:ninja ninja-build
    need program:pkg-config 'pkg-config|pkgconf'
    need module:lmdb liblmdb-dev
    need module:libjpeg 'libjpeg-dev|libjpeg62-turbo-dev'
    need module:libpng libpng-dev
    need module:zlib zlib1g-dev
    need module:snappy libsnappy-dev
    need module:jansson libjansson-dev
}

profile_demo() {
    profile_build
    need module:openblas libopenblas-dev
}

profile_test() {
    profile_demo
    need program:g++ g++
    need module:check check
    need program:protoc-c protobuf-c-compiler
    need module:libprotobuf-c libprotobuf-c-dev
    need program:jq jq
    need program:mdb_load lmdb-utils
    need program:valgrind valgrind
    need program:spin spin
    need program:tcc tcc
    need program:mpirun openmpi-bin
}

profile_bench() {
    profile_test
    need module:fuse3 libfuse3-dev
    need python:matplotlib python3-matplotlib
}

profile_docs() {
    need program:doxygen doxygen
}

profile_package() {
    profile_build
    need program:dpkg-shlibdeps dpkg-dev
}

profile_arm64() {
    need program:aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    need program:qemu-aarch64 qemu-user
}

profile_check() {
    profile_test
    profile_docs
    profile_package
    need program:git git
    need program:clang clang
    need program:ld.lld lld
    need clang_runtime:fuzzer 'libclang-rt-dev|libclang-rt-14-dev|clang'
    need program:clang-format clang-format
    need program:clang-tidy clang-tidy
    need program:shellcheck shellcheck
    need program:patch patch
    need program:ccache ccache
    need program:gcovr gcovr
    need module:fuse3 libfuse3-dev
    need python:matplotlib python3-matplotlib
}

probe_missing() {
    local profile
    missing=()
    for profile in "$@"; do
        "profile_$profile"
    done
    [ "${#missing[@]}" -eq 0 ] && return
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

known_to_apt() {
    apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

# The first alternative that apt knows; the first one of all if it knows none.
choose() {
    local alternative alternatives
    IFS='|' read -ra alternatives <<<"$1"
    for alternative in "${alternatives[@]}"; do
        known_to_apt "$alternative" && echo "$alternative" && return
    done
    echo "${alternatives[0]}"
}

install_missing() {
    local package packages=()
    if ! command -v apt-get >/dev/null; then
        echo "missing, by their Debian names: ${missing[*]%%|*}" >&2
        echo "there is no apt-get here: install them, then run this again" >&2
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        echo "missing, and there is no sudo; as root run:" >&2
        echo "  apt-get update && apt-get install ${missing[*]%%|*}" >&2
        exit 1
    fi
    local with=
    [ "$(id -u)" -eq 0 ] || with="sudo "
    echo "missing Debian packages: ${missing[*]%%|*}"
    echo "updating the lists of packages: ${with}apt-get update"
    as_root apt-get -qq update </dev/null ||
        echo "apt-get update failed; going on with the lists as they are" >&2
    for package in "${missing[@]}"; do
        packages+=("$(choose "$package")")
    done
    echo "installing: ${with}apt-get install ${packages[*]}"
    as_root apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 \
        install "${packages[@]}" </dev/null >/dev/null
}

for profile in "$@"; do
    case $profile in
    build | test | check | demo | bench | docs | package | arm64) ;;
    *)
        echo "usage: deps.sh build|test|check|demo|bench|docs|package|arm64 ..." >&2
        exit 2
        ;;
    esac
done
[ $# -gt 0 ] || set -- build

probe_missing "$@"
[ "${#missing[@]}" -eq 0 ] && exit 0
install_missing
probe_missing "$@"
if [ "${#missing[@]}" -ne 0 ]; then
    echo "still missing after installing: ${missing[*]%%|*}" >&2
    exit 1
fi
