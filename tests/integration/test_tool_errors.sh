#!/usr/bin/env bash
# Bad input gets one line on stderr and status 2, wrong usage status 64; nothing is
# left behind (but the lock file of a database that was read), nothing hangs and
# nothing dies of a signal: test_tool_errors.sh TOOL
set -u
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"
checks=0

# expect STATUS TEXT ARGUMENT...: the tool run with these arguments.
expect() {
    local status=$1 text=$2 found before
    shift 2
    checks=$((checks + 1))
    before=$(find . ! -name lock.mdb | sort)
    timeout 60 "$leat" "$@" >stdout 2>stderr </dev/null
    found=$?
    [ "$found" -eq "$status" ] || complain "status $found, not $status" "$@"
    [ "$(wc -l <stderr)" -eq 1 ] || complain "not one line on stderr" "$@"
    [ ! -s stdout ] || complain "something on stdout" "$@"
    grep -qiE -- "$text" stderr || complain "the line does not say '$text'" "$@"
    rm -f stdout stderr
    [ "$(find . ! -name lock.mdb | sort)" = "$before" ] || complain "something left behind" "$@"
}

complain() {
    echo "leat ${*:2}: $1; stderr has:"
    head -n 3 stderr
    failed=1
}

# net FIELDS [TRANSFORM] [TYPE]: writes net.prototxt with one data layer.
net() {
    cat >net.prototxt <<TEXT
name: "case"
layer {
  name: "data"
  type: "${3-Data}"
  top: "data"
  top: "label"
  transform_param { ${2-} }
  data_param { $1 }
}
TEXT
}

# bad_net TEXT FIELDS [TRANSFORM]: dumping such a net ends with an error.
bad_net() {
    net "${@:2}"
    expect 2 "$1" dump --net net.prototxt --phase TRAIN --batches 1 --out out
}

bad_text() {
    local text=$1
    shift
    printf '%b' "$*" >net.prototxt
    expect 2 "$text" dump --net net.prototxt --phase TRAIN --batches 1 --out out
}

# The place of the source in the net file comes first.
bad_database() {
    expect 2 "$1" info "$2"
    bad_net "^leat: net.prototxt:8:24: .*$1" \
        "source: \"$2\" batch_size: 4 backend: LMDB"
}

expect 64 'command'
expect 64 'frobnicate' frobnicate
expect 64 'nonesuch' synth digits --nonesuch 1 db
expect 64 ": unknown option '-x'" info -xyz good
expect 64 ": unknown option '-x'" info -x good
expect 64 ": unknown option '--jason=1'" info --jason=1 good
expect 64 ": ambiguous option '--co'" show --co 1 good
expect 2 'cannot be made in nosuch/dir: No such file' synth digits nosuch/dir/new
mkdir unfinished.leat-part
expect 2 'unfinished: does not exist yet; unfinished.leat-part is unfinished' info unfinished
rmdir unfinished.leat-part
printf 'a.png\t1\n' >tabbed
expect 2 "found 'a.png.x091'" import images tabbed new
printf '\211PNG\r\n' >picture
expect 2 "found '.x89PNG'" import images picture new
rm tabbed picture
expect 64 '^leat: --json takes no value' info --json=1 good
expect 64 '^leat: --help takes no value' info --help=1
expect 64 'count' synth digits --count
expect 64 'count' synth digits --count many db
expect 64 'shape' synth digits --shape 1,2 db
expect 64 "--records: expected LIST, found 'x': .*such as 1,5,9-20" show db --out png --records x
expect 64 'kittens' synth kittens db
expect 64 '.' synth digits
expect 64 '^leat: --seed: expected a whole number of 64 bits, found .x. \(' synth digits --seed x db
expect 64 '^leat: --count: expected a whole number from 0 to 100000000, found .1e3.' \
    synth digits --count 1e3 db
