#!/usr/bin/env bash
# `leat readers` prints the registry's tables, and the manual page has the same:
# test_tool_readers.sh TOOL
set -u
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
page=$(cd "$(dirname "$0")/../../docs" && pwd)/leat-readers.1
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"

"$leat" readers >list || fail 'leat readers'
grep -qx "lmdb  *Caffe's LMDB: .*" list || fail "the list: $(<list)"
"$leat" readers lmdb >one || fail 'leat readers lmdb'
[ "$(head -n 1 one)" = lmdb:PATH ] || fail "how it is written: $(head -n 1 one)"
grep -qE '^  read_ahead=BYTES  .* \(0\)$' one || fail "an argument: $(<one)"

"$leat" readers --json >list.json || fail 'leat readers --json'
"$leat" readers --json lmdb >one.json || fail 'leat readers --json lmdb'
[ "$(wc -l <one.json)" -eq 1 ] || fail 'one line of JSON'
for text in '"name": "lmdb"' '"kind": "bytes"' '"positional": true' '"min": -1' \
    '"max_upstream": 0' '"default": "0"'; do
    grep -qF "$text" one.json || fail "$text is not in $(<one.json)"
    grep -qF "$text" list.json || fail "$text is not in $(<list.json)"
done

"$leat" readers lmbd >out 2>err
[ $? -eq 2 ] || fail 'an unknown reader: not status 2'
[ "$(<err)" = "leat: there is no reader 'lmbd'; did you mean lmdb?" ] || fail "$(<err)"

# The page has what scripts/readers_page.sh makes of it.
sed -n '/^\.SH READERS/,/^\.SH EX/p' "$page" | sed '$d' >described
"$scripts/readers_page.sh" "$leat" | diff described - ||
    fail "$page differs from leat readers: scripts/readers_page.sh prints its section"

[ $failed -eq 0 ] && echo 'readers are as they are described'
exit $failed
