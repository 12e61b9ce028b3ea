#!/usr/bin/env bash
# `leat explain` prints each reader of a pipeline: test_tool_explain.sh TOOL
set -u
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"

"$leat" synth digits --count 50 --shape 1,8,8 --seed 1 db >/dev/null || exit 1

"$leat" explain 'lmdb:db | take:7' >out || fail 'leat explain'
[ "$(wc -l <out)" -eq 3 ] || fail "a line each and the title: $(<out)"
grep -qE '^source +50 +any order +index +0 bytes +lmdb:db$' out || fail "$(<out)"
grep -qE '^index map +7 +any order +index +0 bytes +take:7$' out || fail "$(<out)"

"$leat" explain db >out || fail 'the path of a database'
grep -qE ' lmdb:db$' out || fail "a database: $(<out)"

"$leat" explain --json 'lmdb:db | take:7' >out || fail 'leat explain --json'
[ "$(wc -l <out)" -eq 1 ] || fail 'one line of JSON'
grep -qF '{"reader": "take:7", "depth": 0, "form": "index map", "count": 7,' out ||
    fail "$(<out)"

"$leat" explain 'lmdb:none | take:7' >out 2>err
[ $? -eq 2 ] || fail 'a missing database: not status 2'
[ "$(wc -l <err)" -eq 1 ] || fail "$(<err)"
"$leat" explain 'lmdb:db | tale:7' >out 2>err
[ $? -eq 2 ] || fail 'an unknown reader: not status 2'
grep -qF 'take' err || fail "$(<err)"

[ $failed -eq 0 ] && echo 'pipelines are explained'
exit $failed
