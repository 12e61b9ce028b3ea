#!/usr/bin/env bash
# Line and branch coverage of src/ by the tests, a table for each directory:
#   coverage.sh [--build DIR] [--run REGEX] [--report]
# --run: only these tests; --report: run none, tell what earlier ones covered.
# DIR/coverage/ gets the pages of each file, with the lines that no test reached.
set -eu
cd "$(dirname "$0")/.."

build="build-coverage"
tests=.
run=1
# These look at the tree, kill what they test before it can write its counts, or
# make the system's calls fail, the counting's own among them.
excluded='packag|headers_alone|dependency_law|models|docs'
excluded+='|import_kills|failing|surroundings'
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift ;;
    --run) tests=$2 && shift ;;
    --report) run=0 ;;
    *)
        sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

if [ "$run" -eq 1 ]; then
    scripts/deps.sh check
    # Atomic counters, since many threads count; without asserts, which never
    # fail; without inlining, which would count a line once for each place.
    cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=gcc \
        -DCMAKE_BUILD_TYPE=Debug -DLEAT_BUILD_EXAMPLES=OFF \
        -DLEAT_BUILD_BENCHMARKS=OFF -DCMAKE_C_FLAGS_DEBUG="-O1 -g0 -DNDEBUG \
-fno-inline --coverage -fprofile-update=atomic" >/dev/null
    cmake --build "$build" --parallel "$(nproc)" >/dev/null
    find "$build" -name '*.gcda' -delete
    # What fails here fails in the main run, too: its coverage counts as it is.
    ctest --test-dir "$build" --parallel "$(nproc)" --tests-regex "$tests" \
        --exclude-regex "$excluded" |
        tail -n 20
fi

mkdir -p "$build/coverage"
gcovr --root . --filter 'src/' --object-directory "$build" \
    --exclude-unreachable-branches --exclude-throw-branches \
    --gcov-ignore-parse-errors --html-details "$build/coverage/index.html" \
    --json-summary "$build/coverage/summary.json" "$build" >/dev/null
jq -r '
    def share(a; b): if b == 0 then "" else (a / b * 1000 | round / 10) end;
    def row(name; f): [name, (f | map(.line_total) | add),
        share(f | map(.line_covered) | add; f | map(.line_total) | add),
        (f | map(.branch_total) | add),
        share(f | map(.branch_covered) | add; f | map(.branch_total) | add)];
    .files | . as $all
    | (group_by(.filename | split("/")[:2] | join("/"))[]
        | row(.[0].filename | split("/")[:2] | join("/"); .)),
      row("all"; $all)
    | @tsv' "$build/coverage/summary.json" |
    awk -F '\t' 'BEGIN { print "| directory | lines | covered, % | branches | covered, % |"
                         print "|---|---|---|---|---|" }
                 { printf "| %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5 }'
