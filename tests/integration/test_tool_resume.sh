#!/usr/bin/env bash
# What comes after a resume token is what would have come without a stop: leat dump
# of 10 batches, and of 4 and 6: test_tool_resume.sh TOOL
set -u
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"

"$leat" synth noise --count 50 --shape 3,5,5 db >log 2>&1 || {
    cat log
    exit 1
}
cat >net <<'EOF'
layer {
  name: "db" type: "Data" top: "data" top: "label"
  data_param { source: "db" batch_size: 6 backend: LMDB }
  transform_param { crop_size: 4 mirror: true scale: 0.5 }
}
EOF
HEADER=256
reader=(--reader lmdb:db --batch 6 --crop 4 --mirror --scale 0.5)
net=(--net net --phase TRAIN)

# dump OUT BATCHES OPTION...
dump() {
    "$leat" dump --out "$1" --batches "$2" "${@:3}" >log 2>&1 ||
        fail "leat dump ${*:3}: $(<log)"
}

# The samples of several dumps, one after the other, top by top.
joined() {
    local file top directory
    for top in data label; do
        for directory in "$@"; do
            for file in "$directory/$top"*.npy; do
                tail -c +$((HEADER + 1)) "$file"
            done
        done
    done | cksum
}

# resumes WHOLE REST OPTION...: a dump of WHOLE batches is one of 4 and one of REST
# more, which has the manner of its own that is in the array `after`.
resumes() {
    local whole=$1 rest=$2
    shift 2
    rm -rf whole first rest token
    dump whole "$whole" --seed 7 "$@"
    dump first 4 --seed 7 --token token "$@"
    dump rest "$rest" --at token "$@" ${after[@]+"${after[@]}"}
    [ "$(joined whole)" = "$(joined first rest)" ] ||
        fail "another sequence after the token: $* then ${after[*]-}"
}

for end in WRAP DROP PARTIAL PAD; do
    for threads in '--workers 1' '--workers 3 --prefetch 1 --reader-thread ON' \
        '--workers 2 --prefetch 6 --caller-helps OFF'; do
        read -ra manner <<<"--epoch-end $end $threads"
        after=()
        resumes 10 6 "${reader[@]}" "${manner[@]}"
        resumes 10 6 "${reader[@]}" "${manner[@]}" --rng CAFFE
        resumes 10 6 "${net[@]}" "${manner[@]}"
        after=(--seed 7)
        resumes 10 6 "${reader[@]}" "${manner[@]}" --rank 1 --world-size 3
        after=(--seed 7 --workers 4 --prefetch 2 --reader-thread OFF)
        resumes 10 6 "${reader[@]}" "${manner[@]}" --rank 0 --world-size 2
    done
done

# Another size of a batch, an option given twice being the last one: 4 batches of
# 6, then of 4. With PARTIAL an epoch of 50 ends with one of 2 samples either way.
after=(--batch 4)
resumes 10 9 "${reader[@]}"
resumes 9 7 "${reader[@]}" --epoch-end PARTIAL

# All of an epoch by two ranks, of which the second half by one alone.
rm -rf token alone rank0 rank1
for rank in 0 1; do
    dump "rank$rank" 2 "${reader[@]}" --seed 7 --rank "$rank" --world-size 2 --token token
done
dump alone 4 "${reader[@]}" --at token
dump whole2 8 "${reader[@]}" --seed 7
[ "$(tail -c +$((HEADER + 1)) whole2/label.npy | tail -c 96 | cksum)" = \
    "$(tail -c +$((HEADER + 1)) alone/label.npy | cksum)" ] ||
    fail 'one rank does not go on where two were'

# refuses TEXT OPTION...
refuses() {
    "$leat" dump "${reader[@]}" --out refused "${@:2}" >out 2>log
    local status=$?
    if [ "$status" -ne 2 ] || ! grep -qF -- "$1" log || [ "$(wc -l <log)" -ne 1 ]; then
        fail "leat dump ${*:2}: status $status: $(<log)"
    fi
    [ ! -e refused ] || fail "leat dump ${*:2} left files"
}
[ "$(wc -l <token)" -eq 1 ] || fail 'a token is one line'
echo nonsense >nonsense
tr '[:upper:]' '[:lower:]' <token >damaged
: >empty
"$leat" synth noise --count 49 --shape 3,5,5 other >log 2>&1 || fail 'no other data'
refuses 'none: ' --at none
refuses 'nonsense: ' --at nonsense
refuses 'damaged: ' --at damaged
refuses 'empty: ' --at empty
refuses 'db: ' --at db
refuses 'another data set' --at token --reader lmdb:other
refuses "random_seed is 8, but the resume token's is 7" --at token --seed 8
refuses 'another rng' --at token --rng CAFFE
refuses 'net: exists and is not a resume token' --token net
# A file that only begins as a token is another's.
{ cat token && printf '\000another'; } >begun
cp begun begun.before
refuses 'begun: not a resume token: it holds a NUL' --at begun
refuses 'begun: exists and is not a resume token' --token begun
cmp -s begun begun.before || fail 'a file that is no token is replaced'
refuses 'db: exists and is not a regular file' --token db
refuses 'nowhere/token: ' --token nowhere/token
# Nor does it take the place of what the same command writes.
for file in refused/data.npy ./refused//other.npy; do
    refuses "$file: would be taken for a part of the dump in refused" --token $file
