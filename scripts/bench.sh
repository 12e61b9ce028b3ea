#!/usr/bin/env bash
# Measures the workloads on databases of its own, and writes its sections of
# benchmarks/RESULTS.md. Needs a quiet machine, and minutes.
#   bench.sh [--runs N] [--seconds S] [SECTION...]
# workloads: layer and limit of each in one run; bare: the limits beside the
# figures that were aimed at; consumer: with a caller that computes 20 ms a
# batch; core: layer and plain loop on one core; memory: over 20 epochs; parts:
# readers and the hand-over; cold: databases on storage that must be waited for;
# epochs: a layer opened over a database that is not in memory, epoch by epoch;
# batches: small images in batches of 1 to 1024.
set -eu
cd "$(dirname "$0")/.."

runs=5
seconds=3
slices=8
sections=()
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    workloads | bare | consumer | core | memory | parts | cold | epochs | batches)
        sections+=("$1")
        ;;
    -h | --help)
        sed -n '2,10s/^# //p' "$0"
        exit 0
        ;;
    *)
        echo "bench.sh: $1 is no option or section; see bench.sh --help" >&2
        exit 2
        ;;
    esac
    shift
done
[ "${#sections[@]}" -gt 0 ] || sections=(workloads bare consumer core memory parts cold epochs batches)

scripts/build.sh -- -DLEAT_BUILD_BENCHMARKS=ON
command -v jq >/dev/null || scripts/deps.sh test
leat=build/leat
counter=$PWD/build/libleat_allocation_count.so
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/workloads.sh
. scripts/workloads.sh
make_databases

# row NAME FIELDS: a line of a table, from the objects on stdin.
row() {
    jq -rs --arg name "$1" '
        def median: sort | .[length / 2 | floor];
        def places(n): . * pow(10; n) | round / pow(10; n);
        def range: sort | "\(.[length / 2 | floor] | round) (\(first | round) to \(last | round))";
        [$name, '"$2"'] | map(tostring) | "| " + join(" | ") + " |"'
}

# several ARGUMENT...: measure, once for each run.
several() {
    for _ in $(seq "$runs"); do
        measure "$leat" "$@"
    done
}

# The row kernels that a layer takes here.
kernels() {
    build/benchmarks/bench_transform --seconds 0.1 mnist | sed -n 's/.*kernels //p'
}

machine() {
    # What the sections before this one wrote changes nothing that is measured.
    local measured=(. ':!README.md' ':!benchmarks/RESULTS.md')
    cat <<END
- machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, kernels $(kernels), $(date -u +%Y-%m-%d)
- compiler: $(cc --version | head -n 1), Release
- commit: $(git rev-parse --short HEAD)$(git diff --quiet -- "${measured[@]}" || echo ", changed")
END
}

