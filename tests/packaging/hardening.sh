#!/usr/bin/env bash
# Programs and libraries load nothing from the current directory, and have what a
# release build hardens: hardening.sh [--paths] FOLDER...
# --paths checks the search paths alone, which debug builds have, too. CET is
# checked in the objects: a program is marked for it only where the C library's own
# start files are, and Debian's are not.
set -eu
paths=0
if [ "${1-}" = --paths ]; then
    paths=1
    shift
fi
bad=0

complain() {
    echo "$1: $2" >&2
    bad=1
}

# Entries that are empty or relative are looked for where a user happens to stand.
check_paths() {
    local path entry entries
    path=$(readelf -dW "$1" | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p')
    [ -n "$path" ] || return 0
    mapfile -t -d : entries < <(printf '%s:' "$path")
    for entry in "${entries[@]}"; do
        # shellcheck disable=SC2016 # the loader's word, not a variable
        [[ $entry == /* || $entry == '$ORIGIN' || $entry == '$ORIGIN/'* ]] ||
            complain "$1" "the search path [$path] has the entry '$entry'"
    done
}

check_links() {
    local dynamic segments
    dynamic=$(readelf -dW "$1")
    segments=$(readelf -lW "$1")
    grep -qE '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' <<<"$dynamic" ||
        complain "$1" "symbols are not bound at the start (-z now)"
    grep -q 'GNU_RELRO' <<<"$segments" || complain "$1" "no RELRO segment"
    grep -q 'GNU_STACK.* RW ' <<<"$segments" ||
        complain "$1" "the stack may be executed"
    grep -q 'Type:.*DYN' <<<"$(readelf -hW "$1")" ||
        complain "$1" "is at a fixed address (no PIE)"
}

# Its handlers of fork would be called where they no longer are.
check_stays() {
    case ${1##*/} in
    libleat.so*) ;;
    *) return 0 ;;
    esac
    grep -q '(FLAGS_1).*NODELETE' <<<"$(readelf -dW "$1")" ||
        complain "$1" "dlclose unloads it (-z nodelete)"
}

check_object() {
    local notes
    notes=$(readelf -nW "$1" 2>/dev/null)
    [[ $notes == *IBT* && $notes == *SHSTK* ]] ||
        complain "$1" "is not compiled for CET (IBT and SHSTK)"
}

# What the compiler calls shows in the libraries and the tool, which are large
# enough to have buffers.
check_calls() {
    local calls
    case ${1##*/} in
    leat | libleat.so*) ;;
    *) return 0 ;;
    esac
    calls=$(nm -D --undefined-only "$1")
    [[ $calls == *__stack_chk_fail* ]] || complain "$1" "no stack protector"
    [[ $calls =~ __[a-z]+_chk ]] || complain "$1" "no _FORTIFY_SOURCE"
}

# A build folder within the folder is of other options, or of another processor.
prune=(-type d \( -path '*/packaging/work' -o -exec test -e '{}/CMakeCache.txt' \; \)
    -prune)
count=0
while IFS= read -r file; do
    [[ $(head -c 4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
    readelf -lW "$file" | grep -q DYNAMIC || continue
    count=$((count + 1))
    check_paths "$file"
    if [ $paths -eq 0 ]; then
        check_links "$file"
        check_stays "$file"
        check_calls "$file"
    fi
done < <(find "$@" -mindepth 1 \( "${prune[@]}" -o -name CMakeFiles -prune \) \
    -o -type f \( -perm -u+x -o -name '*.so*' \) -print)
[ $count -gt 0 ] || complain "$*" "there is no program"
echo "$count programs and libraries"

count=0
if [ $paths -eq 0 ] && [ "$(uname -m)" = x86_64 ]; then
    while IFS= read -r file; do
        count=$((count + 1))
        check_object "$file"
    done < <(find "$@" -mindepth 1 "${prune[@]}" \
        -o -path '*/src/CMakeFiles/leat*' -name '*.o' -print)
    echo "$count objects"
fi
exit $bad
