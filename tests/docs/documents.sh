#!/usr/bin/env bash
# What the documents quote, link and name is there.
#   documents.sh           checks all of them
#   documents.sh --update  copies what they quote anew, where that is whole
#   documents.sh --self-test
# A quote is a fenced block or a table after one of these lines:
#   <!-- all of PATH -->    the whole file
#   <!-- from PATH -->      some of its lines, in one piece
#   <!-- table of PATH -->  the table or list in it that begins alike
# A link leads to a file; a path of this tree and a name of leat's exist.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Writes each quote of a document to quote.N, and `N LINE KIND PATH` to list.
take_quotes() {
    awk -v work="$work" '
        match($0, /^<!-- (all of|from|table of) /) {
            kind = substr($0, 6, RLENGTH - 6)
            path = substr($0, RLENGTH + 1, length($0) - RLENGTH - 4)
            gsub(/ /, "-", kind)
            wanted = 1
            next
        }
        wanted && /^$/ { next }
        wanted {
            wanted = 0
            file = work "/quote." ++n
            printf "" >file
            print n, FNR, kind, path >(work "/list")
            fenced = /^```/
            if (!fenced) print >file
            inside = 1
            next
        }
        inside && (fenced ? /^```$/ : /^$/) { inside = 0; close(file) }
        inside { print >file }' "$1"
}

# The first table of a file that begins as another one does: 9 letters tell it.
find_table() {
    awk 'NR == FNR { if (NR == 1) first = substr($0, 1, 9); next }
        substr($0, 1, 9) == first { inside = 1 }
        inside && /^$/ { exit }
        inside' "$2" "$1"
}

is_part_of() {
    awk 'NR == FNR { part[n = NR] = $0; next }
        { line[m = FNR] = $0 }
        END {
            for (i = 1; i + n - 1 <= m; i++) {
                for (k = 1; k <= n && line[i + k - 1] == part[k]; k++) ;
                if (k > n) exit 0
            }
            exit 1
        }' "$1" "$2"
}

check_quotes() {
    local n line kind path same
    : >"$work/list"
    take_quotes "$1"
    while read -r n line kind path; do
        [ -e "$path" ] || { echo "$1:$line: $path is not there" && continue; }
        case $kind in
        all-of) cmp -s "$work/quote.$n" "$path" && same=1 || same=0 ;;
        from) is_part_of "$work/quote.$n" "$path" && same=1 || same=0 ;;
        *)
            find_table "$path" "$work/quote.$n" |
                cmp -s "$work/quote.$n" - && same=1 || same=0
            ;;
        esac
        [ "$same" -eq 1 ] || echo "$1:$line: $path reads otherwise"
    done <"$work/list"
}

update_quotes() {
    local document=$1 n line kind path
    : >"$work/list"
    take_quotes "$document"
    while read -r n line kind path; do
        case $kind in
        all-of) cp "$path" "$work/quote.$n" ;;
        table-of) find_table "$path" "$work/quote.$n" >"$work/table" &&
            cp "$work/table" "$work/quote.$n" ;;
        esac
    done <"$work/list"
    awk -v work="$work" '
        function put(file,    line) {
            while ((getline line <file) > 0) print line
            close(file)
        }
        /^<!-- (all of|from|table of) / { wanted = 1; print; next }
        wanted && /^$/ { print; next }
        wanted {
            wanted = 0
            fenced = /^```/
            if (fenced) print
            put(work "/quote." ++n)
            inside = 1
            next
        }
        inside && (fenced ? /^```$/ : /^$/) { inside = 0 }
        !inside' "$document" >"$work/document"
    cmp -s "$work/document" "$document" || cp "$work/document" "$document"
}

check_links() {
    local target
    grep -oE '\]\([^) ]+\)' "$1" | sed 's/^](//; s/)$//; s/#.*//' |
        while read -r target; do
            case $target in
            '' | *://*) ;;
            *) [ -e "$(dirname "$1")/$target" ] ||
                echo "$1: the link to $target leads nowhere" ;;
            esac
        done
}