expect 64 '^leat: --seed: expected a whole number, found .x. ' dump --seed x
expect 64 '^leat: --workers: expected 0 to 1024 threads, found .1025. ' dump --workers 1025
expect 64 '^leat: --scale: expected a number, found .x. ' dump --scale x
long=$(printf 'x%.0s' {1..1000})
expect 64 "found 'x{64}\.\.\. \(1000 bytes\)'" dump --scale "$long"
expect 64 "found 'x{64}\.\.\. \(1000 bytes\)': with" dump --mean-value "$long"
expect 64 '^leat: --shape: expected three whole numbers C,H,W or CxHxW from 1 to 8192, found .1,2. ' \
    synth digits --shape 1,2 db
expect 64 '^leat: --resize: expected two whole numbers H,W or HxW from 1 to ' \
    import images --resize 3 list db
expect 64 '^leat: --mean-value: expected MEAN,..., found .q.: .*one number' dump --mean-value q
expect 64 '.' info
expect 64 '.' dump
expect 64 'CPU or DEVICE' dump --reader lmdb:db --batch 1 --transform-on GPU --out out
expect 64 'no command given.*leat bench --help' bench
expect 64 'either --net or --reader.*leat bench layer --help' bench layer
expect 64 'no command given' import
expect 64 'phase' dump --net net.prototxt --phase SIDEWAYS --batches 1 --out out
expect 64 'batches' dump --net net.prototxt --phase TEST --batches -1 --out out
expect 64 '--net needs --phase' dump --net net.prototxt --out out
expect 64 '--reader needs --batch' dump --reader lmdb:db --out out
for option in '--crop 3' --mirror '--scale 2' '--mean-value 1' --color \
    --gray; do
    # The words of an option are several arguments.
    # shellcheck disable=SC2086
    expect 64 'the file sets the transform' dump --net net.prototxt \
        --phase TEST $option --out out
done
for option in '--phase SIDEWAYS' '--layout HWC' '--rng DICE' '--on-error NEVER' \
    '--top-type kittens' '--mean-value 1,x' '--mean-value 1,inf' '--stage=' \
    '--seed two' '--scale fast' '--batches 1.5' '--rank -1' '--world-size -1' \
    '--prefetch deep' '--prefetch -2' '--top-type bytes' '--label-type float16' \
    '--global-batch 0' '--max-memory much' '--reader-thread 3' '--caller-helps ON' \
    '--top-mode KEEP' '--batch 0' '--max-image-bytes -1' '--max-errors -2'; do
    # shellcheck disable=SC2086
    expect 64 "^leat: ${option%%[ =]*}" dump \
        --reader lmdb:db --batch 1 $option --out out
done
# shellcheck disable=SC2046 # an option each
expect 64 '^leat: --stage: expected at most 16 stages' dump --net net.prototxt \
    --phase TEST $(printf -- '--stage=s%d ' {1..17}) --out out
for word in SKIP skip; do
    expect 64 '^leat: --on-error: SKIP is called REPLACE now' dump \
        --reader lmdb:db --batch 1 --on-error $word --out out
done
expect 64 'already sets --rank and --world-size' dump --reader lmdb:db --batch 1 \
    --launcher --rank 1 --world-size 2 --out out
expect 64 'already sets --rank and --world-size' dump --reader lmdb:db --batch 1 \
    --launcher --rank 0 --out out
for kind in cifar10 images mnist pipeline; do
    expect 64 "import $kind --help" import $kind
done
expect 64 'unknown command .kittens' import kittens a b
expect 64 'kittens' bench kittens
expect 64 '--append no longer exists: .*--force' import mnist a b c --append
expect 64 '--append no longer exists' import pipeline a b --append=1
expect 64 'jpg or png' import images list out --encode-type bmp
expect 64 'shuffle' import images list out --seed 3
expect 64 'pixels' import images list out --resize 100000,100000
expect 64 '.' mean only_one_argument

"$leat" synth digits --count 40 --shape 1,28,28 --seed 1 good >log 2>&1 || {
    cat log
    echo "synth failed"
    exit 1
}
"$leat" synth noise --count 4 --shape 3,20,20 --seed 1 colour >log 2>&1
rm log
good='source: "good" batch_size: 4 backend: LMDB'
expect 2 'good' synth digits --count 4 good

