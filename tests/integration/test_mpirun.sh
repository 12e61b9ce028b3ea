#!/usr/bin/env bash
# Ranks that mpirun started: together they deliver the single run's batches, through
# every decorator that ranks can have, also resumed on another number of ranks:
# test_mpirun.sh TOOL
set -u
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"
command -v mpirun >/dev/null || {
    echo "skipped: mpirun is not installed"
    exit 77
}
mpi=(mpirun --oversubscribe)
[ "$(id -u)" -eq 0 ] && mpi+=(--allow-run-as-root)

for count in 53 31; do
    "$leat" synth noise --count $count --shape 1,4,4 --seed $count "db$count" >log 2>&1 || {
        cat log
        exit 1
    }
done

# dump WORLD TEXT FOLDER [OPTION...]: 8 samples a batch of all ranks.
dump() {
    local world=$1 text=$2 folder=$3
    shift 3
    mkdir -p "$folder"
    # The variables are those of the shell that mpirun starts.
    # shellcheck disable=SC2016
    "${mpi[@]}" -np "$world" bash -c '
        "$0" dump --launcher --reader "$1" --batch $((8 / OMPI_COMM_WORLD_SIZE)) \
            --seed 7 --out "$2/$OMPI_COMM_WORLD_RANK" \
            --token "$2/token.$OMPI_COMM_WORLD_RANK" "${@:3}"' \
        "$leat" "$text" "$folder" "$@" >log 2>&1 </dev/null && return
    fail "$world ranks, $text: $(grep -m 1 leat: log)"
}

# rows WORLD FOLDER: the samples of all ranks in the order of the global batches.
rows() {
    local rank
    for ((rank = 0; rank < $1; rank++)); do
        tail -c +257 "$2/$rank/data.npy" | od -An -v -tx1 -w64 |
            awk -v world="$1" -v rank="$rank" '{ print (NR - 1) * world + rank, $0 }'
    done | sort -n | cut -d ' ' -f 2-
}

while read -r text; do
    rm -rf single ranks resumed
    dump 1 "$text" single --batches 20
    rows 1 single >expected
    [ "$(wc -l <expected)" -eq 160 ] || fail "$text: $(wc -l <expected) rows"
    for world in 2 4; do
        dump "$world" "$text" "ranks/$world" --batches 9
        rows "$world" "ranks/$world" | diff -q - <(head -n 72 expected) >/dev/null ||
            fail "$world ranks, $text: not the single run's batches"
    done
    cmp -s ranks/4/token.0 ranks/4/token.3 || fail "$text: the ranks' tokens differ"
    dump 2 "$text" resumed --batches 11 --at ranks/4/token.1
    rows 2 resumed | diff -q - <(tail -n 88 expected) >/dev/null ||
        fail "$text: 2 ranks do not go on where 4 stopped"
done <<'TEXTS'
lmdb:db53
lmdb:db53 | take:40 | skip:3
lmdb:db53 | shard:2,1 | repeat:3
(lmdb:db53) (lmdb:db31) | chain
lmdb:db53 | shuffle
lmdb:db53 | shuffle:10 | take:40
lmdb:db53 | shuffle:block=8 | repeat:2
(lmdb:db53) (lmdb:db31) | mix:2,1,on_end=repeat
(lmdb:db53) (lmdb:db31) | interleave:cycle=2,block=3 | shuffle:7
(lmdb:db53) (lmdb:db31 | repeat:2) | zip:align=0,prefix=(a_,b_) | select:data=a_data,label=b_label
lmdb:db53 | where:label=0..500 | prefetch:16,threads=2
files:db?? | interleave:(lmdb:{}),cycle=7,block=2 | shuffle:12
lmdb:db53 | cache | batch:3 | unbatch
lmdb:db53 | transform:data,mirror=1 | cast:label=float32
TEXTS

[ "$failed" -eq 0 ] && echo 'ranks under mpirun deliver the single run'\''s batches'
exit "$failed"
