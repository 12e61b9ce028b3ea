#!/usr/bin/env bash
# Each command has a manual page, with the options of its --help and no others:
# test_manual.sh TOOL
set -u
leat=$1
[ -x "$leat" ] || {
    echo "skipped: the tool is not built"
    exit 77
}
leat=$(cd "$(dirname "$leat")" && pwd)/$(basename "$leat")
cd "$(dirname "$0")/../../docs" || exit 1
export LC_ALL=C
failed=0

fail() {
    echo "failed: $1"
    failed=1
}

# names TITLE: the names that a help text lists under a title.
names() {
    sed -n "/^$1:/,/^$/s/^  \([a-z0-9][a-z0-9]*\)  .*/\1/p"
}

# What dump, compare, bench and show say of a data layer stands in one place.
source=$(sed -n '/^\.SH SOURCE/,/^\.SH EX/p' leat-dump.1)

# check_page COMMAND: against the --help of the command, or of each of those in it.
check_page() {
    local command=$1 page=leat-$1.1 text known='' parts part option
    [ -s "$page" ] || {
        fail "docs/$page is missing"
        return
    }
    # An example alone explains nothing.
    text=$(sed '/^\.SH SYN/,/^\.SH DESC/d; /^\.SH EX/,$d' "$page")
    [[ $command == @(compare|bench|show) ]] && text+=$source
    grep -qxF ".TH LEAT-${command^^} 1 \"\" \"$("$leat" --version)\" \"User Commands\"" "$page" ||
        fail "$page: no heading with the version"
    grep -qxF "leat-$command \\- $("$leat" --help | sed -n "s/^  $command  *//p")" "$page" ||
        fail "$page: another summary than that of leat --help"
    grep -qx '\.SH EXAMPLES' "$page" || fail "$page: no examples"
    grep -qF "leat\\-$command (1)" leat.1 || fail "leat.1 does not name $page"
    parts=$("$leat" help "$command" | names Commands)
    for part in ${parts:-.}; do
        for option in $("$leat" help "$command" ${parts:+"$part"} |
            grep -oE '^  --[a-z0-9-]+'); do
            known+=" $option"
            [ "$option" = --help ] && continue
            grep -qE -- "${option//-/\\\\-}([^a-z\\]|$)" <<<"$text" ||
                fail "$page: nothing on $option of leat $command ${parts:+$part}"
        done
    done
    for option in $(grep -A 1 -x '\.TP' "$page" | grep -oE '\\-\\-[a-z0-9\\-]+' | tr -d '\134'); do
        [[ "$known " == *" $option "* ]] || fail "$page: leat $command has no $option"
    done
}

commands=$("$leat" --help | names Commands)
for command in $commands; do
    [ "$command" = help ] || check_page "$command"
done
for page in leat-*.1; do
    grep -qw "$(basename "$page" .1 | cut -d - -f 2)" <<<"$commands" ||
        fail "$page is of no command"
done

# What formats them finds nothing odd.
if command -v man >/dev/null; then
    for page in leat*.1; do
        found=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
        [ -z "$found" ] || fail "$page: $found"
    done
else
    echo "man is not installed: the pages are not formatted"
fi
if command -v mandoc >/dev/null; then
    for page in leat*.1; do
        found=$(mandoc -T lint -W error "$page" 2>&1) || fail "$found"
    done
else
    echo "mandoc is not installed: the pages are not checked by it"
fi
exit $failed