# Databases that are none.
bad_database 'absent' absent
mkdir empty && : >empty/data.mdb
bad_database 'empty' empty
mkdir bare
bad_database 'bare' bare
mkdir foreign && head -c 20000 /dev/urandom >foreign/data.mdb
bad_database 'foreign' foreign
for size in 100 4096 8192 20000; do
    mkdir "cut$size"
    head -c "$size" good/data.mdb >"cut$size/data.mdb"
    bad_database "cut$size" "cut$size"
done

# Nets that are none.
expect 2 'absent.prototxt' dump --net absent.prototxt --phase TEST --batches 1 \
    --out out
expect 2 '.' dump --net good/data.mdb --phase TEST --batches 1 --out out
bad_text 'net.prototxt' 'layer {'
bad_text 'net.prototxt.*2' 'name: "x"\nlayer } {\n'
bad_text 'net.prototxt' 'layer { name: "x" type: "Data" data_param { sauce: 1 } }'
bad_text '.' ''
bad_text '.' 'layer { name: "fc" type: "InnerProduct" }'
bad_text '.' "$(printf 'layer { name: "d" type: "Data" top: "a" data_param {
    %s } include { phase: TEST } }' "$good")"
for braces in '{' 'a{' 'layer{' 'layer{a{'; do
    head -c 400000 < <(yes "$braces" | tr -d '\n') >net.prototxt
    expect 2 'net.prototxt' dump --net net.prototxt --phase TRAIN --batches 1 \
        --out out
done

# Every wrong value that ends Caffe.
bad_net 'source' 'batch_size: 4 backend: LMDB'
bad_net 'backend|LEVELDB' 'source: "good" batch_size: 4'
bad_net 'batch_size' 'source: "good" backend: LMDB'
bad_net 'batch_size' 'source: "good" batch_size: 0 backend: LMDB'
bad_net 'batch' 'source: "good" batch_size: 4294967295 backend: LMDB'
bad_net 'prefetch' "$good prefetch: 1048577"
bad_net 'record 0, key 00000000: crop' "$good" 'crop_size: 29'
cksum good/data.mdb >before
expect 2 'the database that is read' mean good good/data.mdb
ln -s good/lock.mdb lock
expect 2 'the database that is read' mean good lock
"$leat" synth noise --count 2 --jpeg 90 jpegs >/dev/null || complain 'no JPEGs' synth
expect 2 'max_image_bytes allows 1000' mean jpegs mean.out --max-image-bytes 1000
expect 2 'the database that is read' show good --out good/data.mdb
rm lock
cksum good/data.mdb | cmp - before || failed=1
rm before
bad_net 'mean_value' "$good" 'mean_value: 1 mean_value: 2'
bad_net 'mean_value' 'source: "colour" batch_size: 4 backend: LMDB' \
    'mean_value: 1 mean_value: 2'
bad_net 'net.prototxt:7:32: absent.mean: No such' "$good" \
    'mean_file: "absent.mean"'
"$leat" mean good good.mean >log 2>&1 || {
    cat log
    failed=1
}
rm -f log
bad_net 'mean' 'source: "colour" batch_size: 4 backend: LMDB' \
    'mean_file: "good.mean"'
bad_net 'mean' "$good" 'mean_file: "good.mean" mean_value: 3'
head -c 1000 good.mean >cut.mean
bad_net 'cut.mean' "$good" 'mean_file: "cut.mean"'
bad_net 'good/data.mdb' "$good" 'mean_file: "good/data.mdb"'
bad_net 'force' "$good" 'force_color: true force_gray: true'

for layer in 'bottom: "x" top: "data"' '' 'top: "a" top: "b" top: "c"'; do
    echo "layer { name: \"d\" type: \"Data\" $layer data_param { $good } }" \
        >net.prototxt
    expect 2 '.' dump --net net.prototxt --phase TRAIN --batches 1 --out out
done