done
ln -s list linked
for file in list linked; do
    refuses 'list: is the list of bad records' --bad-record-file $file --token list
done
[ "$(head -c 5 net)" = layer ] || fail 'a refused file was changed'
# A list of bad records is none of the layer's own files, and none stays that a
# refused dump has made.
rm -f fresh
refuses 'would be taken for a part of the dump in refused' --bad-record-file fresh \
    --token refused/data.npy
[ ! -e fresh ] || fail 'an empty list of bad records stayed'
: >fresh
refuses 'would be taken for a part of the dump in refused' --bad-record-file fresh \
    --token refused/data.npy
[ -e fresh ] || fail 'a list that was there before is gone'
# One that another process has locked stays, as that may be about to write to it.
rm -f fresh
"$leat" dump "${reader[@]}" --on-error ZERO --bad-record-file fresh --batches 100000000 \
    --out endless >out 2>log </dev/null &
pid=$!
until [ -e endless ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
# shellcheck disable=SC2016
flock fresh sh -c 'kill -TERM $0
    while read -r _ _ state _ </proc/$0/stat && [ $state != Z ]; do
        sleep 0.01
    done 2>/dev/null' $pid
wait $pid 2>/dev/null
[ -e fresh ] || fail 'a list that another process has locked is gone'
[ ! -e endless ] || fail 'a dump that was stopped is there'
# Nor does one of a bench, or a comparison, that is stopped.
rm -f fresh
"$leat" bench layer "${reader[@]}" --bad-record-file fresh --seconds 1000 >out 2>log </dev/null &
pid=$!
until [ -e fresh ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
# What takes longer than a second to open is killed then.
sleep 1
kill -TERM $pid
wait $pid 2>/dev/null
[ ! -e fresh ] || fail 'an empty list of bad records stayed after a bench'
cp token before
for file in token net; do
    refuses "bad_record_file $file is there and lists no bad records" --bad-record-file $file
done
cmp -s token before || fail 'the token was changed'

# A token, and an empty file, are replaced; --json names it.
for file in token empty; do
    "$leat" dump "${reader[@]}" --out "json$file" --at token --token $file --json >out 2>log ||
        fail "--json: $(<log)"
    grep -q "\"token\": *\"$file\"" out || fail "--json does not name the token: $(<out)"
done
cmp -s token empty && fail 'the second token is not further on'

# A cache gives the first epoch's samples in every epoch: over an order that changes
# from one to the next a run with it is not a run without it.
numbers=(--top 'value=value,dtype=INT64' --batch 4 --seed 7)
dump shuffled 3 --reader 'range:20 | shuffle' "${numbers[@]}" --token of_order
for text in 'range:20 | shuffle | cache' 'range:20 | cache:dir=order | shuffle | cache'; do
    "$leat" dump --reader "$text" "${numbers[@]}" --at of_order --out order.out >log 2>&1 &&
        fail "a token of an order without a cache was taken by $text"
    grep -q "another pipeline's" log || fail "$text: $(<log)"
done
dump ordered 3 --reader 'range:20 | cache | shuffle | prefetch' "${numbers[@]}" --at of_order

# A token goes on where it was saved also once a directory of cache is there, or is
# gone: what the readers after it mark is another thing then.
for i in {0..999}; do echo $((i % 10)); done | gzip >lines.gz
chain='text:lines.gz | columns:value=int64 | cache:dir=cached | where:value=0..9'
cached=(--reader "$chain" --top 'value=value,dtype=INT64' --batch 4 --prefetch 1 --workers 1)
dump stream 2 "${cached[@]}" --token of_stream
[ ! -e cached ] || fail 'the cache is there already'
dump after_stream 2 "${cached[@]}" --at of_stream
"$leat" cat "$chain" >out || fail 'no cache is made'
[ -e cached ] || fail 'the cache is not there'
dump over_cache 2 "${cached[@]}" --at of_stream --token of_cache
cmp after_stream/value.npy over_cache/value.npy || fail 'other samples once a cache is there'
dump after_cache 2 "${cached[@]}" --at of_cache
rm -r cached
dump over_stream 2 "${cached[@]}" --at of_cache
cmp after_cache/value.npy over_stream/value.npy || fail 'other samples once a cache is gone'
# What a pipe has given is gone: no token is written, and none taken.
numbers=(--reader 'text:- | columns:value=int64' --top 'value=value,dtype=INT64' --batch 4)
for way in '--token piped' '--at of_stream'; do
    # The words of an option are several arguments.
    # shellcheck disable=SC2086
    if seq 1 300000 | "$leat" dump "${numbers[@]}" $way --out piping >out 2>log; then
        fail "dump $way of a pipe succeeds"
    fi
    grep -q 'of a pipe or device is gone: no run can be resumed' log || fail "$way: $(<log)"
    [ -z "$(find . -name 'pip*')" ] || fail "dump $way of a pipe leaves something"
done
exit "$failed"
