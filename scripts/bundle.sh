#!/usr/bin/env bash
# Packs a build with the shared libraries that it needs, libc left out, into a
# folder that can be carried to a machine without these packages.
#   bundle.sh [--gpu] [BUILD [FOLDER]]       (build, out/bundle)
# FOLDER/bin has the tool, the benchmarks and the GPU tests, as far as they were
# built, which FOLDER/gpu_check.sh runs; an earlier bundle there is replaced. Besides
# libc all this needs bash and coreutils. --gpu leaves out the benchmarks that
# gpu_check.sh does not run.
set -eu

fail() {
    echo "bundle.sh: $1" >&2
    exit "${2:-1}"
}

benchmarks='bench_*'
case ${1-} in
--gpu)
    benchmarks=bench_kernel
    shift
    ;;
-h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
case ${1-} in
-*) fail "$1 is no option; see bundle.sh --help" 2 ;;
esac
[ $# -le 2 ] || fail "give a build and a folder, no more" 2
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build}
folder=${2:-$here/out/bundle}
[ -f "$build/CMakeCache.txt" ] || fail "$build is no build folder"
[ -x "$build/leat" ] || fail "$build has no tool; build it with scripts/build.sh"
if [ -e "$folder" ] && [ ! -f "$folder/BUNDLE" ]; then
    fail "$folder is there already and is no bundle"
fi
build=$(cd "$build" && pwd)
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/lib" "$work/programs"

# is_libc NAME PATH: these belong to the loader of the machine where the bundle runs.
# Some of them are empty since glibc 2.34, and a machine need not have them: such
# a one, which asks for nothing private of libc, is packed.
is_libc() {
    case $1 in
    ld-linux* | libc.so.* | libm.so.* | libmvec.so.* | libresolv.so.*) return 0 ;;
    libpthread.so.* | libdl.so.* | librt.so.* | libutil.so.*)
        objdump -p "$2" | grep -q GLIBC_PRIVATE
        return
        ;;
    esac
    return 1
}

# needed PROGRAM: "name path" of each library that it loads.
needed() {
    ldd "$1" | awk '$2 == "=>" { print $1, $3 == "not" ? "" : $3 }'
}

pack_program() {
    local name path program=$1
    cp "$program" "$work/programs/"
    while read -r name path; do
        [ -n "$path" ] || fail "$program needs $name, which is not found"
        is_libc "$name" "$path" || [ -e "$work/lib/$name" ] ||
            cp -L "$path" "$work/lib/$name"
    done < <(needed "$program")
    # The loader's variable reaches what libraries need themselves, too.
    cat >"$work/bin/${program##*/}" <<'LAUNCHER'
#!/usr/bin/env bash
self=$(readlink -f "$0")
root=${self%/*}/..
LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$root/programs/${self##*/}" "$@"
LAUNCHER
    chmod 755 "$work/bin/${program##*/}"
}

