#!/usr/bin/env bash
# The pages for those who come from other readers name readers and arguments that
# there are: test_pages.sh TOOL
set -u
docs=$(cd "$(dirname "$0")/../../docs" && pwd)
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"

# Of each row the code in its second cell, a reader a line: NAME:ARGUMENTS.
readers() {
    # shellcheck disable=SC2016 # no expansions
    sed -E 's/\\\|/\x01/g' "$1" | awk -F'|' '/^\| / && !/^\| ---/ { print $3 }' |
        grep -o '`[^`]*`' | tr -d '`' | tr '\001' '\n' |
        sed -E 's/^ *(\([A-Z]\) *)*//; s/ *$//' | grep -E '^[a-z_]+(:|$)' | grep -v '^leat_'
}

for page in from-tf-data.md from-paddle.md; do
    n=0
    while read -r reader; do
        name=${reader%%:*}
        # A word alone may be an argument of what the row is about.
        if ! "$leat" readers "$name" >known 2>/dev/null; then
            [ "$name" = "$reader" ] || fail "$page: $reader: there is no reader $name"
            continue
        fi
        n=$((n + 1))
        grep -oE '[a-z_]+=' <<<"${reader#*:}" | tr -d = | sort -u | while read -r argument; do
            # Repeated ones may be named after fields.
            grep -qE "^  ${argument}=|^  [A-Z]+,[.]" known ||
                echo "$page: $reader: $name has no argument $argument"
        done >wrong
        [ -s wrong ] && fail "$(<wrong)"
    done < <(readers "$docs/$page")
    [ "$n" -ge 10 ] || fail "$page: $n readers were found in it"
done
"$leat" readers | cut -d ' ' -f 1 | while read -r name; do
    grep -qE "[\`( ]${name}[:\`,]" "$docs/from-tf-data.md" "$docs/from-paddle.md" ||
        echo "neither page has $name"
done >missing
grep -vE ' (lmdb|idx|datum|drop_behind)$' missing && fail 'a reader is on neither page'

[ "$failed" -eq 0 ] && echo 'the pages name what there is'
exit "$failed"