# records DB HEX...: a database with the keys 00000000, 00000001, ... of LMDB's own
# tool, not of ours.
records() {
    local key=0 value
    mkdir "$1"
    {
        printf 'VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n'
        for value in "${@:2}"; do
            printf ' %s\n' "$(printf '%08d' "$key" | od -An -tx1 | tr -d ' ')"
            printf ' %s\n' "$value"
            key=$((key + 1))
        done
        printf 'DATA=END\n'
    } | mdb_load "$1"
}

# bad_record TEXT HEX: after two good records of 1 x 2 x 2, and named by its key.
bad_record() {
    local fine=080110021802220401020304
    rm -rf records
    records records "$fine" "$fine" "$2" "$fine"
    bad_net "$1" 'source: "records" batch_size: 4 backend: LMDB'
    bad_net '00000002' 'source: "records" batch_size: 4 backend: LMDB'
}

if command -v mdb_load >/dev/null; then
    bad_record '.' 0801100218022204010203
    bad_record '.' 08011002180222020102
    bad_record '.' 0801100218022803
    bad_record '.' 08ffffffff0710ffffffff0718ffffffff07220101
    bad_record '.' 08ffffffffffffffffff01100218022204010203042803
    bad_record '.' 08ffffffffffffffffffffffffffffffffffffffffffff
    bad_record '.' 2204deadbeef28013801
    bad_record '.' 22063132333435362801
    bad_record '1x1x2|1 x 1 x 2|shape' 08011001180222020102
    bad_record '.' ff
else
    echo "left out: bad records, for mdb_load (lmdb-utils) is not installed"
fi

# A file that says it is too large is not read to find out.
truncate -s 8G huge.mean
bad_net '8589934592' "$good" 'mean_file: "huge.mean"'

# A pipe that has a name is no file, and not waited for; the shell's pipes have none.
mkfifo pipe
expect 2 'pipe: expected a regular file' dump --net pipe --phase TRAIN --batches 1 --out out
expect 2 'pipe: expected a regular file' dump --reader lmdb:good --batch 4 --batches 1 \
    --mean-file pipe --out out
bad_net 'pipe: expected a regular file' "$good" 'mean_file: "pipe"'
# Where the output cannot go is known before what is read, for which it would wait.
exec 6<>pipe
expect 2 'none/sheet.png: No such file or directory' show --reader idx:pipe --batch 1 \
    --out none/sheet.png
expect 2 'none/mean: No such file or directory' mean good none/mean
exec 6>&-
rm pipe
mkdir unread unread/data.npy
mkfifo unread/label.npy
expect 2 '/data.npy: expected a regular file' compare unread unread
rmdir unread/data.npy
(exec sleep 0 >unread/label.npy) &
writer=$!
expect 2 'unread/label.npy: expected a regular file' compare unread unread
sleep 0.1
# Who waits to write to it goes on waiting.
kill $writer || failed=1
wait $writer 2>/dev/null
rm -r unread
net "$good"
# shellcheck disable=SC2002 # a pipe is what is tested
cat net.prototxt | "$leat" dump --net /dev/stdin --phase TRAIN --batches 1 --out piped \
    >log 2>&1 || {
    cat log
    failed=1
}
rm -rf piped log
dd if=/dev/zero status=none | timeout 60 "$leat" dump --net /dev/stdin --phase TRAIN --batches 1 \
    --out out 2>stderr && complain "a net without an end" dump
grep -q '/dev/stdin: expected at most [0-9]* bytes, found more' stderr ||
    complain "it does not say that it is too long" dump
rm -f stderr

# All files of a dump come, or none.
mkdir -p blocked/label.npy
net "$good"
expect 2 'label.npy' dump --net net.prototxt --phase TRAIN --out blocked

# Nor is a directory left that was made for them; what was there stays.
: >file
mkdir -p kept
expect 2 'file: Not a directory' dump --net net.prototxt --phase TRAIN \
    --out file/out
expect 2 '/proc/nowhere: ' dump --net net.prototxt --phase TRAIN \
    --out /proc/nowhere/out
printf '%s' "layer { name: \"data\" type: \"Data\" top: \"a/b\" top: \"a_b\"
    data_param { $good } }" >net.prototxt
