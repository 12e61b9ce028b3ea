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
seconds=120
export CK_DEFAULT_TIMEOUT=20 CCACHE_NOHASHDIR=1

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

# compile PROGRAM...: in the folder of a job, as the next two.
compile() {
    cmake --build build --parallel 1 --target "$@" >log 2>&1
}

# passes PROGRAM: stops at the first of its tests that fails.
passes() {
    local child
    rm -f tap
    CK_TAP_LOG_FILE_NAME=$PWD/tap timeout $seconds "$1" </dev/null >log 2>&1 &
    child=$!
    while kill -0 $child 2>/dev/null; do
        ! grep -q '^not ok' tap 2>/dev/null || kill $child 2>/dev/null || true
        sleep 0.1
    done
    wait $child
}

# failing PROGRAM...: the first that fails.
failing() {
    local program path
    for program in "$@"; do
        path=$(find build/tests -name "$program" -type f -perm -u+x)
        [ -n "$path" ] || fail "there is no test program $program"
        passes "$path" || {
            echo "$program"
            return
        }
    done
}

# judge PATCH: its name, and the test that notices it or why there is none.
judge() {
    local name verdict noticed tests
    name=$(basename "$1" .patch)
    mapfile -t tests < <(tests_of "$1")
    [ ${#tests[@]} -gt 0 ] || fail "$name names no tests"
    if ! patch -d tree -p1 -s --no-backup-if-mismatch -r - <"$1" >log 2>&1; then
        verdict='DOES NOT APPLY'
    elif ! compile "${tests[@]}"; then
        verdict='DOES NOT COMPILE'
    else
        noticed=$(failing "${tests[@]}")
        verdict=${noticed:-NOT NOTICED}
    fi
    printf '%-30s %s\n' "$name" "$verdict"
    [[ $verdict != test_* ]] || echo "$name" >>noticed
    [[ $verdict = test_* ]] || cat log
    sed -n 's/^+++ b\///p' "$1" | while read -r file; do
        cp "$root/$file" "tree/$file"
    done
}

# job PATCH...: judges them in a tree and a build of its own, in the current folder.
job() {
    local programs noticed patch launcher=()
    export CCACHE_BASEDIR=$PWD
    mkdir tree
    (cd "$root" && git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do
            [ ! -f "$file" ] || printf '%s\0' "$file"
        done | tar -c --null -T -) | tar -x -C tree
    mapfile -t programs < <(tests_of "$@")
    ! command -v ccache >/dev/null || launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    cmake -S tree -B build -G Ninja -DCMAKE_BUILD_TYPE=Debug "${launcher[@]}" \
        -DCMAKE_C_FLAGS_DEBUG=-O0 -DLEAT_CUDA=OFF -DLEAT_BUILD_TOOL=OFF \
        -DLEAT_BUILD_EXAMPLES=OFF -DLEAT_BUILD_BENCHMARKS=OFF >log
    # By turns: where there is ccache, the first leaves its objects to the others.
    flock ../lock cmake --build build --parallel "$(nproc)" --target "${programs[@]}" \
        >log 2>&1 || { tail -n 20 log && fail "the tree does not compile"; }
    noticed=$(failing "${programs[@]}")
    [ -z "$noticed" ] || { tail -n 20 log && fail "$noticed fails as it is"; }
    for patch in "$@"; do
        judge "$patch"
    done
}

# Objects know of a change by its time alone: all is made anew.
rm -rf "$out"
root=$PWD
jobs=$(nproc)
[ "$jobs" -le ${#patches[@]} ] || jobs=${#patches[@]}
for ((i = 0; i < jobs; i++)); do
    mkdir -p "$out/$i"
    mine=()
    for ((k = i; k < ${#patches[@]}; k += jobs)); do
        mine+=("${patches[k]}")
    done
    (cd "$out/$i" && job "${mine[@]}") >"$out/$i/output" 2>&1 &
done
wait
cat "$out"/*/output
bad=$((${#patches[@]} - $(cat "$out"/*/noticed 2>/dev/null | wc -l)))
echo "${#patches[@]} mutants, $bad of them not as they should be"
[ $bad -eq 0 ]
