#!/usr/bin/env bash
# Builds the reference of the public headers into build/reference/html. Fails where
# Doxygen finds anything without a comment, names it, and where a page names the
# folder that it was built in.
#   docs.sh [--self-test]
set -eu -o pipefail
cd -P "$(dirname "$0")/.."

# Doxygen names files by their full paths; those of the tree are clearer.
run_doxygen() {
    mkdir -p build/reference
    doxygen docs/Doxyfile 2>&1 | sed "s|$PWD/||g"
}

build() {
    local named
    rm -rf build/reference
    LEAT_VERSION=$(sed -n 's/^project(leat VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
    export LEAT_VERSION
    run_doxygen || {
        echo "docs.sh: Doxygen fails as above; write the comments that are missing" >&2
        return 1
    }
    if named=$(grep -rlF "$PWD" build/reference); then
        printf 'docs.sh: names the folder of the tree: %s\n' "$named" >&2
        return 1
    fi
    echo "build/reference/html/index.html"
}

# A copy of what the reference is made of, in which a member has lost its comment.
self_test() {
    local work
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder as it is now
    trap "rm -rf '$work'" EXIT
    mkdir "$work/scripts"
    cp -r CMakeLists.txt include examples docs "$work"
    cp scripts/docs.sh scripts/deps.sh "$work/scripts"
    "$work/scripts/docs.sh" >"$work/log" 2>&1 || {
        cat "$work/log"
        return 1
    }
    grep -q 'href="data__layer_8h.html"' "$work/build/reference/html/index.html" || {
        echo "self-test: the front page leads to no header"
        return 1
    }
    sed -i 's|^\( *void \*top;\).*|\1|' "$work/include/leat/ext/device.h"
    if "$work/scripts/docs.sh" >"$work/log" 2>&1; then
        echo "self-test: a member without a comment is not found"
        return 1
    fi
    if ! grep -q '^include/leat/ext/device.h:[0-9]*: .*top' "$work/log"; then
        cat "$work/log"
        echo "self-test: the member without a comment is not named"
        return 1
    fi
    echo "what has no comment is found"
}

case $#:${1-} in
0:) command=build ;;
1:--self-test) command=self_test ;;
*)
    sed -n '2,5s/^# //p' "$0"
    [ "${1-}" = --help ] && exit 0
    exit 2
    ;;
esac
scripts/deps.sh docs
$command
