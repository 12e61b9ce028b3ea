#!/usr/bin/env bash
# Makes a toolkit of CUDA 12, whose builds run on drivers from 525 on, out of
# packages of PyPI; where there is one already, it is left as it is.
#   cuda12.sh [FOLDER]               (out/cuda12)
# then, for a bundle:
#   cmake -S . -B build-cuda12 -DLEAT_CUDA=ON -DCUDAToolkit_ROOT=FOLDER
#   cmake --build build-cuda12 && scripts/bundle.sh --gpu build-cuda12 out/bundle12
# PyPI has CUDA 12's runtime, headers and assembler, but no nvcc of it: clang
# compiles in its place (clang_nvcc.sh), and what puts machine code for several GPUs
# into one file is CUDA 13's.
set -eu

fail() {
    echo "cuda12.sh: $1" >&2
    exit "${2:-1}"
}

case ${1-} in
-h | --help)
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
-*) fail "$1 is no option; see cuda12.sh --help" 2 ;;
esac
[ $# -le 1 ] || fail "give a folder, no more" 2
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../out/cuda12}
if [ -x "$folder/bin/nvcc" ]; then
    cd "$folder" && pwd
    exit
fi
[ ! -e "$folder" ] || fail "$folder is there already and is no toolkit"
[ "$(uname -m)" = x86_64 ] || fail "the packages are for x86-64"
for program in clang python3; do
    command -v $program >/dev/null || fail "there is no $program"
done
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT

python3 -m pip download --quiet --no-deps --only-binary=:all: \
    --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux2010_x86_64 --platform manylinux_2_12_x86_64 \
    --python-version 3.11 --dest "$work/wheels" \
    nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79 \
    nvidia-cuda-cccl-cu12==12.9.27 nvidia-cuda-nvcc==13.0.88 >&2 ||
    fail "PyPI does not give the packages"
for wheel in "$work"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/packages"
done
from=$work/packages/nvidia
toolkit=$work/toolkit
mkdir -p "$toolkit/bin" "$toolkit/lib64" "$toolkit/nvvm"
cp -r "$from/cuda_runtime/include" "$toolkit/"
cp -r "$from/cuda_nvcc/include/." "$from/cuda_cccl/include/." "$toolkit/include/"
cp -r "$from/cuda_nvcc/nvvm/libdevice" "$toolkit/nvvm/"
cp "$from"/cuda_runtime/lib/lib* "$toolkit/lib64/"
ln -s libcudart.so.12 "$toolkit/lib64/libcudart.so"
cp "$from/cuda_nvcc/bin/ptxas" "$from/cu13/bin/fatbinary" "$toolkit/bin/"
cp "$here/clang_nvcc.sh" "$toolkit/bin/nvcc"
chmod +x "$toolkit"/bin/*
mv "$toolkit" "$folder"
cd "$folder" && pwd
