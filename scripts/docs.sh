#!/usr/bin/env bash
# Builds the reference of the public headers into build/reference/html. Fails if
# Doxygen finds anything without a comment.
set -eu
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then
    sed -n '2,3s/^# //p' "$0"
    [ "$1" = --help ] && exit 0
    exit 2
fi
if ! command -v doxygen >/dev/null; then
    echo "docs.sh: doxygen is missing; on Debian and Ubuntu:" >&2
    echo "  apt-get install doxygen" >&2
    exit 1
fi
LEAT_VERSION=$(sed -n 's/^project(leat VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
export LEAT_VERSION
mkdir -p build/reference
doxygen docs/Doxyfile
echo "build/reference/html/index.html"