for out in new new/ new/er/est new//er/est// "$work/new/er" kept kept/ \
    kept/new/er; do
    expect 2 'one file' dump --net net.prototxt --phase TRAIN --out "$out"
done
net "$good"

# Two dumps at once would write the same files.
mkdir busy
exec 9<busy
flock 9
expect 2 'busy: another program has locked it' dump --net net.prototxt --phase TRAIN --out busy
exec 9<&-

# Nothing is left of what could not even begin.
if [ "$(id -u)" -ne 0 ]; then
    printf '#!/bin/sh\numask 777\nexec "%s" "$@"\n' "$leat" >masked
    chmod +x masked
    tool=./masked expect 1 'unborn.leat-part' synth digits --count 4 unborn
else
    echo "left out: directories without permission, for root may all"
fi

# Lines for a closed stream do not land in the files that are open instead.
for closed in '<&- 2>&-' '<&- >&- 2>&-' '>&-' '2>&-'; do
    rm -f good/lock.mdb
    eval "LEAT_LOG_LEVEL=debug timeout 60 \"$leat\" dump --net net.prototxt \
        --phase TRAIN --out closed $closed" >log 2>&1
    if grep -qa 'leat:\|batch' good/lock.mdb closed/*.npy; then
        echo "streams closed by $closed: a line is in a database or a dump"
        failed=1
    fi
    rm -rf closed log
done

# What waits for a net file that comes through a pipe ends by one signal. Under
# ThreadSanitizer no handler runs while a call blocks.
waits_for_net() {
    local pid pipe tries=0 status
    [ -z "${TSAN_OPTIONS-}" ] || {
        echo "left out: signals while $1 waits, for ThreadSanitizer holds them back"
        return
    }
    exec 8<> <(:)
    pipe=$(readlink /proc/$$/fd/8)
    "$leat" "$@" --net /dev/fd/8 --phase TEST >log 2>stderr </dev/null &
    pid=$!
    # Once by our descriptor, and once by its own: it reads.
    until [ "$(readlink /proc/$pid/fd/* 2>/dev/null | grep -cxF "$pipe")" -eq 2 ] ||
        ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -TERM $pid
    while kill -0 $pid 2>/dev/null && [ $((tries += 1)) -lt 1000 ]; do sleep 0.01; done
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    exec 8>&-
    [ "$status" -eq 143 ] && return
    echo "leat $* waits for a pipe: status $status after a signal: $(cat stderr)"
    failed=1
}
waits_for_net dump --out piped
waits_for_net show --out piped.png
waits_for_net bench layer
waits_for_net bench limit
"$leat" dump --reader lmdb:good --batch 1 --out dumped >/dev/null || failed=1
waits_for_net compare dumped
[ ! -e piped ] && [ ! -e piped.png ] || failed=1

# So does what waits for the rest of the data, of two images, of which the pipe has BYTES.
{ printf '\0\0\10\3\0\0\0\2\0\0\0\144\0\0\0\144' && head -c 20000 /dev/zero; } >images.idx
waits_for_data() {
    local bytes=$1 pid tries=0 status
    shift
    mkfifo piped_data
    exec 8<>piped_data
    head -c "$bytes" images.idx >&8
    env --default-signal=TERM "$leat" "$@" >log 2>stderr </dev/null 8>&- &
    pid=$!
    # It has the pipe, and all of its threads sleep.
    until { readlink /proc/$pid/fd/* 2>/dev/null | grep -q piped_data$ &&
        ! cut -d ' ' -f 3 /proc/$pid/task/*/stat 2>/dev/null | grep -qv S; } ||
        ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -TERM $pid
    while kill -0 $pid 2>/dev/null && [ $((tries += 1)) -lt 1000 ]; do sleep 0.01; done
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    exec 8>&-
    # What an import has so far it keeps.
    rm -rf piped_data piped.leat-part
    if [ "$status" -ne 143 ] || [ -s log ] || ls -d piped* >/dev/null 2>&1; then
        echo "leat $* waits for data: status $status after a signal: $(cat log stderr)"
        failed=1
    fi
    rm -rf piped*
}
checks=$((checks + 1))
rm -rf dumped
"$leat" dump --reader idx:images.idx --batch 1 --batches 2 --out dumped >/dev/null || failed=1
waits_for_data 12345 info idx:piped_data
waits_for_data 12345 bench reader --reader idx:piped_data
waits_for_data 12345 bench layer --reader idx:piped_data --batch 1
waits_for_data 12345 bench layer --reader idx:piped_data --batch 1 --device cpu,cpu
waits_for_data 12345 show --reader idx:piped_data --batch 1 --out piped.png
waits_for_data 12345 dump --reader idx:piped_data --batch 1 --batches 2 --out piped
waits_for_data 12345 compare --reader idx:piped_data --batch 1 dumped
waits_for_data 12345 import pipeline idx:piped_data piped
# Labels are read when the reader is opened.
waits_for_data 0 info idx:images.idx,piped_data
waits_for_data 0 explain idx:images.idx,piped_data
waits_for_data 0 import pipeline idx:images.idx,piped_data piped

