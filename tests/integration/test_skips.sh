#!/usr/bin/env bash
# scripts/skips.sh: every test that ctest skips has a line, and so has a part that a
# test skips: test_skips.sh TOOL
set -eu
skips=$(cd "$(dirname "$0")/../.." && pwd)/scripts/skips.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# planted NAME STATUS OUTPUT
planted() {
    cat >>CTestTestfile.cmake <<TEST
add_test([=[$1]=] "sh" "-c" "printf '$3'; exit $2")
set_tests_properties([=[$1]=] PROPERTIES SKIP_RETURN_CODE 77)
TEST
}

planted reasoned 77 'one line\\nskipped: there is no GPU\\n'
planted mute 77 ''
planted talkative 77 'looking\\nno reason here\\n'
planted unended 77 'skipped: cut off'
planted partly 0 'skipped: a part\\nskipped: another\\ndone\\n'
planted whole 0 'nothing to tell\\n'
planted failing 1 'skipped: not at all\\n'
ctest >output || true
for name in reasoned mute talkative unended; do
    grep -qE "^\s+[0-9]+ - $name \(Skipped\)" output || {
        echo "ctest does not call $name skipped as test.sh expects:"
        cat output
        exit 1
    }
done
"$skips" Testing/Temporary/LastTest.log reasoned mute talkative unended |
    tr -s ' ' | sed 's/ $//' >found
cat >expected <<'LINES'
reasoned skipped: there is no GPU
mute skipped, without a reason:
talkative skipped, without a reason: no reason here
unended skipped: cut off
partly skipped: a part
partly skipped: another
failing skipped: not at all
LINES
diff expected found
