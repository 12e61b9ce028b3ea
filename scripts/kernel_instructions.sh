#!/usr/bin/env bash
# Counts the instructions of a warp that the transform's kernels take for a byte read
# or written, and compares them with benchmarks/kernel_instructions.txt: more than 5 %
# above fails, as do bytes that are not the CPU's.
#   kernel_instructions.sh [--if-asked | --update]
# --update writes the file. The machine code for sm_90 is executed on the CPU, over two
# images of 3 x 227 x 227; an H200 issues about 0.24 of them for a byte that it copies.
# Where there is no nvcc or nvdisasm (of PyPI's nvidia-cuda-nvdisasm; NVDISASM=PATH),
# or nvcc is not the file's, it is skipped (77). With --if-asked it does so only where
# LEAT_CHECK_INSTRUCTIONS is set, as .ci/run does.
set -eu
cd "$(dirname "$0")/.."
figures=benchmarks/kernel_instructions.txt

skip() {
    echo "skipped: $1"
    exit 77
}
[ "${1-}" != --if-asked ] || [ -n "${LEAT_CHECK_INSTRUCTIONS-}" ] ||
    skip "LEAT_CHECK_INSTRUCTIONS is not set"
[ "${1-}" != --if-asked ] || scripts/turn.sh 2 ||
    skip "it is the turn of others (scripts/turn.sh)"
nvcc=$(command -v nvcc || echo "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc")
[ -x "$nvcc" ] || skip "there is no nvcc"
this=$("$nvcc" --version | sed -n 's/.*, V//p')
that=$(sed -n 's/^# counted with nvcc //p' "$figures" 2>/dev/null || true)
[ "${1-}" = --update ] || [ "$this" = "$that" ] ||
    skip "this is nvcc $this, the figures are of $that"

work=$(mktemp -d "${TMPDIR:-/tmp}/leat-kernels.XXXXXX")
trap 'rm -rf "$work"' EXIT
nvdisasm=${NVDISASM-}
[ -n "$nvdisasm" ] || nvdisasm=$(command -v nvdisasm || true)
if [ -z "$nvdisasm" ]; then
    if ! { python3 -m venv "$work/venv" &&
        "$work/venv/bin/pip" install -q nvidia-cuda-nvdisasm==13.5.37; } \
        >"$work/log" 2>&1; then
        skip "there is no nvdisasm, and PyPI gave none"
    fi
    nvdisasm=$(find "$work/venv" -name nvdisasm -type f | head -n 1)
fi

"$nvcc" -O3 --fmad=false -std=c++14 -cubin -arch=sm_90 -Iinclude -Isrc -Icuda \
    cuda/transform_cuda.cu -o "$work/cubin"
"$nvdisasm" -c "$work/cubin" >"$work/listing"
python3 scripts/kernel_instructions.py "$work/listing" >"$work/kernels.c"
${CC:-cc} -O0 -w -ffp-contract=off -Iinclude -Isrc -I"$work" \
    scripts/kernel_instructions.c -o "$work/count" -lm
"$work/count" >"$work/found" || {
    cat "$work/found"
    echo "the kernels do not write what the CPU does"
    exit 1
}

if [ "${1-}" = --update ]; then
    {
        echo "# Instructions of a warp for a byte, by scripts/kernel_instructions.sh: type,"
        echo "# order of axes, mean, images, instructions, lanes that worked, bytes."
        echo "# counted with nvcc $this"
        cat "$work/found"
    } >"$figures"
    exit
fi
awk '{ key = $1 " " $2 " " $3 " " $4 }
    FNR == NR { before[key] = $5; next }
    {
        change = before[key] ? $5 / before[key] - 1 : 1
        printf "%-42s %s, committed %s (%+.1f %%)\n", key, $5, before[key], 100 * change
        if (change > 0.05) failed = 1
    }
    END {
        if (failed) print "more than 5 % above; if that is meant: --update"
        exit failed
    }' <(grep -v '^#' "$figures") "$work/found"
