#!/usr/bin/env bash
# As nvcc in a toolkit of cuda12.sh: as much of it as leat's build asks for, by clang
# for code of the CPU and PTX, and ptxas for that of GPUs.
#   nvcc OPTION... -c FILE -o OBJECT
# A GPU that clang does not know gets the code of an older one's PTX.
set -eu
toolkit=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

fail() {
    echo "nvcc, by clang: $1" >&2
    exit 1
}

# Newest first; clang 14 knows these.
known=(80 75)
codes=() # sm_N and compute_N
options=()
ptxas=()
input=
output=

# add_codes TEXT: of -gencode's code=[sm_80,compute_80].
add_codes() {
    local text=${1#*code=} code
    text=${text//[\[\]]/}
    for code in ${text//,/ }; do
        codes+=("$code")
    done
}

while [ $# -gt 0 ]; do
    case $1 in
    --version)
        echo "Cuda compilation tools, release 12.9, V12.9.86"
        exit
        ;;
    -v) # CMake asks where the toolkit is.
        echo "#\$ TOP=$toolkit" >&2
        exit 1
        ;;
    -gencode=* | --generate-code=*) add_codes "$1" ;;
    -gencode | --generate-code)
        add_codes "$2"
        shift
        ;;
    -arch=all-major | -arch=all)
        codes+=(sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120 compute_80)
        ;;
    --fmad=false)
        options+=(-ffp-contract=off)
        ptxas+=(--fmad=false)
        ;;
    -Xcompiler=*) IFS=, read -ra words <<<"${1#*=}" && options+=("${words[@]}") ;;
    -O? | -std=* | -I* | -D*) options+=("$1") ;;
    -c)
        input=$2
        shift
        ;;
    -o)
        output=$2
        shift
        ;;
    *) fail "$1 is no option here" ;;
    esac
    shift
done
[[ -n $input && -n $output ]] || fail "-c FILE -o OBJECT is missing"
[ ${#codes[@]} -gt 0 ] || codes=(sm_75 sm_80 compute_80)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compile OPTION...: clang 14's headers have textures, which CUDA 12 has no more; and
# of a version that it does not know it would launch kernels as CUDA 9 did.
compile() {
    clang -x cuda --cuda-path="$toolkit" -Wno-unknown-cuda-version \
        -Wno-unused-command-line-argument -D__CLANG_CUDA_TEXTURE_INTRINSICS_H__ \
        -Xclang -target-sdk-version=11.5 "${options[@]}" "$@" "$input"
}

# ptx_of N: sets `ptx` to the file of the newest PTX that GPU N takes.
ptx_of() {
    local gpu
    for gpu in "${known[@]}"; do
        [ "$1" -ge "$gpu" ] || continue
        ptx=$work/$gpu.ptx
        [ -e "$ptx" ] || compile --cuda-device-only --cuda-gpu-arch="sm_$gpu" -S -o "$ptx"
        return
    done
    fail "GPUs of $1 are too old"
}

images=()
for code in "${codes[@]}"; do
    number=${code#*_}
    number=${number%[af]}
    ptx_of "$number"
    case $code in
    sm_*)
        "$toolkit/bin/ptxas" -O3 "${ptxas[@]}" --gpu-name "$code" "$ptx" \
            -o "$work/$code.cubin"
        images+=("--image3=kind=elf,sm=$number,file=$work/$code.cubin")
        ;;
    compute_*)
        ptx=${ptx##*/}
        images+=("--image3=kind=ptx,sm=${ptx%.ptx},file=$work/$ptx")
        ;;
    *) fail "$code is neither sm_N nor compute_N" ;;
    esac
done
# Older drivers do not know CUDA 13's way of compressing.
"$toolkit/bin/fatbinary" --create="$work/fatbin" -64 --compress=false "${images[@]}"
compile --cuda-host-only --cuda-gpu-arch=sm_80 -Xclang -fcuda-include-gpubinary \
    -Xclang "$work/fatbin" -c -o "$output"
