#!/usr/bin/env bash
# Prints -DLEAT_CUDA=ON where there is an nvcc, so that a toolkit that CMake does not
# take is an error and not a build for the CPU alone; prints nothing elsewhere.
set -eu
for nvcc in "$(command -v nvcc || true)" "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" \
    /usr/local/cuda/bin/nvcc; do
    if [ -n "$nvcc" ] && [ -x "$nvcc" ]; then
        echo -DLEAT_CUDA=ON
        exit
    fi
done
