#!/usr/bin/env bash
# Each section of docs/reliability.md names commands that exist, and says what they
# do not cover: claims.sh BUILD | --self-test
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Sections without a command, that is an indented line, or without the words.
check_sections() {
    awk '
        function end() {
            if (title == "") return
            if (!commands) print title ": no command shows it"
            if (!limits) print title ": it does not say what is not covered"
        }
        /^## / { end(); title = substr($0, 4); commands = limits = 0 }
        /^    +[^ ]/ { commands++ }
        /^Not covered: / { limits++ }
        END { end() }' "$1"
}

# check_commands DOCUMENT TESTS: scripts and tests that are named, but not there.
check_commands() {
    local name regex
    grep -E '^ {4,}(LEAT_[A-Z_]*=[^ ]* )?(scripts|tests)/' "$1" |
        grep -oE '(scripts|tests)/[a-z_0-9/]+\.(sh|py)' | sort -u |
        while read -r name; do
            [ -x "$name" ] || echo "there is no command $name"
        done
    grep -E '^ {4,}ctest ' "$1" |
        sed -nE "s/.* -R '?([^' ]+)'?.*/\1/p" | expand_groups | sort -u |
        while read -r regex; do
            grep -qE -- "$regex" "$2" || echo "no test is called $regex"
        done
    # shellcheck disable=SC2016 # code spans of Markdown
    grep -oE '`(test|fuzz)_[a-z0-9_]+`' "$1" | tr -d '`' | sort -u |
        while read -r name; do
            grep -qx -- "$name" "$2" || echo "no test is called $name"
        done
}

# a|b(c|d) as a, bc and bd, a line each.
expand_groups() {
    awk '{
        line = $0
        while (match(line, /[^|(]*\([^)]*\)/)) {
            group = substr(line, RSTART, RLENGTH)
            line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
            stem = group
            sub(/\(.*/, "", stem)
            sub(/^[^(]*\(/, "", group)
            sub(/\)$/, "", group)
            n = split(group, part, "|")
            for (i = 1; i <= n; i++) print stem part[i]
        }
        n = split(line, part, "|")
        for (i = 1; i <= n; i++) if (part[i] != "") print part[i]
    }'
}

check() {
    check_sections "$1"
    check_commands "$1" "$2"
}

# plant EXPECTED LINE...: a document of these lines is found guilty of EXPECTED.
plant() {
    local expected=$1 found
    shift
    printf '%s\n' "$@" >"$work/planted.md"
    found=$(check "$work/planted.md" "$work/tests")
    [ "$found" = "$expected" ] && return
    echo "self-test: $*: expected '$expected', found '$found'"
    failed=1
}

self_test() {
    failed=0
    printf 'test_one\ntest_two\n' >"$work/tests"
    plant '' '## A' '    scripts/fuzz.sh' 'Not covered: b.'
    plant 'A: no command shows it' '## A' 'Not covered: b.'
    plant 'A: it does not say what is not covered' '## A' '    scripts/fuzz.sh'
    plant 'there is no command scripts/none.sh' '## A' '    scripts/none.sh' \
        'Not covered: b.'
    plant '' '## A' "    ctest --test-dir build -R 'test_one|test_two'" \
        'Not covered: b.'
    plant 'no test is called test_three' '## A' \
        "    ctest --test-dir build -R 'test_(one|three)' --verbose" 'Not covered: b.'
    # shellcheck disable=SC2016
    plant 'no test is called test_four' '## A' '    scripts/fuzz.sh' '`test_four`' \
        'Not covered: b.'
    [ "$failed" -eq 0 ] && echo "claims without a command are found"
    return "$failed"
}

if [ "${1-}" = --self-test ]; then
    self_test
    exit
fi
find "$1/tests" "$1/examples" -name CTestTestfile.cmake -not -path '*/packaging/*/*' \
    -exec sed -nE 's/^add_test\(\[?=*\[?([A-Za-z0-9_]+).*/\1/p' {} + >"$work/tests"
[ -s "$work/tests" ] || { echo "$1 has no tests" && exit 1; }
found=$(check docs/reliability.md "$work/tests")
[ -z "$found" ] || { echo "$found" && exit 1; }
