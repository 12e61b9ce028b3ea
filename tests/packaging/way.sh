#!/usr/bin/env bash
# Takes leat in one way, as another project would: way.sh WAY WORK_DIR
set -eu
way=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
kind=${way##*_}
prefix=$work/prefix_$kind
build=$work/$way
quiet=(-DCMAKE_INSTALL_MESSAGE=LAZY -DLEAT_CUDA_ARCHITECTURES=80
    -DLEAT_CUDA_FAST_COMPILE=ON)
# As the build around the tests, so that a compiler's cache has the objects.
alike=(-DCMAKE_BUILD_TYPE="${LEAT_BUILD_TYPE-}" -DLEAT_WERROR="${LEAT_WERROR-OFF}")

fail() {
    echo "$1" >&2
    exit 1
}

# The log is worth reading only where the step failed.
run() {
    local log=$work/$way.log
    "$@" >"$log" 2>&1 && return
    cat "$log"
    fail "failed: $*"
}

configure_consumer() {
    run cmake -S "$here/$1" -B "$build" "${quiet[@]}" "${@:2}"
}

build_consumer() {
    configure_consumer "$@" "${alike[@]}"
    run cmake --build "$build" --target consumer_c consumer_cpp -j 2
    "$build/consumer_c"
    "$build/consumer_cpp"
}

# compiled SOURCE [CONFIG]: the command that compiles a file named by its end, in
# whatever directory the generator has it run.
compiled() {
    jq -r --arg file "$1" --arg config "${2-}" '.[]
        | select(.file | endswith($file)) | "cd \(.directory | @sh) && \(.command)"
        | select($config == "" or contains("/" + $config + "/"))' \
        "$build/compile_commands.json"
}

is_optimised() {
    local found
    found=$(compiled "$1" "${3-}" | grep -oE ' -O[0-9a-z]*' | tail -n 1) || true
    [ "$found" = "$2" ] ||
        fail "$way: $1 ${3-} is compiled with '$found', not with '$2'"
}

# What the preprocessor makes of it, as few C libraries warn of it unoptimised.
is_fortified() {
    local command found
    command=$(compiled "$1")
    found=$(eval "${command%% -o *} -dM -E '$source/$1'" |
        sed -n 's/^#define _FORTIFY_SOURCE //p')
    [ "$found" = "$2" ] || fail "$way: $1 has _FORTIFY_SOURCE '$found', not '$2'"
}

# Most projects say no build type. leat is optimised all the same, and installed
# only where it is asked for.
check_add_subdirectory() {
    local leat=(-DLEAT_SOURCE="$source" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)
    rm -rf "$build"
    configure_consumer add_subdirectory "${leat[@]}"
    is_optimised src/base/error.c ' -O2'
    is_fortified src/base/error.c 2
    is_optimised consumer.c ''
    build_consumer add_subdirectory "${leat[@]}"
    rm -rf "$prefix"
    run cmake --install "$build" --prefix "$prefix"
    [ "$(cd "$prefix" && find . -type f)" = ./bin/consumer_c ] ||
        fail "installed with the project around it: $(cd "$prefix" && find .)"
}

# Flags of the user's come last, and none of leat's warns about them.
check_fetch_content() {
    local leat=(-DLEAT_SOURCE="$source" -DLEAT_INSTALL=ON
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)
    rm -rf "$build"
    configure_consumer fetch_content "${leat[@]}" -DCMAKE_C_FLAGS=-O0 \
        -DLEAT_WERROR=ON
    is_optimised src/base/error.c ' -O0'
    is_fortified src/base/error.c ''
    run bash -c "$(compiled src/base/error.c)"
    build_consumer fetch_content "${leat[@]}" -DCMAKE_C_FLAGS=
    rm -rf "$prefix"
    run cmake --install "$build" --prefix "$prefix"
    [ -f "$prefix/include/leat.h" ] || fail "LEAT_INSTALL=ON does not install leat"
}

# A generator of several build types has no build type either.
check_build_types() {
    command -v ninja >/dev/null || {
        echo "skipped: there is no ninja, whose generator has several build types"
        exit 77
    }
    rm -rf "$build"
    run cmake -S "$here/add_subdirectory" -B "$build" -G 'Ninja Multi-Config' \
        -DLEAT_SOURCE="$source" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    is_optimised src/base/error.c '' Debug
    is_optimised src/base/error.c ' -O3' Release
    is_optimised src/base/error.c ' -O2' RelWithDebInfo
}

# The prefix given at install is not the one given at configure, and it is moved
# afterwards: what is installed must not remember either.
install_prefix() {
    local shared=$1
    rm -rf "$build" "$prefix" "$prefix.first"
    run cmake -S "$source" -B "$build" "${quiet[@]}" "${alike[@]}" \
        -DLEAT_BUILD_TESTS=OFF \
        -DLEAT_BUILD_EXAMPLES=OFF -DLEAT_BUILD_BENCHMARKS=OFF \
        -DLEAT_BUILD_TOOL="$shared" -DBUILD_SHARED_LIBS="$shared" \
        -DCMAKE_INSTALL_PREFIX=/nonexistent
    run cmake --build "$build" -j 2
    run cmake --install "$build" --prefix "$prefix.first"
    mv "$prefix.first" "$prefix"
}

library_dir() {
    dirname "$(find "$prefix" -name "libleat.*" | head -n 1)"
}

build_with_pkg_config() {
    local flags libs static=()
    [ "$kind" = static ] && static=(--static)
    PKG_CONFIG_PATH=$(library_dir)/pkgconfig
    export PKG_CONFIG_PATH
    mkdir -p "$build"
    read -ra flags < <(pkg-config --cflags leat)
    read -ra libs < <(pkg-config "${static[@]}" --libs leat)
    run "${CC:-cc}" -std=c11 "${flags[@]}" "$here/consumer.c" \
        -o "$build/consumer_c" "${libs[@]}"
    run "${CXX:-c++}" -std=c++11 "${flags[@]}" "$here/consumer.cpp" \
        -o "$build/consumer_cpp" "${libs[@]}"
    LD_LIBRARY_PATH=$(library_dir)
    export LD_LIBRARY_PATH
    "$build/consumer_c"
    "$build/consumer_cpp"
}

# Everything exported is public, and everything declared public is there. The
# library needs the codecs, zlib, libsnappy and libc alone.
check_symbols() {
    local library version soname exported declared needed
    library=$(library_dir)/libleat.so
    needed=$(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }')
    if grep -Ev '^(libjpeg|libpng16|libz|libsnappy|libm|libc|ld-linux[^.]*)\.so' <<<"$needed"; then
        fail "the library needs what is above, expected libjpeg, libpng, zlib, libsnappy and libc"
    fi
    version=$(PKG_CONFIG_PATH=$(library_dir)/pkgconfig pkg-config --modversion leat)
    # Before 1.0 each minor version has an interface of its own.
    soname=libleat.so.${version%%.*}
    [ "${version%%.*}" != 0 ] || soname=libleat.so.${version%.*}
    objdump -p "$library" | grep -q "SONAME *$soname$" ||
        fail "the soname is not $soname"
    exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | sort)
    [ -n "$exported" ] || fail "nothing is exported"
    if grep -Ev '^leat_[a-z0-9]' <<<"$exported"; then
        fail "the symbols above are exported and should be hidden"
    fi
    declared=$(cat "$prefix"/include/leat/*.h "$prefix"/include/leat/ext/*.h |
        tr '\n' ' ' | grep -oE 'LEAT_API [^;(]*\(' |
        grep -oE 'leat_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u)
    [ -n "$declared" ] || fail "no public function was found in the headers"
    if ! diff <(echo "$declared") <(echo "$exported"); then
        fail "declared (<) and exported (>) functions differ"
    fi
    wc -l <<<"$exported" | sed 's/$/ public symbols/'
}

check_tool() {
    [ -x "$prefix/bin/leat" ] || fail "no tool was installed"
    "$prefix/bin/leat" --version
    "$here/hardening.sh" --paths "$prefix"
    check_links
}

# Links of the installed documents lead to files.
check_links() {
    local document target n=0
    while IFS=: read -r document target; do
        [ -e "$(dirname "$document")/$target" ] ||
            fail "$document: the link to $target leads nowhere"
        n=$((n + 1))
    done < <(find "$prefix/share/doc" -name '*.md' -exec grep -oH '](\([^)#:]*\))' {} + |
        sed 's/:](\(.*\))$/:\1/')
    [ "$n" -ge 20 ] || fail "only $n links are in the installed documents"
}

# Wrong options are refused in configure, with a sentence.
refuses() {
    local text=$1 log=$work/$way.log
    shift
    rm -rf "$build"
    if cmake -S "$source" -B "$build" "$@" >"$log" 2>&1; then
        fail "accepted: $*"
    fi
    tr -s '\n ' '  ' <"$log" | grep -qF "$text" || {
        cat "$log"
        fail "the error of $* does not say: $text"
    }
}

check_options() {
    local asked
    refuses "CUDA Toolkit (nvcc, cudart) was not found" -DLEAT_CUDA=ON \
        -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
    # An nvcc whose toolkit is not taken: the scripts of CI do not go on without.
    mkdir -p "$work/nvcc"
    printf '#!/bin/sh\nexit 1\n' >"$work/nvcc/nvcc"
    chmod +x "$work/nvcc/nvcc"
    asked=$(PATH=$work/nvcc:$PATH "$source/scripts/cuda.sh")
    refuses "CUDA Toolkit (nvcc, cudart) was not found" \
        "${asked:--DLEAT_CUDA=AUTO}" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
    refuses "must be AUTO, ON or OFF" -DLEAT_CUDA=PERHAPS
    PKG_CONFIG_LIBDIR=/nonexistent refuses \
        "apt-get install libjpeg-dev liblmdb-dev" \
        -DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON -DLEAT_BUILD_TESTS=OFF \
        -DLEAT_BUILD_TOOL=OFF
    rm -rf "$build"
    run cmake -S "$source" -B "$build" -G "Unix Makefiles" -DCPU_ONLY=ON \
        -DLEAT_BUILD_EXAMPLES=OFF -DLEAT_BUILD_TESTS=OFF
    ! grep -rqE 'device_cuda|cudart' "$build/src" ||
        fail "a build for the CPU alone compiles files of cuda/"
    if (cd "$build" && cpack -G DEB) >"$work/$way.log" 2>&1; then
        fail "packages are made of a build that is not for /usr"
    fi
    grep -q 'Run scripts/package.sh' "$work/$way.log" ||
        fail "the refusal to pack does not say what to do: $(<"$work/$way.log")"
}

# 0.x promises no more than its minor version: neither an older nor a newer one.
check_find_package() {
    local wanted
    rm -rf "$build"
    build_consumer find_package -DCMAKE_PREFIX_PATH="$prefix"
    for wanted in 0.0 0.2 1.0; do
        rm -rf "$build"
        if cmake -S "$here/find_package" -B "$build" "${quiet[@]}" \
            -DCMAKE_PREFIX_PATH="$prefix" -DLEAT_WANTED=$wanted \
            >"$work/$way.log" 2>&1; then
            fail "find_package(leat $wanted) takes the version that is installed"
        fi
        grep -q 'considered but not accepted' "$work/$way.log" ||
            fail "find_package(leat $wanted) fails for another reason: $(<"$work/$way.log")"
    done
}

mkdir -p "$work"
case $way in
add_subdirectory | fetch_content | build_types) "check_$way" ;;
install_shared) install_prefix ON ;;
install_static) install_prefix OFF ;;
find_package_*) check_find_package ;;
pkg_config_*) build_with_pkg_config ;;
symbols | tool)
    prefix=$work/prefix_shared
    "check_$way"
    ;;
options) check_options ;;
*) fail "no such way: $way" ;;
esac
