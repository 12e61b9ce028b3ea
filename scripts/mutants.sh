#!/usr/bin/env bash
# Breaks the rules of the hand-off to a device, one after the other, each by a patch
# of tests/mutants in a copy of the tree, and expects the tests that it names to fail:
#   mutants.sh [WORD...]   only the patches with one of the words in their names
# A patch that no longer applies, or compiles, or that no test notices, is an error.
# With options it makes mutants by rules instead; --help says more:
#   mutants.sh --file SRC.c [--sample N] [--seconds S] [--seed N] [--out DIR] [--jobs J]
#   mutants.sh --since COMMIT [...]
#   mutants.sh --self-test
set -eu
here=$(dirname "$0")
[[ ${1-} != -* ]] || exec python3 "$here/mutate.py" "$@"
cd "$here/.."
out=${LEAT_MUTANTS_BUILD:-$PWD/build/mutants}/chosen
tree=$out/tree
seconds=120
export CK_DEFAULT_TIMEOUT=20

fail() {
    echo "mutants.sh: $1" >&2
    exit 1
}

patches=()
for patch in tests/mutants/*.patch; do
    [ $# -eq 0 ] || grep -qFf <(printf '%s\n' "$@") <<<"${patch##*/}" || continue
    patches+=("$PWD/$patch")
done
[ ${#patches[@]} -gt 0 ] || fail "no patch has such a name"

# tests_of PATCH...: the programs that are to notice it.
tests_of() {
    sed -n 's/^Tests: //p' "$@" | tr ' ' '\n' | sort -u
}

# compile PROGRAM...
compile() {
    cmake --build "$out/build" --target "$@" >"$out/log" 2>&1
}

# failing PROGRAM...: the first that fails.
failing() {
    local program path
    for program in "$@"; do
        path=$(find "$out/build/tests" -name "$program" -type f -perm -u+x)
        [ -n "$path" ] || fail "there is no test program $program"
        timeout $seconds "$path" </dev/null >"$out/log" 2>&1 || {
            echo "$program"
            return
        }
    done
}

# Objects know of a change by its time alone: all is made anew.
rm -rf "$out"
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do
        [ ! -f "$file" ] || printf '%s\0' "$file"
    done | tar -c --null -T - | tar -x -C "$tree"
mapfile -t programs < <(tests_of "${patches[@]}")
cmake -S "$tree" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG=-O0 -DLEAT_CUDA=OFF -DLEAT_BUILD_TOOL=OFF \
    -DLEAT_BUILD_EXAMPLES=OFF -DLEAT_BUILD_BENCHMARKS=OFF >"$out/log"
compile "${programs[@]}" || { tail -n 20 "$out/log" && fail "the tree does not compile"; }
noticed=$(failing "${programs[@]}")
[ -z "$noticed" ] || { tail -n 20 "$out/log" && fail "$noticed fails as it is"; }

bad=0
for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch)
    mapfile -t tests < <(tests_of "$patch")
    [ ${#tests[@]} -gt 0 ] || fail "$name names no tests"
    if ! patch -d "$tree" -p1 -s --no-backup-if-mismatch -r - <"$patch" \
        >"$out/log" 2>&1; then
        verdict='DOES NOT APPLY'
    else
        verdict='NOT NOTICED'
        compile "${tests[@]}" || verdict='DOES NOT COMPILE'
        [ "$verdict" != 'NOT NOTICED' ] || noticed=$(failing "${tests[@]}")
        [ -z "$noticed" ] || verdict=$noticed
    fi
    case $verdict in
    test_*) ;;
    *)
        bad=$((bad + 1))
        cat "$out/log"
        ;;
    esac
    noticed=
    printf '%-30s %s\n' "$name" "$verdict"
    sed -n 's/^+++ b\///p' "$patch" | while read -r file; do
        cp "$file" "$tree/$file"
    done
done
echo "${#patches[@]} mutants, $bad of them not as they should be"
[ $bad -eq 0 ]
