#!/usr/bin/env bash
# scripts/soak.sh: a few layers by the real programs, and what it says of others
# that hold, fail and skip: test_soak.sh TOOL
set -u
build=$(cd "$(dirname "$1")" && pwd)
soak=$(cd "$(dirname "$0")/../.." && pwd)/scripts/soak.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
    echo "failed: $*"
    [ ! -e output ] || cat output
    failed=1
}

# soaks STATUS ARGUMENT...: where nothing is to be built.
soaks() {
    local expected=$1 status=0
    shift
    PATH=$work/path:$PATH "$soak" --build "$work/$kind" "$@" >output 2>&1 || status=$?
    [ $status -eq "$expected" ] || fail "status $status, not $expected, of: $*"
}

says() {
    grep -qE -- "$1" output || fail "it does not say: $1"
}

mkdir -p path real stub/tests/cuda_double
printf '#!/bin/sh\nexit 0\n' >path/cmake
chmod +x path/cmake
ln -s "$build/tests" "$build/leat" real
touch real/CMakeCache.txt stub/CMakeCache.txt

kind=real
LEAT_STORM=4 LEAT_REPLACEMENTS=2 soaks 0 --proofs --minutes 0 replacements storms
says '^commit [^ ]*, seed [0-9]*, LEAT_STORM=4 .* LEAT_REPLACEMENTS=2,'
for name in test_replacement test_layer_stops test_storms; do
    says "^held +$name .* 100%: Checks: [0-9]+, Failures: 0, Errors: 0"
done
says '^3 held, 0 failed, 0 skipped$'
grep -q 100% real/proofs/test_storms.log || fail "no log"

# Programs that do as they are told, and say what they were given.
kind=stub
cat >program <<'STUB'
#!/bin/sh
echo "STORM $LEAT_STORM, FAULTS $LEAT_FAULTS, REPLACEMENTS $LEAT_REPLACEMENTS" \
    "x$CK_TIMEOUT_MULTIPLIER: 100%: Checks: 1"
echo "seed given: $*, configurations"
read -r status <"$0.status" || exit 0
[ "$status" != 77 ] || echo "skipped: it was told to"
[ "$status" != 0 ] || echo "skipped: a part of it"
exit "$status"
STUB
chmod +x program
for name in test_layer_stops test_storms test_failing_calls test_failing_tool \
    test_replacement soak chains cuda_double/soak; do
    cp program stub/tests/$name
    : >stub/tests/$name.status
done
unset LEAT_STORM LEAT_FAULTS LEAT_REPLACEMENTS LEAT_KILL_ROUNDS CK_TIMEOUT_MULTIPLIER
soaks 0 --proofs storms faults replacements soak --minutes 2 --seed 5
says '^held +test_storms .*STORM 10000, FAULTS all, REPLACEMENTS 5000 x60'
says '^held +soak +.*--seed 5 --seconds 120'
says '^held +soak-double +.*--seed 5 --seconds 120'
says '^7 held, 0 failed, 0 skipped$'
soaks 0 --minutes 3 --seed 6
says '^seed given: --seed 6 --seconds 180'
soaks 0 --minutes 3 --seed 6 --chains
says '^seed given: --seed 6 --seconds 180'
soaks 0 --proofs chains --minutes 1 --seed 7
says '^held +chains +.*--seed 7 --seconds 60'

# What failed is told, and the others are run all the same.
echo 134 >stub/tests/test_layer_stops.status
echo 77 >stub/tests/test_failing_calls.status
echo 0 >stub/tests/test_failing_tool.status
soaks 1 --proofs storms faults
says '^FAILED +test_layer_stops .*status 134; the end of '
says '^held +test_storms '
says '^skipped +test_failing_calls +- +it was told to$'
says '^ +without: a part of it$'
says '^2 held, 1 failed, 1 skipped$'
echo 77 >stub/tests/test_failing_tool.status
soaks 77 --proofs faults
says '^0 held, 0 failed, 2 skipped$'

# Without spin there is nothing to search the models with.
if ! command -v spin >/dev/null; then
    soaks 77 --proofs models
    says '^skipped +models +- +spin is not installed'
fi

for wrong in '--proofs storm' '--storms' 'storms' '--minutes'; do
    # shellcheck disable=SC2086
    soaks 2 $wrong
    [ "$(wc -l <output)" -eq 1 ] || fail "not one line of: $wrong"
done
exit $failed