# A signal ends a comparison within a row, here one of minutes, whose bytes are alike or
# whose values are compared one by one.
row() {
    mkdir "$1"
    printf '%-127s\n' "-NUMPY----{'descr': '|u1', 'fortran_order': False, 'shape': (1, 400000000000), }" |
        LC_ALL=C sed 's/^-NUMPY----/\x93NUMPY\x01\x00\x76\x00/' | head -c 128 >"$1/x.npy"
    printf '%b' "$2" >>"$1/x.npy"
    truncate -s 400000000128 "$1/x.npy"
}
stops_in_row() {
    local pid status stat
    env --default-signal=TERM "$leat" compare "$@" >log 2>stderr </dev/null &
    pid=$!
    # It has computed for some time.
    until ! read -r -a stat 2>/dev/null </proc/$pid/stat || [ $((stat[13] + stat[14])) -ge 30 ]; do
        sleep 0.01
    done
    kill -TERM $pid
    { timeout 60 tail --pid=$pid -f /dev/null || kill -KILL $pid; } 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    [ "$status" -eq 143 ] && return
    echo "leat compare $*: status $status after a signal within a row: $(cat stderr)"
    failed=1
}
checks=$((checks + 1))
if row one '\0' 2>/dev/null && row alike '\0' && row other '\1'; then
    stops_in_row one alike
    stops_in_row one other
else
    echo 'left out: signals within a row: no sparse files of 400 GB here'
fi
rm -rf one alike other

# Help and version are no errors.
for words in --help help --version 'dump --help' 'import images --help' \
    'bench layer --help'; do
    # shellcheck disable=SC2086
    if ! timeout 60 "$leat" $words >log 2>stderr || [ ! -s log ] || [ -s stderr ]
    then
        echo "leat $words: $(head -n 3 stderr)"
        failed=1
    fi
done

