#!/usr/bin/env bash
# Each public header must compile alone and twice, as C11 and as C++11, with
# every compiler at hand.
set -u
cd "$(dirname "$0")/../../include" || exit 1

checks=0
failed=0
check() {
    local compiler=$1 language=$2 standard=$3 header=$4
    checks=$((checks + 1))
    printf '#include <%s>\n#include <%s>\n' "$header" "$header" |
        "$compiler" -x "$language" "-std=$standard" -Wall -Wextra -Wpedantic \
            -Werror -fsyntax-only -I. - && return
    echo "$header is not accepted by $compiler as $standard"
    failed=$((failed + 1))
}

for compiler in gcc clang; do
    if ! command -v "$compiler" >/dev/null; then
        echo "left out: $compiler is not installed"
        continue
    fi
    while IFS= read -r header; do
        check "$compiler" c c11 "$header"
        check "$compiler" c++ c++11 "$header"
    done < <(find . -name '*.h' | sed 's,^\./,,' | sort)
done

echo "$checks checks, $failed failed"
[ "$failed" -eq 0 ] && [ "$checks" -gt 0 ]
