#!/usr/bin/env bash
# The laws of the tree that a machine can see. Prints each violation, with file
# and line, and fails if there is one: law.sh [ROOT], law.sh --self-test
#   - base <- device <- data <- pipeline <- readers <- decorators <- layer <-
#     config; nothing includes upwards; cuda stands on device alone
#   - includes are written relative to src
#   - no stem of src (x.c, x.h) includes another one round
#   - examples: public headers and their own only; the tool: those and base; within
#     src/tools cli <- image, database <- delivery <- bench, import, inspect, synth <-
#     the commands, which stand in src/tools itself
#   - no #if on CUDA but in the registry of devices, src/device/device.c, and on
#     what a caller's compiler calls the default stream, in leat/cuda.h; and no
#     header of CUDA's or NVTX's outside cuda
#   - file names are unique, and a stem has one home
#   - the library never prints, exits or aborts
#   - words are compared as ASCII (src/base/ascii.h), whatever the program's locale
set -u

here=$(cd "$(dirname "$0")/.." && pwd)

# The files of some folders, with line number and text of what matches.
search() {
    local pattern=$1 folder folders=()
    shift
    for folder in "$@"; do
        [ -d "$folder" ] && folders+=("$folder")
    done
    [ "${#folders[@]}" -eq 0 ] && return
    grep -rnE --include='*.c' --include='*.h' --include='*.cu' \
        --include='*.cpp' -e "$pattern" "${folders[@]}"
}

quoted_includes() {
    search '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$@" |
        sed -E 's/^([^:]+):([0-9]+):[^"]*"([^"]*)".*/\1 \2 \3/'
}

