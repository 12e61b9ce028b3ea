#!/usr/bin/env bash
# What scripts/bundle.sh packs runs with nothing but libc around it, wherever it
# is moved: bundle.sh BUILD WORK_DIR
set -eu
build=$1
work=$2/bundle
source=$(cd "$(dirname "$0")/../.." && pwd)

fail() {
    echo "$1" >&2
    exit 1
}

# Which libraries a program of the bundle loads, as the loader itself says, and not
# those of its launcher before it.
loaded() {
    env -i LD_DEBUG=files "$@" 2>&1 >"$work/output" | awk '
        /transferring control: / { last = libraries; libraries = "" }
        sub(/.*calling init: /, "") { libraries = libraries $0 "\n" }
        END { if (last ~ /\/libleat/) printf "%s", last }' | sort -u
}

# foreign BUNDLE FILE: those that neither it nor libc has. Of libc's, those that are
# empty since glibc 2.34 are not taken for granted.
empty='|dl|rt|pthread|util'
[ "$(getconf GNU_LIBC_VERSION | tr -dc '0-9\n')" -lt 234 ] || empty=
foreign() {
    grep -v "^$1/" "$2" | grep -vE \
        "/(ld-linux[^/]*|lib(c|m|mvec|resolv$empty)\.so[^/]*)\$"
}

# ctest, where it is run in a build, begins the log of its last run anew.
logs() {
    find "$build/Testing" -name 'LastTest.log*' -exec ls -i {} + 2>/dev/null || true
}

rm -rf "$work"
mkdir -p "$work"
before=$(logs)
"$source/scripts/bundle.sh" "$build" "$work/first" >"$work/log"
[ "$(logs)" = "$before" ] || fail "the log of the last test run is not left alone"
grep -q '^machine: .*glibc [0-9]' "$work/log" || fail "no libc is named"
# Of CUDA: what it was built with, and what that needs; or that it was not.
if grep -q '^LEAT_CUDA_RUNTIME:[A-Z]*=.' "$build/CMakeCache.txt"; then
    version=$(sed -n 's/^LEAT_CUDA_RUNTIME:[A-Z]*=//p' "$build/CMakeCache.txt")
    grep -qE "^cuda: runtime ${version//./\\.}, .*[0-9] or newer$" \
        "$work/first/BUNDLE" || fail "CUDA's runtime and driver are not named"
    grep -qE '^gpus: ([0-9, ]+; newer ones by PTX of [0-9]+|all|all-major|native)' \
        "$work/first/BUNDLE" || fail "the GPUs with machine code are not named"
else
    grep -q '^cuda: none' "$work/first/BUNDLE" || fail "CUDA's absence is not told"
fi
# A build without tests, such as the demo's, has the tool to pack.
mkdir "$work/tool"
cp "$build/CMakeCache.txt" "$build/leat" "$work/tool/"
LD_LIBRARY_PATH=$build/src "$source/scripts/bundle.sh" "$work/tool" "$work/alone" \
    >"$work/log" || fail "a build without tests cannot be packed"
[ -x "$work/alone/bin/leat" ] || fail "a build without tests has no tool"
mkdir -p "$work/a place"
mv "$work/first" "$work/a place/moved"
bundle=$(readlink -f "$work/a place/moved")

"$source/tests/packaging/hardening.sh" --paths "$bundle/programs" ||
    fail "the programs of the bundle load libraries from elsewhere"
loaded "$bundle/bin/leat" --version >"$work/loaded"
[ "$(cat "$work/output")" = "$("$build/leat" --version)" ] ||
    fail "the packed tool does not say its version"
sed "s|^$bundle/bin/../|$bundle/|" "$work/loaded" >"$work/from"
grep -q "^$bundle/lib/libleat" "$work/from" ||
    fail "the packed tool does not load the packed libleat"
if foreign "$bundle" "$work/from"; then
    fail "the libraries above are not out of the bundle"
fi

# A link to the launcher finds the folder; the tool works to the end.
ln -s "$bundle/bin/leat" "$work/leat"
env -i "$work/leat" synth noise --count 8 --shape 3,8,8 --seed 1 "$work/lmdb" \
    >/dev/null
