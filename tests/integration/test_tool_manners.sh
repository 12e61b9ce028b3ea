#!/usr/bin/env bash
# What users of other tools expect of this one: exit statuses as the manual's table
# has them: test_tool_manners.sh TOOL
set -u
here=$(cd "$(dirname "$0")" && pwd)
docs=$here/../../docs
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

# run STATUS ARGUMENT...: the tool's output goes to out and err.
run() {
    local status=$1
    shift
    timeout 60 "$leat" "$@" >out 2>err </dev/null
    local found=$?
    [ "$found" -eq "$status" ] && return
    echo "failed: leat $*: status $found, not $status"
    head -n 3 out err
    failed=1
}

# The manual's table names these statuses and no others.
check 'the table of statuses' test \
    "$(sed -n '/^\.SH EXIT STATUS/,/^\.SH ENV/s/^\.B \([0-9]*\)$/\1/p' "$docs/leat.1" | paste -sd ' ')" \
    = '0 1 2 64'

"$leat" synth digits --count 20 good >/dev/null || exit 1
"$leat" synth digits --count 19 other >/dev/null || exit 1
cp -r good bad
at=$(grep -abo 00000003 bad/data.mdb | tail -n 1 | cut -d : -f 1)
printf '\002' | dd of=bad/data.mdb bs=1 seek=$((at + 9)) conv=notrunc status=none
cp "$LEAT_TEST_DATA/images/1x1.jpg" . || exit 1
printf '1x1.jpg 1\nnone.jpg 2\n' >list

# 0: done. 1: done, and the answer is bad.
run 0 compare good good
run 1 compare good other
for command in info verify cat; do
    run 0 $command "$([ $command = cat ] && echo lmdb:)good"
    run 1 $command "$([ $command = cat ] && echo lmdb:)bad"
done
run 1 import images list images
check 'the database is made' test -s images/data.mdb

# 2: each command where its database is not there, or its result cannot be written.
for arguments in 'synth digits good' 'import mnist none none new' \
    'import cifar10 none new' 'import images none new' \
    'import pipeline lmdb:none new' 'info none' 'show none --out new.png' \
    'verify none' 'compare good none' 'compare none good' 'cat lmdb:none' \
    'mean none new' 'mean bad new' 'dump --reader lmdb:none --batch 1 --out new' \
    'dump --reader lmdb:bad --batch 20 --out new' \
    'bench layer --reader lmdb:none --batch 1' \
    'bench limit --reader lmdb:none --batch 1' 'bench reader --reader lmdb:none' \
    'bench h2d --device cuda:4096' 'readers none'; do
    # shellcheck disable=SC2086
    run 2 $arguments
    check "leat $arguments: one line" test "$(wc -l <err)" -eq 1
done
# An answer that cannot be written is none.
if [ -w /dev/full ]; then
    for arguments in 'compare good good' 'compare good other' 'info bad' 'verify bad' \
        'cat lmdb:bad' readers; do
        # shellcheck disable=SC2086
        "$leat" $arguments >/dev/full 2>err
        check "leat $arguments: full" test $? -eq 2
    done
    "$leat" import pipeline lmdb:good made >/dev/full 2>err
    check 'leat import: full' test $? -eq 2
    check "leat import: full: $(cat err)" test "$(cat err)" = \
        'leat: stdout: cannot write: No space left on device; made is complete'
    rm -rf made
fi

# 64: wrong usage of the tool and of each command.
run 64
run 64 frobnicate
for command in synth import info show verify compare cat mean dump bench readers \
    'import mnist' 'import cifar10' 'import images' 'import pipeline' \
    'bench layer' 'bench limit' 'bench reader' 'bench h2d'; do
    # shellcheck disable=SC2086
    run 64 $command --nonesuch
    check "leat $command: one line" test "$(wc -l <err)" -eq 1
done

# says TEXT: what the line on stderr says.
says() {
    grep -qF -- "$1" err || {
        echo "failed: not '$1' but: $(cat err)"
        failed=1
    }
}

# Help and the version by the words that others take, at each level.
for arguments in help -h --help; do
    run 0 $arguments
    check "leat $arguments" grep -q '^  import ' out
done
for arguments in -V --version 'import -V' 'import mnist -V' 'info -V'; do
    # shellcheck disable=SC2086
    run 0 $arguments
    check "leat $arguments" grep -qxE 'leat [0-9.]+' out
done
for words in info import 'import mnist' 'bench layer'; do
    # shellcheck disable=SC2086
    run 0 $words --help
    mv out wanted
    # shellcheck disable=SC2086
    run 0 $words -h
    check "leat $words -h" cmp -s out wanted
    # shellcheck disable=SC2086
    run 0 help $words
    check "leat help $words" cmp -s out wanted
done
run 64 help frobnicate
run 64 help import mnist more

