#!/usr/bin/env python3
"""Draws how fast a data layer is, and what its stages do, as PNG and SVG.

    plot_bench.py --out DIR [--tool build/leat] [--runs 3] [--seconds 1]
    plot_bench.py --out DIR --from DIR/sweep.json

Measures with `leat bench layer --json` over workers, batch and image size, on
databases that it makes with `leat synth noise`, and keeps what was measured in
DIR/sweep.json; --from draws that again. rate.* shows images a second, from the
10th to the 90th percentile of the slices of all runs, and the limit, measured in
the same runs; stages.* shows what the threads of each stage did, what they waited
for, and what bounds. Needs matplotlib (python3-matplotlib).
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

# Name, shape, quality of JPEGs, records, arguments and colour. The colours stay
# apart for those who see fewer of them.
WORKLOADS = [
    ("MNIST-like 1×28×28", (1, 28, 28), 0, 40000,
     ["--scale", "0.00390625"], "#0072b2"),
    ("CIFAR-like 3×32×32, mean file", (3, 32, 32), 0, 20000,
     ["--mean-file"], "#009e73"),
    ("raw 3×256×256 to 227", (3, 256, 256), 0, 600,
     ["--crop", "227", "--mirror", "--mean-value", "104,117,123"], "#d55e00"),
    ("JPEG 3×256×256 to 227", (3, 256, 256), 90, 800,
     ["--crop", "227", "--mirror"], "#8a5a9e"),
]
SIZED = [("raw", 0, "#d55e00"), ("JPEG", 90, "#8a5a9e")]
SIZED_BYTES = 64 << 20
BATCH_ELEMENTS = 128 << 20  # in larger batches memory is measured

# What a thread does: key, name, colour and that of the number on it.
DOING = [
    ("busy", "busy", "#0072b2", "white"),
    ("helped", "busy, the caller", "#56b4e9", "#222222"),
    ("blocked_empty", "waiting for input", "#e69f00", "#222222"),
    ("blocked_full", "waiting for room", "#d4d4d4", "#222222"),
    ("blocked_lock", "waiting for each other", "#cc79a7", "#222222"),
]
INK = "#222222"
FAINT = "#777777"
GRID = "#e5e5e5"


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse_arguments():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", required=True, metavar="DIR", help="where pictures go")
    add("--tool", default="build/leat", help="build/leat if not given")
    add("--from", dest="saved", metavar="FILE", help="what was measured before")
    add("--runs", type=int, default=3, help="of which the median counts (3)")
    add("--seconds", type=float, default=1, help="of a run (1)")
    add("--workers", type=numbers, default=sorted({1, 2, cores, 2 * cores}))
    add("--batch", type=numbers, default=[1, 4, 16, 64, 256, 1024])
    add("--side", type=numbers, default=[16, 32, 64, 128, 256, 512])
    add("--records", type=int, default=1 << 30, help="in a database, at most")
    return parser.parse_args()


class Bench:
    """The tool, and a folder for databases."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.made = {}

    def tool(self, *arguments):
        command = [self.options.tool, *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True,
                                  check=False)
        except OSError as error:
            sys.exit(f"plot_bench.py: {error}")
        if done.returncode:
            sys.exit(f"plot_bench.py: {done.stderr.strip() or command}")
        return done.stdout

    def database(self, shape, quality, records):
        key = (shape, quality)
        if key not in self.made:
            self.made[key] = os.path.join(self.folder, str(len(self.made)))
            self.tool("synth", "noise",
                      "--count", min(records, self.options.records),
                      "--shape", ",".join(map(str, shape)),
                      *(["--jpeg", quality] if quality else []),
                      self.made[key])
        return self.made[key]

    def workload(self, number):
        """The reader and the transform of one of WORKLOADS."""
        _, shape, quality, records, arguments, _ = WORKLOADS[number]
        path = self.database(shape, quality, records)
        if arguments == ["--mean-file"]:
            mean = path + ".binaryproto"
            if not os.path.exists(mean):
                self.tool("mean", path, mean)
            arguments = ["--mean-file", mean]
        return ["--reader", "lmdb:" + path, *arguments]

    def layer(self, *arguments):
        """The run whose rate is the median, with the spread of all."""
        seconds = ["--seconds", self.options.seconds, "--limit", "--json"]
        runs = [json.loads(self.tool("bench", "layer", *arguments, *seconds))
                for _ in range(self.options.runs)]
        runs.sort(key=lambda run: run["images_per_s"])
        middle = runs[len(runs) // 2]
        middle["spread"] = [min(run["slices"]["p10"] for run in runs),
                            max(run["slices"]["p90"] for run in runs)]
        return middle


def sweep_workload(bench, n, found):
    options = bench.options
    source = bench.workload(n)
    for workers in options.workers:
        result = bench.layer(*source, "--batch", 64, "--workers", workers)
        found["workers"].append([n, workers, result])
    for batch in options.batch:
        if batch * math.prod(WORKLOADS[n][1]) > BATCH_ELEMENTS:
            continue
        result = bench.layer(*source, "--batch", batch)
        found["batch"].append([n, batch, result])
    found["stages"].append([n, 64, bench.layer(*source, "--batch", 64)])


def sweep_sizes(bench, n, found):
    for side in bench.options.side:
        records = max(64, min(20000, SIZED_BYTES // (3 * side * side)))
        path = bench.database((3, side, side), SIZED[n][1], records)
        result = bench.layer("--reader", "lmdb:" + path, "--batch", 64)
        found["side"].append([n, side, result])


def sweep(options):
    """Lists of [workload, what was varied, the tool's object]."""
    found = {"workers": [], "batch": [], "side": [], "stages": []}
    with tempfile.TemporaryDirectory(prefix="leat-plot.") as folder:
        bench = Bench(options, folder)
        for n, workload in enumerate(WORKLOADS):
            print("measuring:", workload[0], file=sys.stderr)
            sweep_workload(bench, n, found)
        for n, sized in enumerate(SIZED):
            print("measuring sizes:", sized[0], file=sys.stderr)
            sweep_sizes(bench, n, found)
    return found


def apart(places, gap):
    """Heights from 0 to 1 moved up until no two of them touch."""
    moved = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else place)
    # What was pushed out at the top pushes back.
    for i in reversed(range(len(moved))):
        roof = moved[i + 1] - gap if i + 1 < len(moved) else 1
        moved[i] = min(moved[i], roof)
    return moved


def short(value):
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def draw_lines(axes, points, names, colours):
    """A line for each series, its name at its right end; the spread is a band
    around it, the limit a broken line."""
    ends = []
    axes.set_yscale("log")
    for n, name in enumerate(names):
        own = sorted((x, run["images_per_s"], run["limit_images_per_s"],
                      *run["spread"]) for i, x, run in points if i == n)
        if own:
            x, rate, limit, low, high = zip(*own)
            style = {"color": colours[n], "marker": "o", "markersize": 4}
            axes.fill_between(x, low, high, color=colours[n], alpha=0.18,
                              linewidth=0)
            axes.plot(x, limit, color=colours[n], linewidth=1, linestyle="--")
            axes.plot(x, rate, linewidth=1.8, **style)
            ends.append((rate[-1], name, colours[n]))
    axes.margins(y=0.08)
    ends.sort()
    low, high = map(math.log, axes.get_ylim())
    places = [(math.log(end[0]) - low) / (high - low) for end in ends]
    for place, (_, name, colour) in zip(apart(places, 0.055), ends):
        style = {"color": colour, "va": "center", "fontsize": 8.5}
        axes.text(1.02, place, name, transform=axes.transAxes, **style)


def tidy_lines(axes, title, label, ticks):
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(label, color=FAINT)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(colors=FAINT, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#bbbbbb")


def draw_rates(pyplot, found, machine):
    names = [workload[0].split(",")[0] for workload in WORKLOADS]
    colours = [workload[5] for workload in WORKLOADS]
    all_four = (names, colours)
    sized = ([one[0] for one in SIZED], [one[2] for one in SIZED])
    figure, panels = pyplot.subplots(1, 3, figsize=(15, 4.6))
    for axes, key, over, label, series in (
        (panels[0], "workers", "workers", "workers, batch 64", all_four),
        (panels[1], "batch", "the batch", "images in a batch", all_four),
        (panels[2], "side", "image size", "side of 3 channels, pixels", sized),
    ):
        draw_lines(axes, found[key], *series)
        ticks = sorted({x for _, x, _ in found[key]})
        tidy_lines(axes, f"Images a second over {over}", label, ticks)
    key = ("band: 10th to 90th percentile of the slices; "
           "broken line: the limit, all cores without queues; ")
    figure.text(0.01, 0.01, key + machine, color=FAINT, fontsize=8)
    figure.tight_layout(rect=(0, 0.03, 1, 1), w_pad=2)
    return figure


def stage_name(stage):
    if stage["name"] == "forward":
        return "forward\n(the caller)"
    if not stage["threads"]:
        return stage["name"] + "\n(by the workers)"
    return stage["name"]


def is_work(stage):
    """Whether the workers do it, and the caller where it helps."""
    is_reading = stage["name"] == "reader" and not stage["threads"]
    return is_reading or stage["name"] in ("transform", "decode")


def times(result, stage):
    """The seconds of a stage's threads, by what they did. What the caller
    makes itself is its part of the workers' work, and no waiting of forward's."""
    spent = {key: stage.get(key, 0) for key, *_ in DOING}
    if stage["name"] == "forward":
        spent["helped"] = min(result["helped"], spent["blocked_empty"])
        spent["blocked_empty"] -= spent["helped"]
    elif is_work(stage):
        work = sum(one["busy"] for one in result["stages"] if is_work(one))
        part = min(1, result["helped"] / work) if work else 0
        spent["helped"] = spent["busy"] * part
        spent["busy"] -= spent["helped"]
    return spent


def draw_bars(axes, result):
    """The seconds of each stage's threads in a second, by what they did."""
    stages = result["stages"]
    for row, stage in enumerate(stages):
        left = 0
        spent = times(result, stage)
        for key, _, colour, ink in DOING:
            width = spent[key] / result["seconds"] if result["seconds"] else 0
            style = {"edgecolor": "white", "linewidth": 0.6}
            axes.barh(row, width, left=left, height=0.74, color=colour, **style)
            if width >= 0.1:
                style = {"ha": "center", "va": "center", "fontsize": 8}
                text = f"{width:.2f}"
                axes.text(left + width / 2, row, text, color=ink, **style)
            left += width
    axes.set_yticks(range(len(stages)), map(stage_name, stages), fontsize=8.5)
    axes.invert_yaxis()


def verdict(result):
    """The beginning of the sentence: what bounds, or that nothing does."""
    return re.split("[;:]", result["verdict"] or "too short to tell")[0]


def tidy_bars(axes, n, result):
    rate = short(float(f"{result['images_per_s']:.3g}"))
    text = f"{rate} images/s, {verdict(result)}"
    axes.set_title(WORKLOADS[n][0], loc="left", fontsize=10, color=INK)
    axes.set_title(text, loc="right", fontsize=9, color=FAINT)
    axes.tick_params(colors=INK, length=0)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set_color("#bbbbbb")


def draw_stages(pyplot, found, machine):
    runs = found["stages"]
    figure, panels = pyplot.subplots(
        len(runs), 1, figsize=(10, 1.6 * len(runs) + 1), sharex=True,
        squeeze=False
    )
    for axes, (n, _, result) in zip(panels[:, 0], runs):
        draw_bars(axes, result)
        tidy_bars(axes, n, result)
    label = "threads, on average: their seconds in a second"
    panels[-1, 0].set_xlabel(label, color=FAINT)
    patches = [pyplot.Rectangle((0, 0), 1, 1, color=one[2]) for one in DOING]
    names = [one[1] for one in DOING]
    style = {"ncol": len(DOING), "frameon": False, "fontsize": 9}
    figure.legend(patches, names, loc="upper left", **style)
    figure.text(0.01, 0.005, machine, color=FAINT, fontsize=8)
    figure.tight_layout(rect=(0, 0.02, 1, 0.95), h_pad=1.2)
    return figure


def import_pyplot():
    """matplotlib's pyplot; in another interpreter if only that one has it."""
    try:
        import matplotlib
    except ImportError:
        run_where_matplotlib_is()
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def run_where_matplotlib_is():
    """Never returns. Debian's packages are for Debian's own interpreter."""
    debian = "/usr/bin/python3"
    mine = sys.executable or "python3"
    if mine != debian and os.access(debian, os.X_OK):
        probe = subprocess.run([debian, "-c", "import matplotlib"],
                               capture_output=True, check=False)
        if probe.returncode == 0:
            print("plot_bench.py: no matplotlib for", mine, "but for", debian,
                  "which goes on", file=sys.stderr, flush=True)
            os.execv(debian, [debian, *sys.argv])
    sys.exit(f"plot_bench.py: no matplotlib for {mine}: "
             f"{mine} -m pip install matplotlib, or, for {debian}, "
             "apt-get install python3-matplotlib")


def main():
    options = parse_arguments()
    pyplot = import_pyplot()

    os.makedirs(options.out, exist_ok=True)
    if options.saved:
        with open(options.saved, encoding="utf-8") as file:
            found = json.load(file)
    else:
        found = sweep(options)
        saved = os.path.join(options.out, "sweep.json")
        with open(saved, "w", encoding="utf-8") as file:
            json.dump(found, file)
    run = found["stages"][0][2]
    machine = f"{run['cpu']}, {run['cores']} cores, leat {run['version']}"
    for name, draw in (("rate", draw_rates), ("stages", draw_stages)):
        figure = draw(pyplot, found, machine)
        for kind in ("png", "svg"):
            path = os.path.join(options.out, f"{name}.{kind}")
            figure.savefig(path, dpi=150, facecolor="white")
            print(path)
        pyplot.close(figure)


if __name__ == "__main__":
    main()
