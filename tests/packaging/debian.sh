#!/usr/bin/env bash
# The Debian packages: made, checked by lintian, installed into a folder, used there,
# and removed without a trace: debian.sh WORK_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
work=$1/debian
root=$work/root
version=$(sed -n 's/^project(leat VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
# Before 1.0 each minor version has an interface, and so a package, of its own.
interface=${version%%.*}
[ "$interface" != 0 ] || interface=${version%.*}
library=libleat$interface

fail() {
    echo "$1" >&2
    exit 1
}

for program in cpack dpkg dpkg-deb dpkg-shlibdeps; do
    command -v "$program" >/dev/null || {
        echo "skipped: $program is not installed"
        exit 77
    }
done

# field PACKAGE NAME: without versions.
field() {
    dpkg-deb -f "$work/packages/$1"_*.deb "$2" | sed 's/ ([^)]*)//g'
}

# depends PACKAGE NAME...: on each of these, which may be of several releases.
depends() {
    local package=$1 depended name
    depended=", $(field "$package" Depends),"
    shift
    for name in "$@"; do
        grep -qE ", ($name)," <<<"$depended" ||
            fail "$package does not depend on $name, but on: $depended"
    done
}

# dpkg with a database of its own, so that what is installed here does not matter.
# Its scripts run ldconfig, for which the folder has no place.
run_dpkg() {
    dpkg --root="$root" --log="$work/dpkg.log" --force-depends \
        --force-script-chrootless "$@" >>"$work/dpkg.out" 2>&1 || {
        cat "$work/dpkg.out"
        fail "dpkg fails: $*"
    }
}

installed_files() {
    find "$root" -path "$root/var" -prune -o ! -type d -print | sed "s|^$root||" | sort
}

check_fields() {
    depends "$library" libc6 'libjpeg[^,]*' 'libpng16[^,]*' 'zlib1g[^,]*'
    depends leat "$library" libc6 libjansson4 liblmdb0
    depends libleat-dev "$library" libjpeg-dev libpng-dev zlib1g-dev
    [ "$(dpkg-deb -I "$work/packages/${library}"_*.deb shlibs)" = \
        "libleat $interface $library (>= $version)" ] || fail "the shlibs file is wrong"
    # Every dependency is a package of this system.
    if command -v apt-get >/dev/null && apt-cache show libc6 >/dev/null 2>&1; then
        apt-get -s install "$work/packages"/*.deb >"$work/apt.out" 2>&1 || {
            cat "$work/apt.out"
            fail "the packages could not be installed by apt-get"
        }
    fi
}

check_lintian() {
    if ! command -v lintian >/dev/null; then
        echo "skipped: lintian (apt-get install lintian)"
        return
    fi
    lintian --allow-root --fail-on error "$work/packages"/*.deb >"$work/lintian.out" \
        2>&1 || {
        cat "$work/lintian.out"
        fail "lintian finds errors"
    }
}

check_installed() {
    local libraries file flags libs
    libraries=$(dirname "$(find "$root/usr/lib" -name libleat.so)")
    for file in bin/leat include/leat.h include/leat/ext/reader.h \
        share/man/man1/leat.1.gz share/man/man1/leat-import.1.gz \
        share/bash-completion/completions/leat share/zsh/vendor-completions/_leat \
        share/fish/vendor_completions.d/leat.fish share/doc/leat/examples/first_batch.c \
        share/doc/leat/docs/from-caffe.md share/doc/leat/README.md \
        share/doc/leat/copyright "share/doc/$library/changelog.Debian.gz"; do
        [ -s "$root/usr/$file" ] || fail "/usr/$file is not installed"
    done
    ! readelf -d "$root/usr/bin/leat" | grep -q PATH || fail "the tool has a RUNPATH"
    LD_LIBRARY_PATH=$libraries "$root/usr/bin/leat" --version
    export PKG_CONFIG_PATH=$libraries/pkgconfig
    read -ra flags < <(pkg-config --cflags leat)
    read -ra libs < <(pkg-config --libs leat)
    "${CC:-cc}" -std=c11 "${flags[@]}" "$here/consumer.c" -o "$work/consumer" \
        "${libs[@]}"
    LD_LIBRARY_PATH=$libraries "$work/consumer"
}

rm -rf "$work/packages" "$root" "$work"/*.out
mkdir -p "$work" "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
touch "$root/var/lib/dpkg/status"
LEAT_PACKAGE_BUILD=$work/build "$source/scripts/package.sh" "$work/packages" \
    -- -DLEAT_WERROR="${LEAT_WERROR-OFF}" >"$work/made"
[ "$(wc -l <"$work/made")" -eq 3 ] || fail "made: $(<"$work/made")"
check_fields
check_lintian
if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: installation of the packages (needs root)"
    exit 0
fi
run_dpkg --install "$work/packages"/*.deb
check_installed
run_dpkg --purge leat libleat-dev "$library"
left=$(installed_files)
[ -z "$left" ] || fail "left behind: $left"
