#!/usr/bin/env bash
# The headers are the manual: every struct and function has a comment before it,
# and every such comment something after it. That of a function, or of its group,
# says who may call it, and of one that blocks what wakes it.
#   headers.sh [--self-test]
set -u
cd "$(dirname "$0")/../.." || exit 1

# Prints what lacks something, and how many functions there are.
judge() {
    awk '
        FNR == 1 { comment = group = ""; in_comment = 0 }
        ended && /^( *\/\*\*.*|)$/ && comment !~ /@[{}]/ {
            print FILENAME ":" FNR - 1 ": what is this comment of?"
        }
        { ended = 0 }
        /^(typedef )?(struct|enum) .*\{$/ {
            if (comment == "") print FILENAME ":" FNR ": what is this?"
            comment = ""
        }
        /^ *\/\*\*/ { comment = ""; in_comment = 1 }
        in_comment {
            line = $0
            sub(/^ *\/?\*+\/?/, "", line)
            comment = comment " " line
            if (line ~ /@\{/) group = comment
            if (line ~ /@\}/) group = ""
        }
        in_comment && /\*\// { in_comment = 0; ended = 1 }
        /^LEAT_API/ {
            functions++
            said = comment " " group
            gsub(/[ *]+/, " ", said)
            if (said !~ /Thread safety: /)
                print FILENAME ":" FNR ": who may call this?"
            if (said ~ /Blocks / && said !~ /wake|woken/)
                print FILENAME ":" FNR ": what wakes this?"
            comment = ""
        }
        END { print functions + 0 " functions" > "/dev/stderr" }' "$@"
}

# plant EXPECTED TEXT: a header of just this text is found guilty of EXPECTED, or
# innocent where that is empty.
plant() {
    local found
    found=$(printf '%b\n' "$2" | judge - 2>/dev/null)
    if [ -n "$1" ]; then
        [[ $found == *"$1"* ]] && return
    else
        [ -z "$found" ] && return
    fi
    echo "self-test: $2: expected '$1', found '$found'"
    failed=1
}

if [ "${1-}" = --self-test ]; then
    failed=0
    safe='Thread safety: any thread.'
    plant 'who may' '/** Makes it. */\nLEAT_API int leat_x(void);'
    plant '' "/** Makes it. $safe */\nLEAT_API int leat_x(void);"
    plant '' "/**\n * Makes it. Thread\n * safety: any.\n */"
    plant 'who may' "/** $safe */\nLEAT_API int leat_x(void);\nLEAT_API int leat_y(void);"
    plant '' "/**\n * $safe\n * @{\n */\n/** A. */\nLEAT_API int leat_x(void);\n/** @} */"
    plant 'who may' "/**\n * $safe\n * @{\n */\n/** @} */\n/** A. */\nLEAT_API int leat_x(void);"
    plant 'what is this comment of' "/** A. */\n/** $safe */\nLEAT_API int leat_x(void);"
    plant 'what is this comment of' "/** A. */\n\nint x;"
    plant 'what is this?' '#define X\ntypedef struct leat_x {'
    plant '' '/** A. */\ntypedef struct leat_x {'
    plant 'what wakes' "/** Blocks as storage does. $safe */\nLEAT_API int leat_x(void);"
    plant '' "/** Blocks; woken by leat_y. $safe */\nLEAT_API int leat_x(void);"
    [ "$failed" -eq 0 ] && echo "what is missing is found"
    exit "$failed"
fi

mapfile -t headers < <(find include -name '*.h' | sort)
found=$(judge "${headers[@]}")
[ -z "$found" ] && exit 0
printf '%s\n' "$found"
exit 1
