#!/usr/bin/env bash
# The main job: trains a small net, written in C on OpenBLAS, on what leat's data
# layer delivers, and says how often it is right on records it has not seen.
#   demo.sh                        on drawn digits, synthesised first
#   demo.sh TRAIN_LMDB TEST_LMDB   on databases of Caffe's, such as MNIST
set -eu

usage() {
    sed -n '4,5s/^# *//p' "$0"
}

case $#:${1-} in
1:-h | 1:--help)
    usage
    exit 0
    ;;
0:* | 2:*) ;;
*)
    usage >&2
    exit 2
    ;;
esac

databases=()
for database in "$@"; do
    if [ ! -e "$database" ]; then
        echo "demo.sh: $database: there is no such database" >&2
        exit 1
    fi
    databases+=("$(realpath "$database")")
done
cd "$(dirname "$0")/.."

# A path as the text format of a net file quotes it.
quote() {
    printf '%s' "$1" | sed 's/[\\"]/\\&/g'
}

# The example's net, reading the given databases instead.
net_for() {
    train=$(quote "$1") test=$(quote "$2") awk '
        /^ *source:/ {
            source = n++ ? ENVIRON["test"] : ENVIRON["train"]
            printf "    source: \"%s\"\n", source
            next
        }
        { print }' examples/digits_train_test.prototxt
}

scripts/deps.sh demo
scripts/build.sh -- -DLEAT_BUILD_EXAMPLES=ON
mkdir -p build/demo
if [ "${#databases[@]}" -eq 0 ]; then
    net=examples/digits_train_test.prototxt
    build/leat synth digits --force --count 10000 --seed 1 \
        build/demo/digits_train_lmdb
    build/leat synth digits --force --count 2000 --seed 2 \
        build/demo/digits_test_lmdb
else
    net=build/demo/train_test.prototxt
    net_for "${databases[@]}" >"$net"
fi
build/examples/train_digits "$net"