check_layers() {
    quoted_includes src cuda | awk '
        BEGIN {
            n = split("base device data pipeline readers decorators layer config", name)
            for (i = 1; i <= n; i++) rank[name[i]] = i
        }
        {
            split($1, path, "/")
            from = path[1] == "cuda" ? "cuda" : path[2]
            to = $3
            if (from == "cuda" && to !~ /\//) next
            if (to !~ /\//) {
                print $1 ":" $2 ": \"" to "\" is not written relative to src"
                next
            }
            sub(/\/.*/, "", to)
            if (from == to) next
            if (from == "tools" && to == "base") next
            if (from == "tools")
                print $1 ":" $2 ": the tool includes " $3 ", which is neither public nor base"
            else if (from == "cuda" && to != "device" && to != "base")
                print $1 ":" $2 ": cuda stands on device alone, not on " $3
            else if (!(to in rank))
                print $1 ":" $2 ": " $3 " belongs to no layer of src"
            else if (from != "cuda" && rank[to] > rank[from])
                print $1 ":" $2 ": " from " includes upwards, " $3
        }'
}

# tsort names the members of each loop, a line each, behind a line of its own.
check_circles() {
    quoted_includes src | awk '
        {
            sub(/^src\//, "", $1)
            sub(/\.[^.\/]*$/, "", $1)
            sub(/\.[^.\/]*$/, "", $3)
            if ($1 != $3) print $1, $3
        }' | LC_ALL=C tsort 2>&1 >/dev/null | awk '
        / loop:?$/ { if (loop) print loop; loop = "src: includes go round:"; next }
        { loop = loop " " $NF }
        END { if (loop) print loop }'
}

# By the folders of both sides; commands are in no folder. command.h, the prototypes
# of all commands, is for each of them wherever it lies.
check_tools() {
    quoted_includes src/tools | awk '
        function folder(path, part) {
            return split(path, part, "/") > 2 ? part[2] : "tools"
        }
        BEGIN {
            rank["cli"] = 0
            rank["image"] = rank["database"] = 1
            rank["delivery"] = 2
            rank["bench"] = rank["import"] = rank["inspect"] = rank["synth"] = 3
            rank["tools"] = 4
        }
        {
            from = folder(substr($1, 5))
            to = folder($3)
            if (from == to || $3 !~ /^tools/ || $3 == "tools/command.h") next
            if (!(from in rank) || !(to in rank) || rank[to] >= rank[from])
                print $1 ":" $2 ": in the tool, " from " does not stand on " to
        }'
}

check_public() {
    quoted_includes include | awk '
        { print $1 ":" $2 ": a public header includes \"" $3 "\", not <leat/...>" }'
    quoted_includes examples | while read -r file line header; do
        [ -e "$(dirname "$file")/$header" ] ||
            echo "$file:$line: examples include public headers only, not $header"
    done
}

check_device_switch() {
    search '^[[:space:]]*#[[:space:]]*(if|ifdef|ifndef|elif)\>.*(CUDA|CPU_ONLY|NVCC|NVTX)' \
        src include | grep -vE '_H$' | grep -v '^src/device/device\.c:' |
        grep -v '^include/leat/cuda\.h:.*CUDA_API_PER_THREAD_DEFAULT_STREAM$' |
        sed -E 's/^([^:]+:[0-9]+):.*/\1: #if on CUDA outside src\/device\/device.c/'
    search '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](cuda|nvtx|nvToolsExt)' \
        src include | grep -v '^src/[^:]*"cuda_' |
        sed -E 's/^([^:]+:[0-9]+):.*/\1: a header of CUDA outside cuda/'
}

check_names() {
    local folder folders=()
    for folder in src cuda tests examples benchmarks; do
        [ -d "$folder" ] && folders+=("$folder")
    done
    [ "${#folders[@]}" -eq 0 ] && return
    find "${folders[@]}" -type f \( -name '*.[ch]' -o -name '*.cu' \) | sort |
        awk -F/ '
        {
            file = $NF
            if (file in seen) print $0 ": also " seen[file]
            seen[file] = $0
            if ($1 == "tests") next
            stem = file
            sub(/\.[^.]*$/, "", stem)
            home = substr($0, 1, length($0) - length(file))
            if (stem in homes && homes[stem] != home)
                print $0 ": the stem lives in " homes[stem] " already"
            homes[stem] = home
        }'
}

check_silence() {
    search '(^|[^a-zA-Z0-9_>.])(exit|_exit|abort|printf|fprintf|puts|perror)\(' \
        src/base src/device src/data src/pipeline src/readers src/decorators src/layer \
        src/config cuda | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(/?\*|//)' |
        sed -E 's/^([^:]+:[0-9]+):.*/\1: the library never prints, exits or aborts/'
}

check_words() {
    search '(^|[^a-zA-Z0-9_])(strn?casecmp(_l)?|strcasestr|tolower|toupper|isal(pha|num)|is(upper|lower))\(' \
        src/base src/device src/data src/pipeline src/readers src/decorators src/layer \
        src/config src/tools/cli cuda |
        sed -E 's/^([^:]+:[0-9]+):.*/\1: words are compared by src\/base\/ascii.h, in any locale/'
}

check_all() {
    check_layers
    check_circles
    check_tools
    check_public
    check_device_switch
    check_names
    check_silence
    check_words
}

law() {
    local violations
    cd "$1" || exit 1
    violations=$(check_all)
    [ -z "$violations" ] && return 0
    printf '%s\n' "$violations"
    return 1
}

# plant FILE TEXT EXPECTED [OTHER [TEXT]]: a tree with just this file in it, and
# another, must be found guilty of EXPECTED, or innocent where EXPECTED is empty.
plant() {
    local root found
    root=$(mktemp -d)
    mkdir -p "$root/$(dirname "$1")"
    printf '%b' "$2" >"$root/$1"
    [ -z "${4-}" ] || {
        mkdir -p "$root/$(dirname "$4")" && printf '%b' "${5-}" >"$root/$4"
    }
    found=$(law "$root")
    rm -rf "$root"
    if [ -z "$3" ]; then
        [ -z "$found" ] && return
    else
        grep -qF "$3" <<<"$found" && return
    fi
    echo "self-test: $1 with $2: expected '$3', found '$found'"
    failed=1
}

self_test() {
    failed=0
    plant src/base/queue.c '#include "layer/batch.h"\n' 'base includes upwards'
    plant src/layer/batch.c '#include "config/net_param.h"\n' 'layer includes upwards'
    plant src/layer/batch.c '#include "base/queue.h"\n#include "data/x.h"\n' ''
    plant src/data/blob.c '#include "blob.h"\n' 'not written relative to src'
    plant src/data/blob.c '#include "tools/blob.h"\n' 'belongs to no layer'
    plant src/data/blob.c '#include "datum.pb-c.h"\n' 'not written relative to src'
    plant cuda/device_cuda.c '#include "data/blob.h"\n' 'cuda stands on device alone'
    plant cuda/device_cuda.c '#include "device/job.h"\n' ''
    plant src/tools/dump.c '#include "data/blob.h"\n' 'which is neither public nor base'
    plant src/tools/dump.c '#include "base/clock.h"\n' ''
    plant src/tools/dump.c '#include <leat.h>\n#include "tools/npy.h"\n' ''
    plant src/tools/delivery/dump.c '#include "tools/database/staging.h"\n' ''
    plant src/tools/delivery/dump.c '#include "tools/bench/h2d.h"\n' \
        'delivery does not stand on bench'
    plant src/tools/cli/option.c '#include "tools/image/font.h"\n' \
        'cli does not stand on image'
    plant src/tools/bench/limit.c '#include "tools/main.h"\n' \
        'bench does not stand on tools'
    plant src/tools/command_dump.c '#include "tools/delivery/npy.h"\n' ''
    plant src/data/blob.h '#include "data/mean.h"\n' \
        'includes go round: data/blob data/mean' \
        src/data/mean.h '#include "data/blob.h"\n'
    plant src/data/blob.c '#include "data/mean.h"\n' 'includes go round' \
        src/data/mean.c '#include "data/blob.h"\n'
    plant src/data/blob.c '#include "data/blob.h"\n#include "data/mean.h"\n' '' \
        src/data/mean.c '#include "data/mean.h"\n#include "base/log.h"\n'
    plant src/layer/device_queue.h '#include "layer/worker.h"\n' 'includes go round' \
        src/layer/worker.h '#include "layer/device_queue.h"\n'
    plant src/layer/device_queue.c '#include "layer/worker.h"\n' 'includes go round' \
        src/layer/worker.h '#include "layer/device_queue.h"\n'
    plant include/leat/blob.h '#include "data/blob.h"\n' 'a public header includes'
    plant examples/net.c '#include "data/blob.h"\n' 'examples include public headers'
    plant examples/net.c '#include "gemm.h"\n' '' examples/gemm.h
    plant src/data/blob.c '#ifdef LEAT_CUDA\n' '#if on CUDA'
    plant src/data/blob.c '# if !defined(CPU_ONLY)\n' '#if on CUDA'
    plant src/device/device.c '#ifdef LEAT_CUDA\n' ''
    plant src/layer/batch.c '#if defined(__NVCC__)\n' '#if on CUDA'
    plant src/layer/batch.c '#include <cuda_runtime_api.h>\n' 'a header of CUDA'
    plant include/leat/cuda.h '#include <cuda_runtime.h>\n' 'a header of CUDA'
    plant src/base/trace.h '# include <nvtx3/nvToolsExt.h>\n' 'a header of CUDA'
    plant cuda/device_cuda.c '#include <cuda_runtime_api.h>\n' ''
    plant include/leat/cuda.h '#ifndef LEAT_CUDA_H\n' ''
    plant include/leat/cuda.h '#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM\n' ''
    plant src/data/blob.c '#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM\n' '#if on CUDA'
    plant src/data/mean.c '' 'the stem lives in' src/tools/mean.c
    plant src/data/mean.c '' '' src/data/mean.h
    plant tests/unit/test_x.c '' 'also tests/' tests/conformance/test_x.c
    plant src/base/log.c '    fprintf(stderr, "x");\n' 'never prints'
    plant src/base/log.c '    abort();\n' 'never prints'
    plant src/base/log.c '    snprintf(line, n, "x");\n    queue->exit(1);\n' ''
    plant src/base/log.c '    if (!strcasecmp(a, b))\n' 'in any locale'
    plant src/layer/batch.c '    *c = (char)tolower(*c);\n' 'in any locale'
    plant src/base/log.c '    leat__ascii_lower(*c);\n' ''
    [ "$failed" -eq 0 ] && echo "the law catches what it should"
    return "$failed"
}

case ${1-} in
--self-test) self_test ;;
'') law "$here" ;;
*) law "$1" ;;
esac
