#!/usr/bin/env bash
# A fuzz target that aborts is a failed test to ctest, not a skipped one:
#   planted_abort.sh CTEST TARGET OPTION...
set -eu
ctest=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-planted.XXXXXX")
trap 'rm -rf "$work"' EXIT
{
    printf 'add_test(planted "%s"' "$1"
    printf ' "%s"' "${@:2}" "-artifact_prefix=$work/"
    printf ')\nset_tests_properties(planted PROPERTIES SKIP_RETURN_CODE 77)\n'
} >"$work/CTestTestfile.cmake"
if "$ctest" --test-dir "$work" >"$work/log" 2>&1; then
    cat "$work/log"
    echo "ctest succeeds although a fuzz target aborts" >&2
    exit 1
fi
grep -q '1 tests failed out of 1' "$work/log" || {
    cat "$work/log"
    echo "the target that aborts is not the failed test" >&2
    exit 1
}
