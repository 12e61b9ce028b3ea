#!/usr/bin/env bash
# scripts/plot_bench.py draws what it measures, and again what it kept:
# test_plot_bench.sh TOOL
set -u
leat=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
plot=$(cd "$(dirname "$0")/../.." && pwd)/scripts/plot_bench.py
python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
"$python" -c 'import matplotlib' 2>/dev/null || {
    echo "skipped: python3 has no matplotlib"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() {
    "${@:2}" && return
    echo "failed: $1"
    failed=1
}

# The tool, but a data set is measured once: what follows draws it all the same.
cat >tool <<'END'
#!/bin/sh
[ "$1" = bench ] || exec "$TOOL" "$@"
measured=$WORK/${4##*/}.json
[ -s "$measured" ] || "$TOOL" "$@" >"$measured" || exit
cat "$measured"
END
chmod +x tool
export TOOL=$leat WORK=$work
"$python" "$plot" --tool ./tool --out out --runs 1 --seconds 0.02 --records 70 \
    --workers 1,2 --batch 4 --side 16,24 >list 2>log || {
    cat log
    exit 1
}
for name in rate stages; do
    check "$name.png" test "$(head -c 4 "out/$name.png" | tail -c 3)" = PNG
    check "$name.svg" grep -q '<svg' "out/$name.svg"
done
# shellcheck disable=SC2016
check 'the spread and the limit of each point' "$python" -c '
import json
for key, points in json.load(open("out/sweep.json")).items():
    for _, _, run in points:
        low, high = run["spread"]
        assert 0 < low <= high and run["limit_images_per_s"] > 0, key
        assert run["bound_by"] and " " not in run["bound_by"], key
'
check 'the pictures follow the verdict' "$python" -B -c '
import sys
sys.path.insert(0, sys.argv[1])
import plot_bench
forward = {"name": "forward", "busy": 0, "blocked_empty": 9, "blocked_full": 0}
work = {"name": "decode", "busy": 8, "blocked_empty": 0, "blocked_full": 1,
        "blocked_lock": 2}
read = {"name": "reader", "threads": 0, "busy": 2}
run = {"helped": 5, "stages": [read, work, forward],
       "verdict": "the feed keeps up; bound by the consumer: decode"}
waited = plot_bench.times(run, forward)
assert (waited["helped"], waited["blocked_empty"]) == (5, 4)
worked = plot_bench.times(run, work)
assert (worked["helped"], worked["busy"], worked["blocked_lock"]) == (4, 4, 2)
assert plot_bench.times(run, read)["helped"] == 1
assert plot_bench.verdict(run) == "the feed keeps up"
' "$(dirname "$plot")"
check 'four pictures are named' test "$(wc -l <list)" -eq 4
for key in workers batch side stages; do
    check "sweep.json has $key" grep -q "\"$key\": \[\[" out/sweep.json
done
"$python" "$plot" --out again --from out/sweep.json >list || failed=1
check 'the same picture again' cmp -s out/rate.png again/rate.png

# An interpreter that is first in PATH and has no matplotlib; Debian's may have it.
if /usr/bin/python3 -c 'import matplotlib' 2>stderr; then
    "$python" -m venv --without-pip bare
    PATH=$work/bare/bin:$PATH "$plot" --out other --from out/sweep.json \
        >list 2>stderr || failed=1
    check 'another interpreter draws' test -s other/rate.png
    check 'both interpreters are named' \
        grep -q "no matplotlib for $work/bare/bin/python3 but for /usr/bin" stderr
else
    echo "skipped: another interpreter draws (/usr/bin/python3 has no matplotlib)"
fi
mkdir none
echo 'raise ImportError' >none/matplotlib.py
interpreter=$("$python" -c 'import sys; print(sys.executable)')
! PYTHONPATH=$work/none "$python" "$plot" --out no --from out/sweep.json 2>stderr
check 'the interpreter is named' grep -q "no matplotlib for $interpreter:" stderr
check 'what to do is named' grep -q "$interpreter -m pip install matplotlib" stderr

! "$python" "$plot" --out none --tool "$work/absent" 2>stderr
check 'a tool that is not there' grep -q absent stderr
exit "$failed"