# pack_word PATH: what a test's command names, as the bundle has it. Words that
# are no paths stay as they are; bin/ and data/ are of the bundle.
pack_word() {
    local word=$1
    if [[ $word != /* ]]; then
        echo "$word"
    elif [ "$(head -c 2 "$word")" = '#!' ]; then
        cp "$word" "$work/bin/"
        echo "bin/${word##*/}"
    elif [ -x "$word" ]; then
        [ -e "$work/bin/${word##*/}" ] || pack_program "$word"
        echo "bin/${word##*/}"
    else
        mkdir -p "$work/data"
        cp "$word" "$work/data/"
        echo "data/${word##*/}"
    fi
}

# pack_test LIST WORD...: a test's command, in one line of the bundle's words.
pack_test() {
    local list=$1 word line=()
    shift
    for word in "$@"; do
        [[ $word != /* ]] || [ -e "$word" ] || {
            echo "bundle.sh: left out, as $word is not built: ${1##*/}" >&2
            return
        }
    done
    for word in "$@"; do
        line+=("$(pack_word "$word")")
    done
    line[0]=${line[0]#bin/}
    echo "${line[*]}" >>"$work/$list"
}

# pack_tests LIST ARGUMENT...: the commands of the tests that ctest finds with these,
# one a line, programs first. ctest is asked in a copy of what it reads, since it
# empties the log of a run that it finds.
pack_tests() {
    local list=$1 copy words
    shift
    copy=$(readlink -f "$work")/ctest
    mkdir "$copy"
    (cd "$build" && find . -name work -prune -o -name CTestTestfile.cmake -print0 |
        xargs -0 -r cp --parents -t "$copy")
    ctest --test-dir "$copy" -N -V "$@" 2>/dev/null |
        sed -n 's/^[0-9]*: Test command: //p' | tr -d '"' | sort -u >"$work/commands"
    rm -r "$copy"
    : >"$work/$list"
    while read -ra words; do
        [ ${#words[@]} -gt 0 ] || {
            echo "bundle.sh: $list lacks a test, as its program is not built" >&2
            continue
        }
        pack_test "$list" "${words[@]}"
    done <"$work/commands"
    rm "$work/commands"
}

# Everything must come out of the bundle once its launchers are used.
check() {
    local name path program
    for program in "$work"/programs/*; do
        while read -r name path; do
            is_libc "$name" "$path" || [ "$path" = "$work/lib/$name" ] ||
                fail "${program##*/} would take $name from '$path'"
        done < <(LD_LIBRARY_PATH=$work/lib needed "$program")
    done
}

programs=("$build/leat")
for program in "$build"/benchmarks/$benchmarks; do
    [ -f "$program" ] && [ -x "$program" ] && programs+=("$program")
done
while read -r program; do
    pack_program "$program"
done < <(printf '%s\n' "${programs[@]}" | sort -u)
pack_tests gpu_tests -L '^gpu$' -LE '^graphs$'
pack_tests graph_tests -L '^graphs$' -LE '^cuda_double$'
check

cp "$here/scripts/gpu_check.sh" "$here/scripts/gpu_stages.sh" "$work/"
cp "$here/LICENSE" "$work/"
libc=$(objdump -T "$work"/programs/* "$work"/lib/* 2>/dev/null |
    grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
# What CUDA's runtime, of MAJOR.MINOR, asks of the machine: its minor versions run on
# the drivers that came with the first of them.
cuda_needs() {
    case $1 in
    '') echo "none; this build is for the CPU alone" ;;
    11.*) echo "runtime $1, driver 450 or newer" ;;
    12.*) echo "runtime $1, driver 525 or newer" ;;
    13.*) echo "runtime $1, driver 580 or newer" ;;
    *) echo "runtime $1, a driver for CUDA ${1%%.*}.0 or newer" ;;
    esac
}
cuda=$(sed -n 's/^LEAT_CUDA_RUNTIME:[A-Z]*=//p' "$build/CMakeCache.txt")
{
    echo "leat: $("$build/leat" --version)"
    echo "commit: $(git -C "$here" describe --always --dirty 2>/dev/null ||
        echo unknown)"
    echo "machine: $(uname -m), glibc ${libc#GLIBC_} or newer"
    echo "cuda: $(cuda_needs "$cuda")"
    [ -z "$cuda" ] ||
        echo "gpus: $(sed -n 's/^LEAT_CUDA_GPUS:[A-Z]*=//p' "$build/CMakeCache.txt")"
} >"$work/BUNDLE"
chmod 755 "$work"
rm -rf "$folder"
mv "$work" "$folder"
trap - EXIT
cat "$folder/BUNDLE"
printf '%s: %d programs, %d libraries, %s\n' "$folder" \
    "$(find "$folder/programs" -type f | wc -l)" \
    "$(find "$folder/lib" -type f | wc -l)" "$(du -sh "$folder" | cut -f 1)"
