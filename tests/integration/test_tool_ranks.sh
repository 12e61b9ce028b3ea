#!/usr/bin/env bash
# A process that a launcher started takes its share of the records: what
# --launcher dumps is what --rank and --world-size do: test_tool_ranks.sh TOOL
set -u
# shellcheck source=tests/integration/tool.sh
. "$(dirname "$0")/tool.sh" "$1"

"$leat" synth noise --count 50 --shape 1,4,4 db >log 2>&1 || {
    cat log
    exit 1
}

# dump_to NAME OPTION...: in the environment of the caller.
dump_to() {
    "$leat" dump --reader lmdb:db --batch 3 --batches 9 --out "$@" >log 2>&1 && return
    cat log
    failed=1
}

# same ENVIRONMENT RANK SIZE
same() {
    rm -rf expected found
    dump_to expected --rank "$2" --world-size "$3"
    (
        unset RANK WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE \
            PMI_RANK PMI_SIZE SLURM_PROCID SLURM_STEP_NUM_TASKS
        # The variables are several words.
        # shellcheck disable=SC2163,SC2086
        export $1
        dump_to found --launcher
        exit "$failed"
    ) || failed=1
    diff -r expected found && return
    echo "$1: not what --rank $2 --world-size $3 dumps"
    failed=1
}

same "NOTHING=1" 0 1
same "RANK=1 WORLD_SIZE=2" 1 2
same "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3" 2 3
same "PMI_RANK=0 PMI_SIZE=2" 0 2
same "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4" 3 4

dump_to first --rank 0 --world-size 2
diff -rq first found >log && {
    echo "two ranks have the same records"
    failed=1
}
# A rank's last batch of an epoch may be empty.
part=(--reader lmdb:db --batch 1 --epoch-end PARTIAL --rank 2 --world-size 3)
"$leat" dump "${part[@]}" --batches 60 --out part >log 2>&1 || fail "dump: $(<log)"
grep -aq "'shape': (0, " part/data.*.npy || fail 'no batch is empty'
"$leat" compare "${part[@]}" part >log 2>&1 || fail "compare with an empty batch: $(<log)"

RANK=2 WORLD_SIZE=2 "$leat" dump --reader lmdb:db --batch 3 --launcher \
    --out refused >log 2>&1
status=$?
if [ "$status" -ne 2 ] || ! grep -q 'RANK=2' log; then
    echo "rank 2 of 2 ends with $status: $(cat log)"
    failed=1
fi
exit "$failed"
