#!/usr/bin/env bash
# What a process may read by its effective rights alone, as a service with
# capabilities, the tool reads: test_tool_rights.sh TOOL
set -u
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"
chmod 755 .
mkdir private
echo 1,2 >private/list
"$leat" synth digits --count 3 private/db >/dev/null || fail 'cannot synth'
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
reading=("${nobody[@]}" --inh-caps=+dac_read_search --ambient-caps=+dac_read_search)
if ! { chown -R 1000 private && chmod 700 private &&
    "${nobody[@]}" "$leat" --version && "${reading[@]}" true; } >/dev/null 2>&1; then
    echo 'skipped: rights that are lent need root, and setpriv'
    exit 77
fi
"${nobody[@]}" "$leat" cat text:private/list >out 2>err &&
    fail 'anybody may read it'
for source in text:private/list private/db lmdb:private/db; do
    "${reading[@]}" "$leat" cat "$source" >out 2>err || fail "$source: $(cat err)"
    "$leat" cat "$source" >wanted
    cmp -s out wanted || fail "$source: $(cat out)"
done

[ $failed -eq 0 ] && echo 'the effective rights count'
exit $failed
