#!/usr/bin/env bash
# Formats every C, C++ and CUDA file in place; with --check only says which need it.
# The reference is clang-format 14: other versions differ in small things.
set -eu
cd "$(dirname "$0")/.."

mode=(-i)
case ${1-} in
'') ;;
--check) mode=(--dry-run -Werror) ;;
*)
    echo "usage: format.sh [--check]" >&2
    exit 2
    ;;
esac

format=clang-format
command -v clang-format-14 >/dev/null && format=clang-format-14
mapfile -t files < <(find . \( -name 'build*' -o -name .git \) -prune -o -type f \
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' \) -print | sort)
"$format" --style=file "${mode[@]}" "${files[@]}"
