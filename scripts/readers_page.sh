#!/usr/bin/env bash
# Prints the section READERS of the manual page of `leat readers`, from the tool
# itself: readers_page.sh TOOL
set -eu
leat=$1
escape() { sed -E 's/\\/\\e/g; s/-/\\-/g'; }
echo '.SH READERS'
"$leat" readers | cut -d ' ' -f 1 | while read -r name; do
    "$leat" readers "$name" | escape | sed -nE \
        -e '1s/.*/.TP\n.I &/p' -e '2s/.*/&./p' -e '/^Arguments:/s/.*/.RS/p' \
        -e 's/^  ([^ ]+)  +(.*)/.TP\n.I \1\n\2/p'
    if "$leat" readers "$name" | grep -q '^Arguments:'; then echo '.RE'; fi
done
