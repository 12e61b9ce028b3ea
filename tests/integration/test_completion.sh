#!/usr/bin/env bash
# Each shell completes every option of every command's --help: test_completion.sh TOOL
set -u
leat=$1
[ -x "$leat" ] || {
    echo "skipped: the tool is not built"
    exit 77
}
leat=$(cd "$(dirname "$leat")" && pwd)/$(basename "$leat")
work=$(mktemp -d)
trap 'rm -rf "$work" "${bin-}"' EXIT
cd "$work" || exit 1
export LC_ALL=C
failed=0

fail() {
    echo "failed: $1"
    failed=1
}

# names TITLE: the names that a help text lists under a title.
names() {
    sed -n "/^$1:/,/^$/s/^  \([a-z0-9][a-z0-9]*\)  .*/\1/p"
}

for shell in bash zsh fish; do
    # shellcheck disable=SC2094
    "$leat" completion "$shell" >$shell || fail "leat completion $shell"
done
commands=()
for command in $("$leat" --help | names Commands); do
    [ "$command" = help ] && continue
    parts=$("$leat" help "$command" | names Commands)
    for part in ${parts:-.}; do
        commands+=("$command${parts:+ $part}")
    done
done
[ ${#commands[@]} -gt 15 ] || fail "only the commands ${commands[*]}"

# bash itself is asked, by the variables that it would set. The script runs the
# leat that is being completed.
# shellcheck disable=SC1091
. ./bash
bin=$(mktemp -d)
ln -s "$leat" "$bin/leat"
PATH=$bin:$PATH
# completes WORD...: what may stand for the last word, which follows the others.
completes() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _leat
    echo "${COMPREPLY[*]}"
}
# offers TEXT WORD...: just this.
offers() {
    local found
    found=$(completes "${@:2}")
    [ "$found" = "$1" ] || fail "bash, '${*:2}': '$found', not '$1'"
}

for command in "${commands[@]}"; do
    # shellcheck disable=SC2086
    options=$("$leat" $command --help | grep -oE '^  --[a-z0-9-]+')
    [ "$options" ] || fail "leat $command --help lists no options"
    # shellcheck disable=SC2086
    listed=" $(completes leat $command --) "
    for option in $options; do
        [[ $listed == *" $option "* ]] || fail "bash lacks leat $command $option"
    done
done
# The other shells show what comes after the tab as a description.
leat completion words synth --se | grep -qx -- $'--seed\t.*' ||
    fail 'no description of synth --seed'
leat completion words im | grep -qx $'import\tmake .*' || fail 'no description of import'

touch net.prototxt 'a file'
mkdir db
offers 'import info' leat i
offers 'images' leat import im
offers 'layer limit' leat help bench l
offers '--version' leat --v
offers 'TRAIN TEST' leat dump --phase ''
offers 'TEST' leat dump --phase = TE
offers 'TEST' leat dump --phase=TE
offers 'TRAIN TEST' leat dump --phase =
offers 'net.prototxt' leat dump --net n
offers 'net.prototxt' leat bench layer --net = n
offers 'a file' leat info a
offers 'db' leat import images --root ''
offers '' leat synth digits --count ''
offers '' leat nonesuch-
"$leat" completion tcsh >out 2>err
[ $? -eq 64 ] || fail 'a shell that is unknown'

# The others' syntax, where they are.
if command -v zsh >/dev/null; then
    zsh -n zsh || fail 'zsh cannot read its completion'
else
    echo "zsh is not installed: its completion's syntax is not checked"
fi
if command -v fish >/dev/null; then
    fish --no-execute fish || fail 'fish cannot read its completion'
    # in_fish TEXT LINE: it completes the line to this.
    in_fish() {
        local found
        found=$(HOME=$work fish -N -c "source fish; complete -C '$2'" | cut -f 1)
        [ "$found" = "$1" ] || fail "fish, '$2': $found"
    }
    in_fish mnist 'leat import m'
    in_fish --phase=TEST 'leat dump --phase=TE'
    in_fish net.prototxt 'leat dump --net n'
    in_fish --net=net.prototxt 'leat dump --net=n'
    in_fish db/ 'leat import images --root '
else
    echo "fish is not installed: its completion's syntax is not checked"
fi
exit $failed