section_workloads() {
    local n fields='(map(.images_per_s) | median | round),
        (map(.limit_images_per_s) | median | round),
        (map(.limit_share * 100) | range),
        (map(.cpu_us_per_image / .limit_cpu_us_per_image * 100) | range),
        (map(.first_batch_ms) | median | places(1)),
        (map(.wait_us.p50) | median | places(1)),
        (map(.wait_us.p99) | median | places(1)),
        (map(.steady_allocations) | max)'
    cat <<END
By \`scripts/bench.sh --runs $runs --seconds $seconds\`, which makes its own databases with
\`leat synth noise\`. Page cache warm; medians of $runs runs, each a process of its own. The
share is of the limit measured in the same run, in alternation: all cores walking and
transforming the same records without queues (\`leat bench limit\`); for uint8 crops, which
are what a device's transform takes, a bare copy of rows. CPU is the processor time of an
image beside the limit's. Ranges over the runs are in brackets.

$(machine)

| case | images/s | limit | share, % | CPU, % | first batch, ms | wait p50, us | wait p99, us | allocations |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
END
    for n in "${!names[@]}"; do
        several "$n" --seconds "$seconds" --limit | row "${names[n]}" "$fields"
    done
    several crops --seconds "$seconds" --limit --row-copy | row "$crops" "$fields"
}

# limits AIM LEAT-ARGUMENT...: two cells for each number of cores in AIM, which
# are pairs such as "1:4700000", of bench limit. It takes all the cores there are.
limits() {
    local aims=$1 aim
    shift
    for aim in $aims; do
        for _ in $(seq "$runs"); do
            taskset -c "0-$((${aim%%:*} - 1))" $leat bench limit "$@" \
                --seconds "$seconds" --json
        done | jq -rs --argjson aim "${aim#*:}" '
            map(.limit_images_per_s) | sort | .[length / 2 | floor]
            | " \(round) | \(. / $aim * 100 | round) |"'
    done | tr -d '\n'
}

# beside CASE DATABASE NAME OPTION...: a line for each number of cores, of
# bench_bare.
beside() {
    warm "$2"
    ${pinned:+taskset -c 0} build/benchmarks/bench_bare "${@:4}" \
        --seconds "$((2 * runs))" --json "$1" "$work/$2" |
        jq -r --arg name "$3" '
            def percent: . * 100 | round;
            .results[] | "| \($name) | \(.threads) | \(.bare.median | round) | "
            + "\(.leat.median | round) | \(.ratio.median | percent) "
            + "(\(.ratio.p10 | percent) to \(.ratio.p90 | percent)) |"'
}

# Decoding alone, as bench_image does it, in images of a second and core.
decoding() {
    build/benchmarks/bench_image --json jpeg256 | jq -r --arg way "jpeg256_$1" '
        .results[] | select(.case == $way and .unit == "us/image")
        | 1e6 / .median | " \(round) | \(. / 5450 * 100 | round) | | |"'
}

section_bare() {
    cat <<END
## The bare transform

\`leat bench limit\`, without a layer, on one core and on two, and decoding by
\`bench_image\`, on one; medians of $runs runs. "Of aim" is the share of what a
prototype without queues had reached on 2 cores of an AMD EPYC with AVX-512: 4.7 and
10.5 million MNIST-like images a second, 2.2 and 4.2 million CIFAR-like ones without a
mean, 30,000 and 43,000 raw crops, 105,000 of them as uint8 on one core, 5,450 JPEGs by
bare libjpeg-turbo on one.

$(machine)

| case | one core, images/s | of aim, % | two cores, images/s | of aim, % |
| --- | --- | --- | --- | --- |
END
    echo "| MNIST-like 1x28x28 to float32 |$(limits "1:4.7e6 2:10.5e6" \
        --reader "lmdb:$work/mnist" --batch 64 --scale 0.00390625)"
    echo "| CIFAR-like 3x32x32 to float32 |$(limits "1:2.2e6 2:4.2e6" \
        --reader "lmdb:$work/cifar" --batch 100)"
    echo "| raw 3x256x256 to 227, crop, mirror, mean_value, float32 |$(limits \
        "1:30000 2:43000" --reader "lmdb:$work/raw" --batch 64 --crop 227 \
        --mirror --mean-value 104,117,123)"
    echo "| the same as uint8 crops |$(limits 1:105000 --reader "lmdb:$work/raw" \
        --batch 64 --crop 227 --mirror --top-type uint8) | |"
    echo "| JPEG 256x256, bare libjpeg-turbo |$(decoding bare)"
    echo "| JPEG 256x256 decoded by leat |$(decoding whole)"
    echo "| JPEG 256x256 to 227, decoded and transformed |$(decoding transform)"
    cat <<END

The same beside a plain loop, by \`bench_bare\`: a cursor of liblmdb and a conversion written
for that one job, nothing of leat in it (benchmarks/bare_loop.c), in alternation in one
process; the median of 75 pairs, and their 10th and 90th percentile.

| case | cores | plain loop, images/s | leat | share, % |
| --- | --- | --- | --- | --- |
END
    beside mnist mnist "MNIST-like 1x28x28 to float32, scale"
    beside cifar cifar "CIFAR-like 3x32x32 to float32"
    beside raw raw "raw 3x256x256 to 227, crop, mirror, mean_value, float32"
    beside crops raw "the same as uint8 crops"
}

section_consumer() {
    local n fields='(map(.wait_us.p50) | median | places(1)),
        (map(.wait_us.p99) | median | places(1)),
        (map(.wait_us.max) | max | places(1)),
        (map(.batches / .seconds) | median | places(1)),
        (map(.bound_by) | unique | join(", "))'
    cat <<END
## A caller that computes

20 ms of processor time on one core after each batch, as a net on the CPU does
(\`--compute-ms 20\`); of $runs runs the medians, and the longest wait of all.

$(machine)

| computing 20 ms a batch | wait p50, us | wait p99, us | longest, us | batches/s | bound by |
| --- | --- | --- | --- | --- | --- |
END
    for n in "${!names[@]}"; do
        several "$n" --seconds "$seconds" --compute-ms 20 | row "${names[n]}" "$fields"
    done
}

section_core() {
    local n pinned=1 fields='(map(.images_per_s) | median | round),
        (map(.limit_images_per_s) | median | round),
        (map(.limit_share * 100) | range),
        (map(.cpu_us_per_image / .limit_cpu_us_per_image * 100) | range),
        (map(.wait_us.p50) | median | places(1))'
    cat <<END
## One core

Everything on one core (\`taskset -c 0\`): the layer beside a plain loop, which finds, transforms
and drops the same records in one thread, in the same run, in alternation. Medians of $runs runs
of $seconds s, ranges in brackets.

$(machine)

| case | images/s | plain loop | share, % | CPU, % | wait p50, us |
| --- | --- | --- | --- | --- | --- |
END
    for n in "${!names[@]}"; do
        several "$n" --seconds "$seconds" --limit | row "${names[n]}" "$fields"
    done
    cat <<END

That loop is made of leat's own reading and transforming, which are quicker than a cursor of
liblmdb and a conversion written for one job alone. The layer beside the latter, by
\`bench_bare --layer\`, in alternation in one process; the median of 75 pairs, and their 10th
and 90th percentile.

| case | cores | loop of liblmdb, images/s | layer | share, % |
| --- | --- | --- | --- | --- |
END
    beside mnist mnist "MNIST-like 1x28x28, batch 64, scale" --layer
    beside cifar cifar "CIFAR-like 3x32x32, batch 100" --layer
    beside raw raw "raw 3x256x256 to 227, crop, mirror, mean_value, batch 64" --layer
    beside crops raw "the same as uint8 crops" --layer
}

section_memory() {
    local n few
    cat <<END
## Memory over 20 epochs

Peak resident memory of a process that took 2 epochs and of one that took 20, the map's pages
included; allocations in the 20.

$(machine)

| over 20 epochs | after 2, MB | after 20, MB | of it mapped files | batches | allocations |
| --- | --- | --- | --- | --- | --- |
END
    for n in "${!names[@]}"; do
        few=$(measure "$leat" "$n" --epochs 2 | jq '.peak_rss / 1e6 * 10 | round / 10')
        measure "$leat" "$n" --epochs 20 | row "${names[n]}" "$few,"'
            (map(.peak_rss / 1e6) | first | places(1)),
            (map(.memory.mapped / 1e6) | first | places(1)),
            (map(.batches) | first), (map(.steady_allocations) | first)'
    done
}

section_parts() {
    cat <<END
## Readers and the hand-over

Records of the MNIST-like database by \`leat bench reader\`, found and not looked at, and
batches of one byte by \`bench_queue\`; its latencies are from the moment a sample is
there until a caller that sleeps has it.

$(machine)

\`\`\`
$($leat bench reader --reader "lmdb:$work/mnist" --seconds "$seconds")

$(build/benchmarks/bench_queue --seconds "$seconds")
\`\`\`
END
}

# cold ARGUMENT...: the table of bench_cold, without its heading.
cold() {
    build/benchmarks/bench_cold "$@" | tail -n +3
}

section_cold() {
    local n databases=(mnist cifar raw jpeg)
    scripts/deps.sh bench >&2
    cmake -S . -B build >"$work/log" # finds what was installed
    cmake --build build --target bench_cold >"$work/log"
    cat <<END
## Cold data

One pass over a database of which nothing is in memory, by \`bench_cold\` (see the head of
benchmarks/bench_cold.c). It is served by FUSE with a latency of 1 ms and 200 MB/s, which
is as busy as it can be at 100 %; the system reads 128 KiB ahead there of itself. Raw
records, batch 64, reader thread and all else by default; slow consumers need 1.5 times as
long for a batch as the storage. "Every other" makes an index when it is set up, which for
small records has then read them all.

$(machine | sed 's/^-/*/')
END
    for n in "${!databases[@]}"; do
        printf '\n%s\n\n' "${names[n]%%,*}"
        cold "$work/${databases[n]}"
    done
    printf '\nJPEG, from 50 MB/s, since decoding bounded it before\n\n'
    cold --mb-per-s 50 "$work/jpeg"
    printf '\nraw, where the file lies, its pages dropped; 100 %% is a bare read just before\n\n'
    cold --here "$work/raw"
}

section_epochs() {
    local n databases=(mnist cifar raw jpeg) batches=(64 100 64 64)
    cat <<END
## A cold start, epoch by epoch

By \`bench_epochs\` (see the head of benchmarks/bench_epochs.c): three epochs of a layer
opened over a database in memory, then of one opened once the page cache was told to drop
it, float32 and all else by default; medians of $runs rounds, ranges in brackets. MNIST-like
and CIFAR-like epochs take 6 and 12 ms here, so those of a million images stand beside them.

$(machine)
END
    $leat synth noise --count 1000000 --shape 1,28,28 --seed 1 "$work/mnist_big" >&2
    for n in "${!databases[@]}"; do
        printf '\n%s\n\n' "${names[n]%%,*}"
        build/benchmarks/bench_epochs --rounds "$runs" --batch "${batches[n]}" \
            "$work/${databases[n]}"
    done
    printf '\nMNIST-like, a million images\n\n'
    build/benchmarks/bench_epochs --rounds "$runs" "$work/mnist_big"
}

section_batches() {
    local batch
    cat <<END
## Small images in batches of 1 to 1024

MNIST-like, beside the limit of the same run, as above; medians of $slices slices of a
second, each a process of its own, and the worst of them in brackets.

$(machine)

| batch | images/s | limit | share, % | CPU, % | busy cores |
| --- | --- | --- | --- | --- | --- |
END
    for batch in 1 2 4 8 16 32 64 128 256 512 1024; do
        for _ in $(seq "$slices"); do
            warm mnist
            $leat bench layer --reader "lmdb:$work/mnist" --batch "$batch" \
                --scale 0.00390625 --limit --seconds 1 --json
        done | row "$batch" '(map(.images_per_s) | median | round),
            (map(.limit_images_per_s) | median | round),
            (map(.limit_share * 100) | "\(median | round) (\(min | round))"),
            (map(.cpu_us_per_image / .limit_cpu_us_per_image * 100)
                | "\(median | round) (\(max | round))"),
            (map(.cpu_us_per_image * .images_per_s / 1e6) | median | places(2))'
    done
}

for section in "${sections[@]}"; do
    echo "measuring: $section ..." >&2
    "section_$section" >"$work/section"
    scripts/results.sh "$section" <"$work/section"
    cat "$work/section"
done

tests/docs/documents.sh --update
