#!/usr/bin/env bash
# Sourced by tests of the tool, with the tool's path: tool.sh TOOL
# Sets leat, its absolute path, work, an empty folder that is the current one and
# goes with the test, and failed, which fail MESSAGE counts up.
[ -x "$1" ] || {
    echo "skipped: the tool is not built"
    exit 77
}
leat=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export leat LC_ALL=C failed=0

fail() {
    echo "failed: $*"
    failed=1
}