# Paths and names, but for patterns such as fuzz_<stem>.c and test_x.c.
check_names() {
    local name
    grep -oE '(^|[ (`"])(src|tests|include|scripts|examples|docs|benchmarks|proto)/[A-Za-z0-9_./-]*.?' "$1" |
        grep -vE '[<*]$|_x\.c' | sed -E 's/^[^a-z]//; s/[^A-Za-z0-9_]+$//' | sort -u |
        while read -r name; do
            [ -e "$name" ] || echo "$1: there is no $name"
        done
    grep -oE '(^|[^A-Za-z0-9_/-])leat_[a-z0-9_]+' "$1" | sed -E 's/^[^l]//' | sort -u |
        while read -r name; do
            grep -rqw "$name" include src || echo "$1: leat has no $name"
        done
}

check_document() {
    check_quotes "$1"
    check_links "$1"
    check_names "$1"
}

# plant EXPECTED LINE...: a document of these lines is found guilty of EXPECTED,
# or innocent where that is empty.
plant() {
    local expected=$1 found
    shift
    printf '%s\n' "$@" >"$work/planted.md"
    found=$(check_document "$work/planted.md")
    if [ -n "$expected" ]; then
        [[ $found == *"$expected"* ]] && return
    else
        [ -z "$found" ] && return
    fi
    echo "self-test: $*: expected '$expected', found '$found'"
    failed=1
}

self_test() {
    failed=0
    printf 'one\ntwo\nthree\n\n| a |\n| b |\n\nfour\n\n| a |\n| c |\n' >"$work/file"
    plant '' "<!-- from $work/file -->" '```c' 'two' 'three' '```'
    plant 'reads otherwise' "<!-- from $work/file -->" '```c' 'one' 'three' '```'
    plant 'reads otherwise' "<!-- all of $work/file -->" '' '```c' 'one' '```'
    plant '' "<!-- table of $work/file -->" '' '| a |' '| b |' '' 'text'
    plant 'reads otherwise' "<!-- table of $work/file -->" '| a |' '| c |' '' 'text'
    plant 'is not there' '<!-- all of nowhere -->' '```' '```'
    plant 'leads nowhere' 'see [this](nowhere.md)'
    plant '' 'see [this](file#part) and [that](https://example.org/x)'
    plant 'there is no src/nowhere.c' 'in (src/nowhere.c)'
    plant '' 'in src/base/queue.c, (tests/fuzz/fuzz_<stem>.c), src/base.'
    plant 'leat has no leat_nothing' 'call leat_nothing()'
    plant '' 'call leat_last_error()'
    printf '%s\n' "<!-- all of $work/file -->" '```c' 'old' '```' 'end' \
        "<!-- table of $work/file -->" '| a |' '| old |' >"$work/planted.md"
    update_quotes "$work/planted.md"
    if [ -n "$(check_document "$work/planted.md")" ] ||
        ! grep -q '^end$' "$work/planted.md"; then
        echo "self-test: the update did not do it"
        failed=1
    fi
    [ "$failed" -eq 0 ] && echo "what is wrong is found, and brought up to date"
    return "$failed"
}

mapfile -t documents < <(find . -maxdepth 1 -name '*.md' | sed 's,^\./,,' | sort
    find docs benchmarks -name '*.md' | sort)
case ${1-} in
--self-test)
    self_test
    exit
    ;;
--update)
    for document in "${documents[@]}"; do
        update_quotes "$document"
    done
    exit
    ;;
esac
found=$(for document in "${documents[@]}"; do check_document "$document"; done)
echo "${#documents[@]} documents"
[ -z "$found" ] && exit 0
printf '%s\n' "$found" 'after a change of what is quoted whole: documents.sh --update'
exit 1
