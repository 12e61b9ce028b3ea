#!/usr/bin/env bash
# What nvcc makes of the transform's kernels: words to the top, all in registers, of
# which there are few enough for three quarters of a processor's threads, or a block
# less where blocks_of says so, every operation rounded by itself.
#   test_kernel_code.sh NVCC FLAG...
set -u
tree=$(cd "$(dirname "$0")/../.." && pwd)
source=$tree/cuda/transform_cuda.cu
"$tree/scripts/turn.sh" 1 || {
    echo 'skipped: it is the turn of others (scripts/turn.sh)'
    exit 77
}
nvcc=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# compile NAME FLAG...: leaves NAME/transform_cuda.ptx, .cubin and what ptxas said.
compile() {
    local name=$1
    shift
    mkdir "$name"
    "${nvcc[@]}" "$@" -cubin -Xptxas=-v --keep --keep-dir "$name" "$source" \
        -o "$name/transform_cuda.cubin" >"$name/ptxas" 2>&1
}

# findings NAME MOST MORE [KERNELS]: each finding in a line; none where all is well.
# These kernels may use MORE registers, others MOST.
findings() {
    local ptx=$1/transform_cuda.ptx
    awk '/^\.visible \.entry|^\.entry/ { name = $0; n++ }
        /ld\.global\.nc\.v4/ { loads[name] = 1 }
        /st\.global\.[ubf]32/ { stores[name] = 1 }
        /\.local/ { print "local memory: " $0 }
        /[ \t]fma\./ { print "contracted: " $0 }
        /[ \t](add|sub|mul|div)\.(ftz\.)?f(32|64)/ {
            print "may be contracted: " $0
        }
        /\.ftz/ { print "flushes subnormals: " $0 }
        END {
            if (n != 35) print n " kernels, not 35"
            for (k in loads) nloads++
            for (k in stores) nstores++
            if (nloads != n) print "a kernel loads no choice at once"
            if (nstores != n) print "a kernel stores no words"
        }' "$ptx"
    [ "$(grep -c ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' \
        "$1/ptxas")" -eq 35 ] || grep 'stack frame' "$1/ptxas"
    awk -v most="$2" -v more="$3" -v kernels="${4:-way[34]ELb1}" '
        /Compiling entry/ { limit = $0 ~ kernels ? more : most }
        match($0, /Used [0-9]+/) {
            n = substr($0, RSTART + 5, RLENGTH - 5)
            if (n + 0 > limit) print n " registers, more than " limit
        }' "$1/ptxas"
    command -v nvdisasm >/dev/null || return
    nvdisasm -c "$1/transform_cuda.cubin" >"$1/sass"
    grep -E 'FFMA|DFMA|LDL|STL' "$1/sass"
}

failed=0
n=0
for number in 75 80 90 100 120; do
    "${nvcc[0]}" --list-gpu-arch | grep -qx "compute_$number" || continue
    n=$((n + 1))
    compile "sm_$number" "-arch=sm_$number" || {
        cat "sm_$number/ptxas"
        exit 1
    }
    # 768 threads of 1024, 1280 of 1536, 1536 of 2048 share 65536 of them; or 256 less.
    kernels=
    case $number in
    75) most=80 more=128 ;;
    100) most=40 more=48 kernels='way1E|way[34]ELb1' ;;
    120) most=48 more=64 ;;
    *) most=40 more=48 ;;
    esac
    findings "sm_$number" $most $more "$kernels" >found
    echo "sm_$number: registers $(grep -o 'Used [0-9]*' "sm_$number/ptxas" |
        tr -cd '0-9\n' | sort -n | uniq | paste -sd ' ')"
    [ ! -s found ] || {
        echo "sm_$number:"
        cat found
        failed=1
    }
done
[ $n -ge 2 ] || {
    echo "this nvcc knows $n of the GPUs"
    failed=1
}

# The check sees what it is there for.
compile contracted -arch=sm_80 --fmad=true
findings contracted 40 48 | grep -q contracted || {
    echo "contraction is not noticed"
    failed=1
}
sed 's/"unroll"/"unroll 1"/' "$source" >transform_cuda.cu
source=transform_cuda.cu
compile indexed -arch=sm_80
findings indexed 40 48 | grep -q 'local memory' || {
    echo "local memory is not noticed"
    failed=1
}
exit $failed
