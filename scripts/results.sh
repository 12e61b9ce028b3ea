#!/usr/bin/env bash
# benchmarks/RESULTS.md has a section for each thing that was measured, written by
# whoever measured it: results.sh SECTION replaces one by what comes on stdin, or
# adds it at the end; the others stay as they are.
#   results.sh SECTION | --self-test
# A section lies between <!-- begin SECTION --> and <!-- end SECTION -->.
set -eu
cd "$(dirname "$0")/.."

# put FILE SECTION: the section from stdin into the file.
put() {
    local text
    text=$(mktemp)
    {
        printf '%s\n\n' "<!-- begin $2 -->"
        cat
        printf '\n%s\n' "<!-- end $2 -->"
    } >"$text"
    awk -v text="$text" -v begin="<!-- begin $2 -->" -v end="<!-- end $2 -->" '
        function put(    line) { while ((getline line <text) > 0) print line }
        $0 == begin { inside = found = 1; put() }
        !inside { print; last = $0 }
        $0 == end { inside = 0 }
        END {
            if (inside) exit 1 # Its end is missing: what follows would be lost.
            if (!found) { if (NR && last != "") print ""; put() }
        }
    ' "$1" >"$text.file"
    cat "$text.file" >"$1"
    rm -f "$text" "$text.file"
}

self_test() {
    local file expected
    file=$(mktemp)
    printf '# Title\n' >"$file"
    echo one | put "$file" a
    echo two | put "$file" b
    printf 'three\nfour\n' | put "$file" a
    expected='# Title

<!-- begin a -->

three
four

<!-- end a -->

<!-- begin b -->

two

<!-- end b -->'
    if [ "$(cat "$file")" != "$expected" ]; then
        echo "self-test: found"
        cat "$file"
        exit 1
    fi
    rm -f "$file"
    echo "sections are added and replaced"
}

case ${1-} in
--self-test) self_test ;;
'' | -*)
    sed -n '5s/^# */usage: /p' "$0" >&2
    exit 2
    ;;
*) put benchmarks/RESULTS.md "$1" ;;
esac