env -i "$work/leat" dump --reader "lmdb:$work/lmdb" --batch 4 --batches 2 \
    --out "$work/dump" >/dev/null
[ -s "$work/dump/data.npy" ] || fail "the packed tool has dumped nothing"

# gpu_check.sh finds all that it runs, and needs bash and coreutils alone.
mkdir "$work/path"
for command in bash basename cat cp date dirname env head ln mkdir mktemp mv readlink rm \
    sha256sum sleep sort tail tee timeout touch tr; do
    ln -s "$(command -v $command)" "$work/path/"
done
status=0
env -i PATH="$work/path" "$bundle/gpu_check.sh" >"$work/output" 2>&1 || status=$?
if [ $status -eq 77 ]; then
    grep -q '^skipped: there is no GPU' "$work/output" || fail "the skip is not told"
elif [ ! -d "$bundle/results" ]; then
    fail "the packed check of a GPU does not run: $(cat "$work/output")"
fi
for script in gpu_check.sh gpu_stages.sh; do
    cmp "$bundle/$script" "$source/scripts/$script" || fail "$script is another one"
done
"$source/scripts/bundle.sh" --gpu "$build" "$work/gpu" >"$work/log"
[ "$(cd "$work/gpu/bin" && echo bench_*)" = "$(cd "$bundle/bin" && echo bench_kernel*)" ] ||
    fail "the bundle for a GPU has other benchmarks"
cmp "$work/gpu/gpu_tests" "$bundle/gpu_tests" || fail "it has other tests"
rm -r "$work/gpu"

# Benchmarks and GPU tests are there where they were built.
for program in "$build"/benchmarks/bench_*; do
    if [ -f "$program" ] && [ -x "$program" ] &&
        [ ! -x "$bundle/bin/${program##*/}" ]; then
        fail "${program##*/} is not packed"
    fi
done
if grep -rqs 'LABELS "\?gpu' "$build/tests" --include=CTestTestfile.cmake; then
    grep -q '^test_devices cuda:0$' "$bundle/gpu_tests" ||
        fail "the GPU tests are not packed"
    env -i CK_DEFAULT_TIMEOUT=120 "$bundle/bin/test_devices" cpu >/dev/null ||
        fail "the packed test of devices fails on the CPU"
fi
if grep ' /' "$bundle/gpu_tests" "$bundle/graph_tests"; then
    fail "the GPU tests above are of the machine that built them"
fi
if [ -x "$build/examples/train_cuda" ]; then
    for list in gpu_tests graph_tests; do
        words=()
        while read -ra line; do
            [ "${line[0]}" != test_cuda_examples.sh ] || words=("${line[@]:1}")
        done <"$bundle/$list"
        [ ${#words[@]} -ge 4 ] || fail "the examples are not in $list"
        status=0
        env -i PATH="$work/path" "$bundle/bin/test_cuda_examples.sh" \
            "${words[@]/#/$bundle/}" >"$work/output" 2>&1 || status=$?
        [ $status -eq 0 ] || [ $status -eq 77 ] ||
            fail "the packed examples fail: $(cat "$work/output")"
    done
fi

# What is missing shows, and what is no bundle is left alone.
library=$(cd "$bundle/lib" && echo liblmdb*)
rm "$bundle/lib/$library"
loaded "$bundle/bin/leat" --version >"$work/loaded" || true
sed "s|^$bundle/bin/../|$bundle/|" "$work/loaded" >"$work/from"
if [ -s "$work/from" ] && ! foreign "$bundle" "$work/from" >/dev/null; then
    fail "a library taken out of the bundle is not missed"
fi
mkdir "$work/else"
touch "$work/else/kept"
if "$source/scripts/bundle.sh" "$build" "$work/else" 2>"$work/error"; then
    fail "a folder that is no bundle was replaced"
fi
grep -q 'is no bundle' "$work/error" || fail "the refusal does not say why"
[ -e "$work/else/kept" ] || fail "a folder that is no bundle was emptied"
if "$source/scripts/bundle.sh" "$work" "$work/none" 2>"$work/error"; then
    fail "a folder that is no build was packed"
fi
grep -q 'is no build folder' "$work/error" || fail "the error is not told"
[ -z "$(find "$work" -maxdepth 1 -name 'none*')" ] || fail "something was left"
