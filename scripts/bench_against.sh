#!/usr/bin/env bash
# Compares the workloads with those of another commit, in alternation:
#   bench_against.sh [--runs N] [--seconds S] COMMIT
# Builds COMMIT beside the tree, prints the ratios of each pair of runs, their
# median and range: of the rates (more than 1 is faster than COMMIT) and of the
# CPU times of an image (less than 1 is cheaper). Needs a quiet machine. The options that both have are used, so COMMIT must have them.
set -eu
cd "$(dirname "$0")/.."

runs=5
seconds=2
commit=
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    -*)
        echo "bench_against.sh: $1 is no option; see the head of the script" >&2
        exit 2
        ;;
    *) commit=$1 ;;
    esac
    shift
done
commit=$(git rev-parse --short --verify --quiet "$commit^{commit}") || {
    echo "bench_against.sh: which commit? See the head of the script" >&2
    exit 2
}

scripts/build.sh
command -v jq >/dev/null || scripts/deps.sh test
leat=build/leat
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-against.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
git archive "$commit" | tar -x -C "$work/tree"
echo "building $commit ..." >&2
"$work/tree/scripts/build.sh" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    exit 1
}
# shellcheck source=scripts/workloads.sh
. scripts/workloads.sh
make_databases

rate() {
    measure "$1" "$2" --seconds "$seconds" |
        jq -r '"\(.images_per_s) \(.cpu_us_per_image)"'
}

# Each pair of runs begins with the other one.
ratios() {
    local run now other
    for run in $(seq "$runs"); do
        [ $((run % 2)) -eq 1 ] || now=$(rate "$leat" "$1")
        other=$(rate "$work/tree/build/leat" "$1")
        [ $((run % 2)) -eq 0 ] || now=$(rate "$leat" "$1")
        echo "$now $other"
    done
}

cat <<END
- machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(date -u +%Y-%m-%d)
- compiler: $(cc --version | head -n 1), Release
- commits: $(git rev-parse --short HEAD)$(git diff --quiet || echo ", changed"), against $commit

| case | images/s | at $commit | rates of pairs | CPU of pairs |
| --- | --- | --- | --- | --- |
END
for n in "${!names[@]}" crops; do
    name=$crops
    [ "$n" = crops ] || name=${names[n]}
    ratios "$n" | jq -rRs --arg name "$name" '
        def median: sort | .[length / 2 | floor];
        def places(n): . * pow(10; n) | round / pow(10; n);
        def ratio(a; b): map(a / b) | sort
            | "\(median | places(3)) (\(first | places(3)) to \(last | places(3)))";
        [splits("\n") | select(. != "") | split(" ") | map(tonumber)]
        | "| \($name) | \(map(.[0]) | median | round) | \(map(.[2]) | median | round)"
        + " | \(ratio(.[0]; .[2])) | \(ratio(.[1]; .[3])) |"'
done