# What prints ends at the first signal, though nobody reads what it prints.
checks=$((checks + 1))
mkfifo unread
signals='INT TERM HUP'
[ -z "${TSAN_OPTIONS-}" ] || {
    echo "left out: signals to writers, for ThreadSanitizer holds them back"
    signals=
}
# nobody_reads SIGNAL COMMAND...
nobody_reads() {
    local signal=$1 pid tries=0 status
    shift
    # Held open for both, so that neither waits for the other; and full.
    exec 3<>unread
    head -c 65536 /dev/zero >&3
    # In the background a shell without job control has SIGINT ignored.
    env --default-signal="$signal" "$leat" "$@" >&3 2>stderr </dev/null &
    pid=$!
    # It writes, as far as the kernel tells.
    until [[ $(cat /proc/$pid/wchan 2>/dev/null) = *pipe_write ]] ||
        [ $((tries += 1)) -gt 200 ] || ! kill -0 $pid 2>/dev/null; do
        sleep 0.01
    done
    kill -"$signal" $pid
    timeout 20 tail --pid=$pid -f /dev/null || {
        echo "leat $* does not end by $signal while nobody reads its output"
        kill -9 $pid
        failed=1
    }
    wait $pid 2>/dev/null
    status=$?
    exec 3>&-
    [ "$status" -gt 128 ] && return
    echo "leat $*: status $status after $signal, though nobody has its output"
    failed=1
}
# As the first process of a container, which no signal kills by default.
# first_process WAITS COMMAND...: with TERM once it is in that function of the kernel.
first_process() {
    local what=$1 tries=0 status pid first
    shift
    unshare "$how" -- env --default-signal=TERM "$leat" "$@" >&3 2>stderr </dev/null &
    pid=$!
    until read -r first <"/proc/$pid/task/$pid/children" &&
        [[ $(cat "/proc/$first/wchan" 2>/dev/null) = *$what* ]] ||
        [ $((tries += 1)) -gt 200 ]; do
        sleep 0.01
    done
    kill -TERM "$first"
    timeout 20 tail --pid="$first" -f /dev/null || {
        echo "leat $*: does not end by TERM as a first process"
        kill -9 "$first"
        failed=1
    }
    wait $pid
    status=$?
    [ "$status" -eq 143 ] && return
    echo "leat $*: status $status, not 143, after TERM as a first process: $(cat stderr)"
    failed=1
}
how=
for one in '-pf' '-rpf'; do
    [ -n "$how" ] || { unshare "$one" true 2>/dev/null && how=$one; }
done
if [ -n "$how" ] && [ -n "$signals" ]; then
    checks=$((checks + 1))
    exec 3<>unread
    # All that it prints is in its own buffer when it ends.
    head -c 65536 /dev/zero >&3
    first_process pipe_write cat --count 2 lmdb:good
    exec 3>&-
    exec 3<>unread
    first_process poll cat 'text:unread | constant:3'
    exec 3>&-
else
    echo "left out: signals to a first process"
fi
for signal in $signals; do
    nobody_reads "$signal" cat --values lmdb:good
    nobody_reads "$signal" verify good
    nobody_reads "$signal" show good --out -
done
[ -z "$signals" ] || for command in 'dump --reader lmdb:good --batch 1 --out unheard' \
    'mean good unheard.mean' 'import pipeline lmdb:good unheard.db' 'compare dumped dumped' \
    'info good' 'synth digits --count 2 unheard.synth' \
    'bench layer --reader lmdb:good --batch 1 --seconds 0.1'; do
    # shellcheck disable=SC2086
    nobody_reads TERM $command
done
rm -f unread stderr

# Frames are small enough for a small stack.
checks=$((checks + 1))
(ulimit -s 128 && exec timeout 60 "$leat" verify good) >log 2>stderr || {
    echo "leat verify on a stack of 128 KiB: $(cat log stderr)"
    failed=1
}
# Sanitizers' frames are larger.
if ! grep -qaE '__[at]san_init' "$leat"; then
    checks=$((checks + 1))
    (ulimit -s 80 && exec timeout 60 "$leat" compare good good) >log 2>stderr || {
        echo "leat compare on a stack of 80 KiB: $(cat log stderr)"
        failed=1
    }
fi
rm -f log stderr

# And where nothing is wrong, nothing is said.
net "$good"
timeout 60 "$leat" dump --net net.prototxt --phase TEST --batches 3 --out out \
    >log 2>stderr || failed=1
if [ -s stderr ] || [ ! -s out/data.npy ] || [ ! -s out/label.npy ]; then
    echo "a good net: $(cat log stderr)"
    failed=1
fi

# A dump that cannot be looked at for lack of descriptors is no other thing. A sanitizer
# takes one itself.
if ! grep -qaE '__[at]san_init' "$leat"; then
    checks=$((checks + 1))
    status=0
    (ulimit -n 4 && exec timeout 60 "$leat" compare out out) >log 2>stderr || status=$?
    if [ $status -ne 2 ] || ! grep -q 'Too many open files' stderr; then
        echo "a dump without descriptors: status $status, $(cat log stderr)"
        failed=1
    fi
fi

echo "$checks cases of bad input"
exit "$failed"