# A mistyped command or option leads to the nearest one.
run 64 imprt
says "unknown command 'imprt'; did you mean import?"
run 64 help verfy
says 'did you mean verify?'
run 64 import mnits images labels new
says "import: unknown command 'mnits'; did you mean mnist?"
run 64 info --jsno good
says "unknown option '--jsno'; did you mean --json?"
run 64 cat --vlaues=3 good
says 'did you mean --values?'
run 64 dump --batch-size 3
check 'what is far from all' test -z "$(grep 'did you' err)"
run 64 info --frobnicate good
check 'what is far from all' test -z "$(grep 'did you' err)"

# Numbers as people write them, and the same ones back.
run 0 synth noise --count 1.2k --shape 3x8x6 sized
run 0 info --json sized
check 'a shape with x' grep -q '"records": 1200, .*"3x8x6": 1200' out
run 0 import pipeline sized copied
run 0 show sized --records 1.1k-1.101k --out sheet.png --json
check 'records by thousands' grep -q '"shown": 2' out
run 0 verify sized --max-image-bytes 1.5GiB
for arguments in '--count 1.2345k' '--count 9999999999T' '--shape 3x8' '--shape 3x8,6' \
    '--count 1KiB' '--shape 3x8x6x'; do
    # shellcheck disable=SC2086
    run 64 synth noise $arguments new
done
run 64 verify sized --max-image-bytes 9999999TiB
run 64 bench reader --reader sized --seconds 3m
run 64 bench reader --reader sized --seconds 1e999
# Rates and times have three digits and a unit, but in JSON.
run 0 bench reader --reader sized --seconds 20ms
check 'a table for people' grep -qE '\| +[0-9.]{3,4} [kMG] \|.* [num]?s \| .*[kMG]B/s$' out
run 0 bench reader --reader sized --seconds 20ms --json
check 'numbers for programs' grep -qE '"median": [0-9.]+, ' out
run 0 bench reader --reader 'range:3 | constant:9223372036854775807' --seconds 20ms --json
check 'the largest number' grep -qF '"records": 9223372036854775807,' out
run 0 cat 'range:3 | repeat:-1 | skip:9223372036854775806 | take:3'
check 'samples at the last positions' test "$(wc -l <out)" -ge 3
run 0 bench layer --reader sized --batch 8 --seconds 0.05
check 'the rate' grep -qE '^images +[0-9.]{3,4} [kMG] images/s$' out
check 'the wait' grep -qE '^wait p50 +[0-9.]{3,4} [num]s$' out

# A path is taken where a pipeline's text is, options and all.
run 0 cat good
mv out wanted
for text in lmdb:good ./good good,read_ahead=64 "$work/good"; do
    run 0 cat "$text"
    check "leat cat $text" cmp -s out wanted
done
cp -r good 'odd,name=1|2'
run 0 cat 'odd,name=1|2'
check 'a path of special letters' cmp -s out wanted
cp -r good lmdb
run 0 cat lmdb
check 'a path that names a reader' cmp -s out wanted
run 2 cat absent
says 'absent: expected an LMDB'
run 2 cat nonesuch:good
says 'there is no reader "nonesuch"'
run 2 cat good,nonesuch=1
says 'has no argument "nonesuch"'
run 0 dump --reader good --batch 20 --out by_path
run 0 compare good by_path

# --source stands in for the net file's.
cat >net.prototxt <<TEXT
layer { name: "d" type: "Data" top: "data" top: "label"
  data_param { source: "nowhere" batch_size: 20 backend: LMDB } }
TEXT
run 2 dump --net net.prototxt --phase TEST --out missing
run 0 dump --net net.prototxt --phase TEST --source good --out by_source
check 'the same as without a net' cmp -s by_source/data.npy by_path/data.npy
run 2 dump --net net.prototxt --phase TEST --source absent --out missing
says 'absent: expected an LMDB'
run 64 dump --reader good --batch 2 --source good --out missing
says '--source is for --net'

# --mean-file stands in for the net file's mean, and alone of the transform.
run 0 mean good good.mean
cat >net.prototxt <<TEXT
layer { name: "d" type: "Data" top: "data" top: "label"
  transform_param { mean_file: "nowhere" }
  data_param { source: "good" batch_size: 20 backend: LMDB } }
TEXT
run 2 dump --net net.prototxt --phase TEST --out missing
run 0 dump --net net.prototxt --phase TEST --mean-file good.mean --out by_mean
run 0 dump --reader good --batch 20 --mean-file good.mean --out by_option
check 'the same mean' cmp -s by_mean/data.npy by_option/data.npy
check 'and not none' test "$(cmp -s by_mean/data.npy by_path/data.npy || echo no)" = no
run 2 dump --net net.prototxt --phase TEST --mean-file absent --out missing
says 'net.prototxt: absent: No such file'

exit $failed
