#!/usr/bin/env bash
# What nvcc makes of the transform's kernels: memory in words of 16 bytes, all in
# registers, every operation rounded by itself. test_kernel_code.sh NVCC FLAG...
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)/cuda/transform_cuda.cu
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

# Each finding in a line; none where all is well.
findings() {
    local ptx=$1/transform_cuda.ptx
    awk '/^\.visible \.entry|^\.entry/ { name = $0; n++ }
        /ld\.global\.nc\.v4/ { loads[name] = 1 }
        /st\.global\.v4/ { stores[name] = 1 }
        /\.local/ { print "local memory: " $0 }
        /[ \t]fma\./ { print "contracted: " $0 }
        /[ \t](add|sub|mul|div)\.(ftz\.)?f(32|64)/ {
            print "may be contracted: " $0
        }
        /\.ftz/ { print "flushes subnormals: " $0 }
        END {
            if (n != 4) print n " kernels, not 4"
            for (k in loads) nloads++
            for (k in stores) nstores++
            if (nloads != n) print "a kernel loads no 16 bytes at once"
            if (nstores != n) print "a kernel stores no 16 bytes at once"
        }' "$ptx"
    [ "$(grep -c ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' \
        "$1/ptxas")" -eq 4 ] || grep 'stack frame' "$1/ptxas"
    command -v nvdisasm >/dev/null || return
    nvdisasm -c "$1/transform_cuda.cubin" >"$1/sass"
    grep -E 'FFMA|DFMA|LDL|STL' "$1/sass"
    for wide in LDG.E.128 STG.E.128; do
        grep -q "$wide" "$1/sass" || echo "no $wide in the machine code"
    done
}

failed=0
n=0
for number in 70 75 80 90 100; do
    "${nvcc[0]}" --list-gpu-arch | grep -qx "compute_$number" || continue
    n=$((n + 1))
    compile "sm_$number" "-arch=sm_$number" || {
        cat "sm_$number/ptxas"
        exit 1
    }
    findings "sm_$number" >found
    echo "sm_$number: registers $(grep -o 'Used [0-9]*' "sm_$number/ptxas" |
        tr -cd '0-9\n' | paste -sd ' ')"
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
findings contracted | grep -q contracted || {
    echo "contraction is not noticed"
    failed=1
}
sed 's/"unroll"/"unroll 1"/' "$source" >transform_cuda.cu
source=transform_cuda.cu
compile indexed -arch=sm_80
findings indexed | grep -q 'local memory' || {
    echo "local memory is not noticed"
    failed=1
}
exit $failed
