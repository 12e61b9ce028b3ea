#!/usr/bin/env python3
"""Measures which small faults in src/ the tests notice; mutants.sh is its entry.

    mutants.sh --file SRC.c [--file SRC.c ...]   mutants of these files
    mutants.sh --since COMMIT                    of the lines that changed since then
    mutants.sh --self-test                       of a planted tree

A mutant is a source file with one line changed by a rule of tests/mutants/c.rules.
One that compiles to the same object, with -O0 or as in a release, is equivalent and
does not count. The others are linked into the test programs that execute the
changed line, one program after the other until one fails, hangs or crashes.
The texts of errors, logs, traces and asserts are not judged.

Exit status 77: universalmutator cannot be had.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
MARK = "LEAT_MUTANTS_JOB"
TAKES_LONGER = "takes longer"
PROGRAM = "mutants.sh"
ARCHIVES = ("libleat_internal.a", "libleat_tool_parts.a")
# Calls with nothing but a text as their effect, and those that yield a status, the
# first argument, besides.
SILENT = re.compile(r"\b(?:assert|leat__log|leat__trace_\w+)\(")
ERRORS = re.compile(r"\b\w*_error(?:_context|_system|_lines)?\(")
# What one test program may take. A bound of a file's size would forbid the sparse
# files of some tests, and one of address space the CUDA double's.
DISK_BYTES = 2 << 30
MEMORY_BYTES = 6 << 30
SANITIZER = f"hard_rss_limit_mb={MEMORY_BYTES >> 20}"


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--file", action="append", default=[], metavar="SRC.c")
    add("--since", metavar="COMMIT")
    add("--sample", type=int, metavar="N",
        help="this many counted mutants of each file, chosen at random")
    add("--seed", type=int, help="of the choice; else the tree's own")
    add("--seconds", type=float, metavar="S", help="try mutants until then, from the start, the build included")
    add("--test-seconds", type=float, default=20, metavar="S",
        help="of tests for one mutant, as long as they take without it (20)")
    add("--sanitize", action="store_true",
        help="judge survivors once more under ASan and UBSan, and under TSan")
    add("--at-least", type=float, metavar="PERCENT",
        help="fail where the sample shows, by 95 %%, a score below that")
    add("--out", default=os.environ.get("LEAT_MUTANTS_BUILD", "build/mutants"),
        metavar="DIR", help="build/mutants if not given")
    add("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="J")
    add("--root", default=os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))), help=argparse.SUPPRESS)
    add("--planted", metavar="FILE", help=argparse.SUPPRESS)
    add("--self-test", action="store_true")
    options = parser.parse_args()
    if not (options.file or options.since or options.self_test):
        parser.error("--file or --since is needed")
    options.out = os.path.abspath(options.out)
    options.jobs = max(1, options.jobs)
    return options


def fail(text, status=1):
    print(f"{PROGRAM}: {text}", file=sys.stderr)
    sys.exit(status)


def output(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          **more)
    if done.returncode:
        tail = (done.stdout + done.stderr).strip().splitlines()[-20:]
        fail("\n".join([f"{shlex.join(command[:6])} failed:", *tail]))
    return done.stdout


# ---- The tree, its build and its test programs.

def tree_files(root):
    """What belongs to the tree: what git knows and does not ignore."""
    if os.path.isdir(os.path.join(root, ".git")) or os.path.isfile(
            os.path.join(root, ".git")):
        names = output(["git", "-C", root, "ls-files", "-z", "--cached",
                        "--others", "--exclude-standard"]).split("\0")
    else:
        names = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, names in os.walk(root) for name in names]
        names = [name for name in names if not name.startswith("build")]
    return sorted({name for name in names
                   if os.path.isfile(os.path.join(root, name))})


def copy_tree(root, tree):
    """Makes tree a copy of root and returns a digest of it. What is the same stays,
    with its time, so that a build of it is brought up to date."""
    digest = hashlib.sha256()
    names = tree_files(root)
    for name in names:
        source, copy = os.path.join(root, name), os.path.join(tree, name)
        with open(source, "rb") as file:
            content = file.read()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
        if os.path.isfile(copy):
            with open(copy, "rb") as file:
                if file.read() == content:
                    continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(source, copy)
    known = set(names)
    for folder, _, present in os.walk(tree):
        for name in present:
            path = os.path.join(folder, name)
            if os.path.relpath(path, tree) not in known:
                os.remove(path)
    return digest.hexdigest()


class Build:
    """One Debug build of a copy of the tree: its compile commands, its test programs
    and how they are linked."""

    def __init__(self, options, sanitize=""):
        self.sanitize = sanitize
        self.out = os.path.join(options.out, sanitize)
        self.tree = os.path.join(options.out, "tree")
        self.folder = os.path.join(self.out, "build")
        os.makedirs(self.tree, exist_ok=True)
        self.digest = copy_tree(options.root, self.tree)
        launcher = []
        if shutil.which("ccache"):
            launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
        output(["cmake", "-S", self.tree, "-B", self.folder, "-G", "Ninja",
                "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0",
                "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                "-DLEAT_CUDA=OFF", "-DLEAT_BUILD_EXAMPLES=OFF",
                "-DLEAT_BUILD_BENCHMARKS=OFF",
                f"-DLEAT_SANITIZE={sanitize}", *launcher])
        output(["cmake", "--build", self.folder, "--parallel",
                str(options.jobs)])
        self.compiles = self.compile_commands()
        self.links = self.link_commands()
        self.tests = self.test_commands()

    def compile_commands(self):
        """Words before the source and the object, by the file's name."""
        found = {}
        with open(os.path.join(self.folder, "compile_commands.json"),
                  encoding="utf-8") as file:
            entries = json.load(file)
        for entry in entries:
            words = shlex.split(entry["command"])
            if os.path.basename(words[0]) == "ccache":
                words = words[1:]
            target = words[words.index("-o") + 1]
            if re.search(r"leat_(objects|tool_parts)\.dir", target):
                words = words[:words.index("-o")]
                name = os.path.relpath(entry["file"], self.tree)
                archive = ARCHIVES["leat_tool_parts" in target]
                found[name] = (words, archive)
        return found

    def link_commands(self):
        """The words that link a program, by the program's path."""
        found = {}
        for line in output(["ninja", "-C", self.folder, "-t",
                            "commands"]).splitlines():
            made = re.match(r": && (.* -o (\S+) .*?) &&", line)
            if made and any(name in line for name in ARCHIVES):
                path = os.path.join(self.folder, made[2])
                found[path] = shlex.split(made[1])
        return found

    def test_commands(self):
        """[name, program, command, environment, whether it is of scripts]"""
        found = {}
        described = json.loads(output(
            ["ctest", "--test-dir", self.folder, "--show-only=json-v1"]))
        for test in described["tests"]:
            command = test.get("command", [])
            program = next((word for word in command if word in self.links),
                           None)
            if not program:
                continue
            environment = {}
            for entry in test.get("properties", []):
                if entry["name"] == "ENVIRONMENT":
                    environment = dict(pair.split("=", 1)
                                       for pair in entry["value"])
            found[test["name"]] = (program, command, environment,
                                   command[0] != program)
        return found

    def compile(self, name, source, target, more=()):
        """Whether source compiles as the file of that name does."""
        words, _ = self.compiles[name]
        return subprocess.run(
            [*words, *more, "-w", "-g0", "-c", source, "-o", target],
            cwd=self.folder, stdin=subprocess.DEVNULL, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=120).returncode == 0

    def archive(self, name, target, *objects):
        """A copy of an archive with some of its objects replaced."""
        shutil.copy(os.path.join(self.folder, "src", name), target)
        if objects:
            output(["ar", "r", target, *objects])

    def link(self, program, target, archives, more=()):
        """Links program anew, from other archives; whether it worked. Its shared
        libraries stay beside the original."""
        words = [archives.get(os.path.basename(word), word)
                 for word in self.links[program]]
        words = [re.sub(r"\\?\$ORIGIN", lambda _: os.path.dirname(program), word)
                 for word in words]
        words[words.index("-o") + 1] = target
        return subprocess.run(
            [*words, *more], cwd=self.folder, stdin=subprocess.DEVNULL,
            check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=120).returncode == 0


# ---- Test programs are run with bounds on what they may take and leave.

class Runner:
    """Runs test programs in a folder of its own; one for each job."""

    lock = threading.Lock()
    number = 0

    def __init__(self, folder, sanitize=""):
        self.folder = folder
        # A sanitizer takes address space for its shadow, and bounds what is used.
        self.bounds = "ulimit -c 0; "
        self.prefix = []
        if not sanitize:
            self.bounds += f"ulimit -S -d {MEMORY_BYTES >> 10}; "
        elif shutil.which("setarch"):
            self.prefix = ["setarch", "-R"]
        self.scratch = os.path.join(folder, "tmp")
        os.makedirs(folder, exist_ok=True)
        with Runner.lock:
            Runner.number += 1
            self.mark = f"{os.getpid()}.{Runner.number}."

    def run(self, command, environment, seconds):
        """The exit status; None if it took longer or more than it may."""
        remove(self.scratch)
        os.makedirs(self.scratch)
        environment = {**os.environ, "TMPDIR": self.scratch, MARK: self.mark,
                       "CK_DEFAULT_TIMEOUT": str(int(seconds) + 60),
                       "ASAN_OPTIONS": SANITIZER,
                       "TSAN_OPTIONS": SANITIZER + ":atexit_sleep_ms=0",
                       **environment}
        with subprocess.Popen(
                ["bash", "-c", self.bounds + 'exec timeout -k 1 "$@"', "bash",
                 f"{seconds:.1f}", *self.prefix, *command],
                env=environment, cwd=self.scratch, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL) as process:
            status = self.wait(process, seconds + 5)
            if status != 0:
                kill_marked(self.mark)
        return None if status in (124, 137, -signal.SIGKILL) else status

    def wait(self, process, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                return process.wait(0.5)
            except subprocess.TimeoutExpired:
                if disk_use(self.scratch) > DISK_BYTES:
                    break
        return 124

    def clear(self):
        """Ends what the programs left running, and removes their files."""
        kill_marked(self.mark)
        remove(self.scratch)


def remove(folder):
    """With what a test program that was killed has mounted there."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        places = [line.split()[1] for line in file]
    for place in reversed(places):
        if place.startswith(folder + os.sep):
            subprocess.run(["umount", "--lazy", place], check=False,
                           stderr=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)


def disk_use(folder):
    used = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                used += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                pass
    return used


def kill_marked(mark):
    """Ends all processes that were started under a mark. Groups do not tell: Check
    gives each test its own."""
    entry = f"{MARK}={mark}".encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if any(word.startswith(entry)
                       for word in file.read().split(b"\0")):
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except OSError:
            pass


# ---- Which tests execute which line.

class Coverage:
    """For each file the tests that execute a line, and how long each test takes; kept
    in the out folder for as long as the tree is the same."""

    def __init__(self, build, options, files, deadline):
        self.build = build
        self.path = os.path.join(build.out, "coverage.json")
        self.limit = options.test_seconds
        key = f"{build.digest} {self.limit}"
        kept = {}
        if os.path.isfile(self.path):
            with open(self.path, encoding="utf-8") as file:
                kept = json.load(file)
        if kept.get("key") != key:
            kept = {"key": key, "seconds": {}, "left_out": {}, "lines": {}}
        self.seconds = kept["seconds"]
        self.left_out = kept["left_out"]
        self.lines = kept["lines"]
        missing = [name for name in files if name not in self.lines]
        if missing:
            self.measure(missing, options.jobs, deadline)
            # Of tests that were cut short it says nothing.
            if not deadline or time.monotonic() < deadline:
                with open(self.path, "w", encoding="utf-8") as file:
                    json.dump(kept, file)

    def measure(self, files, jobs, deadline):
        folder = os.path.join(self.build.out, "coverage")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        archives = self.instrument(files, folder)
        tools = any(self.build.compiles[name][1] == ARCHIVES[1]
                    for name in files)
        tests = [name for name, test in self.build.tests.items()
                 if tools or not test[3]]
        # What took long before comes first, so that no core is idle at the end.
        tests.sort(key=lambda name: -self.seconds.get(name, 0))
        for name in files:
            self.lines[name] = {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for name, counts in zip(tests, pool.map(
                    lambda name: self.run(name, folder, archives, deadline),
                    tests)):
                for file, lines in counts.items():
                    for line, executed in lines.items():
                        known = self.lines[file].setdefault(line, [])
                        if executed:
                            known.append(name)
        shutil.rmtree(folder, ignore_errors=True)

    def instrument(self, files, folder):
        """Archives in which these files count what is executed."""
        objects = {name: [] for name in ARCHIVES}

        def compile_one(name):
            target = os.path.join(folder, os.path.basename(name) + ".o")
            source = os.path.join(self.build.tree, name)
            if not self.build.compile(
                    name, source, target,
                    ["--coverage", "-fprofile-update=atomic"]):
                fail(f"{name} does not compile with --coverage")
            objects[self.build.compiles[name][1]].append(target)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(compile_one, files))
        for name, members in objects.items():
            self.build.archive(name, os.path.join(folder, name), *members)
        return {name: os.path.join(folder, name) for name in ARCHIVES}

    def run(self, name, folder, archives, deadline):
        """{file: {line: whether the test executes it}}; empty if it cannot tell."""
        program, command, environment, _ = self.build.tests[name]
        place = os.path.join(folder, "of-" + name)
        runner = Runner(place, self.build.sanitize)
        linked = os.path.join(place, os.path.basename(program))
        if not self.build.link(program, linked, archives, ["--coverage"]):
            self.left_out[name] = "does not link with --coverage"
            return {}
        for path in glob.glob(os.path.join(folder, "*.gcno")):
            os.symlink(path, os.path.join(place, os.path.basename(path)))
        seconds = self.limit
        if deadline:
            seconds = max(1, min(seconds, deadline - time.monotonic()))
        begin = time.monotonic()
        status = runner.run(
            [linked if word == program else word for word in command],
            {**environment, "GCOV_PREFIX": place, "GCOV_PREFIX_STRIP": "99"},
            seconds)
        self.seconds[name] = time.monotonic() - begin
        runner.clear()
        os.remove(linked)
        if status != 0:
            self.left_out[name] = {
                None: TAKES_LONGER, SKIPPED: "skips"}.get(status, "fails")
            return {}
        counts = self.read_counts(place)
        shutil.rmtree(place, ignore_errors=True)
        return counts

    def read_counts(self, place):
        found = {}
        data = glob.glob(os.path.join(place, "*.gcda"))
        if not data:
            return found
        for text in output(["gcov", "--json-format", "--stdout", *data],
                           cwd=place).splitlines():
            if not text.startswith("{"):
                continue
            for file in json.loads(text)["files"]:
                name = os.path.relpath(file["file"], self.build.tree)
                if name not in self.lines:
                    continue
                lines = found.setdefault(name, {})
                for line in file["lines"]:
                    number = str(line["line_number"])
                    lines[number] = lines.get(number) or line["count"] > 0
        return found

    def tests_of(self, file, line):
        """Tests that execute the line, or the one that gcov counts for it: the
        latest before. A line before all others is of a table or a macro, for
        which those count that execute any."""
        lines = self.lines[file]
        counted = [number for number in map(int, lines) if number <= line]
        if counted:
            names = set(lines[str(max(counted))])
        else:
            names = {name for tests in lines.values() for name in tests}
        scripts = {name for name in names if self.build.tests[name][3]}
        # Scripts take long: they are for files that no program tests.
        if any(not self.build.tests[name][3]
               for tests in lines.values() for name in tests):
            names -= scripts
        return names


def own_test(file):
    return "test_" + os.path.splitext(os.path.basename(file))[0]


# ---- Mutants.

def blank_comments(text):
    """The text with blanks for comments, and the places inside strings."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
        re.DOTALL)
    strings = bytearray(len(text))

    def replace(found):
        if found[0].startswith("/"):
            return re.sub(r"[^\n]", " ", found[0])
        if found[0].startswith('"'):
            strings[found.start():found.end()] = b"\1" * len(found[0])
        return found[0]

    return token.sub(replace, text), strings


def call_end(text, strings, begin):
    """Of a call whose arguments begin there: the first comma, and the end."""
    depth, comma, at = 1, None, begin
    while at < len(text) and depth:
        if not strings[at]:
            depth += (text[at] in "([{") - (text[at] in ")]}")
            if text[at] == "," and depth == 1 and comma is None:
                comma = at
        at += 1
    return comma, at


def unjudged_places(text, strings):
    """A flag for each character: whether a change of it is no fault to judge."""
    flags = bytearray(strings)
    for found in re.finditer(r"^.*printf\(.*$", text, re.MULTILINE):
        flags[found.start():found.end()] = bytes(len(found[0]))
    for found in re.finditer(r"^[ \t]*#(?![ \t]*define).*$", text, re.MULTILINE):
        flags[found.start():found.end()] = b"\1" * len(found[0])
    for pattern in (SILENT, ERRORS):
        for found in pattern.finditer(text):
            comma, end = call_end(text, strings, found.end())
            begin = found.start() if pattern is SILENT else comma
            if begin is not None:
                flags[begin:end] = b"\1" * (end - begin)
    return flags


def changed_part(before, after):
    """Where two lines differ, as positions in the first."""
    begin = len(os.path.commonprefix([before, after]))
    shared = os.path.commonprefix([before[begin:][::-1], after[begin:][::-1]])
    return begin, len(before) - len(shared)


GENERATOR = """
import contextlib, json, sys
from universalmutator import mutator
texts, rules = json.load(sys.stdin), sys.argv[1]
found = {}
with contextlib.redirect_stdout(sys.stderr):
    for name, text in texts.items():
        found[name] = [mutant[:2] for mutant in mutator.mutants_regexp(
            text.splitlines(True), ruleFiles=[rules], ignorePatterns=[])]
json.dump(found, sys.stdout)
"""


def mutator_python(options):
    """An environment with universalmutator, made once."""
    folder = os.path.join(options.out, "venv")
    python = os.path.join(folder, "bin", "python3")
    wanted = os.path.join(options.root, "tests", "mutants", "requirements.txt")
    mark = os.path.join(folder, "requirements.txt")
    with open(wanted, encoding="utf-8") as file:
        text = file.read()
    if os.path.isfile(mark):
        with open(mark, encoding="utf-8") as file:
            if file.read() == text:
                return python
    shutil.rmtree(folder, ignore_errors=True)
    for command in (
            [sys.executable, "-m", "venv", folder],
            [python, "-m", "pip", "install", "--quiet", "--no-deps",
             "--disable-pip-version-check", "--retries", "1", "--timeout",
             "15", "--require-hashes", "-r", wanted]):
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
            fail("skipped, as universalmutator cannot be installed from PyPI: "
                 + "".join(reason), SKIPPED)
    shutil.copy(wanted, mark)
    return python


def make_mutants(options, texts):
    """{file: [(line number, the line anew)]} by the rules."""
    if options.planted:
        with open(options.planted, encoding="utf-8") as file:
            return json.load(file)
    # The path of a rule file is looked up inside the package first.
    return json.loads(output(
        [mutator_python(options), "-c", GENERATOR,
         os.path.join(options.root, "tests", "mutants", "c.rules")],
        input=json.dumps(texts)))


def judged_mutants(options, build, wanted):
    """[(file, line, before, after)] of the wanted lines, those aside that change
    nothing but the text of an error."""
    texts, flags = {}, {}
    for name in wanted:
        with open(os.path.join(build.tree, name), encoding="utf-8") as file:
            texts[name], strings = blank_comments(file.read())
        flags[name] = unjudged_places(texts[name], strings)
    found = []
    for name, mutants in make_mutants(options, texts).items():
        lines = texts[name].splitlines(True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        for number, after in sorted(map(tuple, mutants)):
            if wanted[name] is not None and number not in wanted[name]:
                continue
            before, start = lines[number - 1], starts[number - 1]
            begin, end = changed_part(before, after)
            part = flags[name][start + begin:start + max(end, begin + 1)]
            if not all(part):
                found.append((name, number, before, after))
    return found


def changed_lines(root, commit):
    """{file: its lines that are new since a commit}; but for the tool, which is
    tested by scripts that no mutant runs."""
    found, name = {}, None
    sources = ["--", "src/*.c", ":!src/tools"]
    diff = output(["git", "-C", root, "diff", "--unified=0", "--no-color",
                   "--no-ext-diff", commit, *sources])
    for line in diff.splitlines():
        if line.startswith("+++ "):
            name = line[6:] if line.startswith("+++ b/") else None
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if hunk and name:
            begin, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(name, set()).update(range(begin, begin + count))
    for name in output(["git", "-C", root, "ls-files", "--others",
                        "--exclude-standard", *sources]).splitlines():
        found[name] = None
    return {name: lines for name, lines in found.items() if lines != set()}


# ---- The judgement.

class Judge:
    """Hands mutants to the jobs and keeps what became of them."""

    def __init__(self, options, build, coverage, mutants, deadline):
        self.options, self.build, self.coverage = options, build, coverage
        self.deadline = deadline
        self.lock = threading.Lock()
        self.queues = {}
        for mutant in mutants:
            name = mutant[0] if options.sample else ""
            self.queues.setdefault(name, []).append(mutant)
        for name, queue in sorted(self.queues.items()):
            random.Random(f"{options.seed} {name}").shuffle(queue)
        self.taken = dict.fromkeys(self.queues, 0)
        self.verdicts = []
        self.log = None
        self.kills = {}
        self.originals = {}
        self.seen = {}

    def take(self):
        """The next mutant, of the file of which the fewest were taken."""
        with self.lock:
            if self.deadline and time.monotonic() > self.deadline:
                return None
            open_queues = [
                name for name, queue in self.queues.items() if queue and
                self.taken[name] < (self.options.sample or len(queue) + 1 +
                                    self.taken[name])]
            if not open_queues:
                return None
            name = min(open_queues, key=lambda name: self.taken[name])
            self.taken[name] += 1
            return self.queues[name].pop(0)

    def put(self, mutant, verdict, detail=""):
        with self.lock:
            self.verdicts.append((mutant, verdict, detail))
            if verdict not in ("noticed", "survived"):
                self.taken[mutant[0] if self.options.sample else ""] -= 1
            print(f"{mutant[0]}:{mutant[1]}", verdict, detail,
                  mutant[2].strip(), mutant[3].strip(),
                  sep="\t", file=self.log, flush=True)

    def run(self):
        path = os.path.join(self.build.out, "verdicts.tsv")
        with open(path, "w", encoding="utf-8") as self.log:
            with concurrent.futures.ThreadPoolExecutor(
                    self.options.jobs) as pool:
                for job in [pool.submit(self.work, n)
                            for n in range(self.options.jobs)]:
                    job.result()

    def work(self, number):
        runner = Runner(os.path.join(self.build.out, f"job-{number}"),
                        self.build.sanitize)
        # A mutant that does not count is replaced by the job that had it.
        while (mutant := self.take()) is not None:
            try:
                self.put(mutant, *self.judge(mutant, runner))
            finally:
                runner.clear()
        shutil.rmtree(runner.folder, ignore_errors=True)

    def objects_of(self, name, text, folder):
        """Digests of what a text compiles to, with -O0 and as in a release."""
        source = os.path.join(folder, os.path.basename(name))
        origin = os.path.join(self.build.tree, name)
        with open(source, "w", encoding="utf-8") as file:
            file.write(f'#line 1 "{origin}"\n{text}')
        digests = []
        for flags in (["-O2", "-DNDEBUG"], []):
            target = source + ".o"
            if not self.build.compile(name, source, target, flags):
                return None
            with open(target, "rb") as file:
                digests.append(hashlib.sha256(file.read()).digest())
        return digests

    def judge(self, mutant, runner):
        name, number, _, after = mutant
        with open(os.path.join(self.build.tree, name),
                  encoding="utf-8") as file:
            lines = file.read().splitlines(True)
        if name not in self.originals:
            self.originals[name] = self.objects_of(
                name, "".join(lines), runner.folder)
        lines[number - 1] = after
        objects = self.objects_of(name, "".join(lines), runner.folder)
        if not objects:
            return ("invalid",)
        if any(a == b for a, b in zip(objects, self.originals[name])):
            return ("equivalent",)
        with self.lock:
            first = self.seen.setdefault((name, objects[0]), mutant)
        if first is not mutant:
            return "duplicate", f"of line {first[1]}"
        return self.run_tests(name, number, runner)

    def run_tests(self, name, number, runner):
        """What the tests of a line say of the object in the runner's folder."""
        archive = self.build.compiles[name][1]
        copy = os.path.join(runner.folder, archive)
        self.build.archive(archive, copy, os.path.join(
            runner.folder, os.path.basename(name) + ".o"))
        spent, tests = 0, self.ordered_tests(name, number)
        for test in tests:
            spent += self.coverage.seconds[test]
            if spent > self.options.test_seconds and test != tests[0]:
                return "survived", "the tests for which there was time"
            how = self.run_test(test, runner, {archive: copy})
            if how == "out of time":
                return "unjudged", how
            if how:
                with self.lock:
                    key = name, test
                    self.kills[key] = self.kills.get(key, 0) + 1
                return "noticed", f"{test} {how}"
        return "survived", f"tests: {len(tests)}" if tests else "no test comes here"

    def ordered_tests(self, name, number):
        """First the file's own, then what is quick or noticed mutants before."""
        own = own_test(name)
        with self.lock:
            return sorted(
                self.coverage.tests_of(name, number),
                key=lambda test: (test != own, (self.coverage.seconds[test] +
                                                0.1) /
                                  (1 + self.kills.get((name, test), 0)), test))

    def run_test(self, test, runner, archives):
        """None if it passes, else how it ended."""
        program, command, environment, _ = self.build.tests[test]
        linked = os.path.join(runner.folder, os.path.basename(program))
        if not self.build.link(program, linked, archives):
            return "does not link"
        seconds = 4 * self.coverage.seconds[test] + 4
        left = self.deadline - time.monotonic() if self.deadline else seconds
        status = runner.run(
            [linked if word == program else word for word in command],
            environment, max(0.1, min(seconds, left)))
        os.remove(linked)
        if status is None:
            return "hangs" if seconds <= left else "out of time"
        return None if status == 0 else f"fails with {status}"


# ---- What is printed.

def score(noticed, survived):
    judged = noticed + survived
    return 100 * noticed / judged if judged else None


def is_below(value, judged, least):
    """Whether a sample of that size shows it, with 95 % confidence."""
    if not judged:
        return False
    deviation = math.sqrt(least * (100 - least) / judged)
    return value < least - 1.645 * deviation


def report(judge, files, total, options):
    rows, all_counts = [], [0, 0, 0]
    for name in sorted(files):
        mine = [verdict for mutant, verdict, _ in judge.verdicts
                if mutant[0] == name]
        counts = [mine.count(word)
                  for word in ("equivalent", "noticed", "survived")]
        all_counts = [a + b for a, b in zip(all_counts, counts)]
        rows.append((name, counts))
    if len(rows) > 1:
        rows.append(("all", all_counts))
    width = max([len("file"), *(len(name) for name, _ in rows)])
    print(f"{'file':{width}}  mutants  equivalent  noticed  survived  score %")
    for name, (equal, noticed, survived) in rows:
        value = score(noticed, survived)
        text = "-" if value is None else f"{value:.1f}"
        print(f"{name:{width}}  {equal + noticed + survived:7}  {equal:10}  "
              f"{noticed:7}  {survived:8}  {text:>7}")
    survivors = sorted((mutant, detail) for mutant, verdict, detail
                       in judge.verdicts if verdict == "survived")
    for (name, number, before, after), detail in survivors:
        print(f"\n{name}:{number}: ({detail})")
        print(f"- {before.strip()}\n+ {after.strip()}")
    tried = len([1 for _, verdict, _ in judge.verdicts
                 if verdict != "unjudged"])
    print(f"\n{tried} of {total} mutants tried, seed {options.seed}")
    return score(*all_counts[1:]), sum(all_counts[1:])


def wanted_files(options):
    """{file: lines, or None for all of it}"""
    if options.since:
        if subprocess.run(["git", "-C", options.root, "rev-parse", "--verify",
                           "--quiet", options.since + "^{commit}"],
                          stdout=subprocess.DEVNULL, check=False).returncode:
            fail(f"there is no commit {options.since}")
        wanted = changed_lines(options.root, options.since)
    else:
        wanted = {}
    for name in options.file:
        path = os.path.abspath(name)
        name = os.path.relpath(path, os.path.abspath(options.root))
        if not os.path.isfile(path):
            fail(f"there is no file {name}")
        wanted[name] = None
    return wanted


def judge_again(options, judge, sanitize, files, deadline):
    """Gives the survivors another chance to be noticed, in a build of its own."""
    survivors = [mutant for mutant, verdict, _ in judge.verdicts
                 if verdict == "survived"]
    build = Build(options, sanitize)
    coverage = Coverage(build, options, files, deadline)
    again = Judge(options, build, coverage, survivors, deadline)
    again.run()
    noticed = {mutant: (verdict, detail) for mutant, verdict, detail
               in again.verdicts if verdict == "noticed"}
    judge.verdicts = [(mutant, *noticed.get(mutant, (verdict, detail)))
                      for mutant, verdict, detail in judge.verdicts]
    print(f"{len(noticed)} more are noticed under {sanitize}")


def measure(options):
    begin = time.monotonic()
    wanted = wanted_files(options)
    if not wanted:
        print(f"no line of src/*.c changed since {options.since}")
        return 0
    if not options.planted:
        mutator_python(options)
    build = Build(options)
    if options.seed is None:
        options.seed = int(build.digest[:8], 16)
    for name in sorted(set(wanted) - set(build.compiles)):
        print(f"{name} is not compiled for the tests")
        del wanted[name]
    mutants = judged_mutants(options, build, wanted)
    files = sorted({mutant[0] for mutant in mutants})
    if not mutants:
        print("no rule fits what is to be changed")
        return 0
    deadline = begin + options.seconds if options.seconds else None
    coverage = Coverage(build, options, files, deadline)
    print(f"{time.monotonic() - begin:.0f} s for the build and what tests execute")
    for name, reason in sorted(coverage.left_out.items()):
        print(f"without {name}, which {reason}")
    # Without its own test a file would seem to be tested worse than it is.
    for name in list(files):
        if coverage.left_out.get(own_test(name)) == TAKES_LONGER:
            print(f"{name} is not judged, as its own test takes longer")
            files.remove(name)
    mutants = [mutant for mutant in mutants if mutant[0] in files]
    judge = Judge(options, build, coverage, mutants, deadline)
    judge.run()
    if options.sanitize:
        for sanitize in ("address,undefined", "thread"):
            judge_again(options, judge, sanitize, files, deadline)
    value, judged = report(judge, files, len(mutants), options)
    if options.at_least and is_below(value, judged, options.at_least):
        fail(f"{value:.1f} % were noticed, {options.at_least:g} % are expected")
    return 0


# ---- The script's own test.

PLANTED = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.20)
project(planted C)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
enable_testing()
add_subdirectory(src)
add_library(calls SHARED tests/calls.c)
add_executable(test_planted tests/test_planted.c)
target_link_libraries(test_planted calls leat_internal)
add_test(NAME test_planted COMMAND test_planted)
""",
    "src/CMakeLists.txt": """
add_library(leat_objects OBJECT planted.c)
add_library(leat_internal STATIC $<TARGET_OBJECTS:leat_objects>)
add_library(leat_tool_parts STATIC part.c)
""",
    "src/part.c": "int part;\n",
    "src/planted.c": """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int last;
static int leat_error(int status, const char *text)
{
    return text ? status : 0;
}
int sum_below(int n)
{
    int sum = 0;
    if (n < 0)
        return leat_error(-1, "n is below zero");
    for (int i = 0; i < n; i++)
        sum += i;
    last = n;
    return sum;
}
int never_called(int n)
{
    return n + 1;
}
""",
    "tests/calls.c": "int expected_sum(void) { return 6; }\n",
    "tests/test_planted.c": """
int expected_sum(void);
int sum_below(int n);
int main(void)
{
    return sum_below(4) != expected_sum() || sum_below(-1) != -1;
}
""",
}

# The line, what it becomes, and what is to be said of it; None: it is not tried.
PLANTED_MUTANTS = [
    (16, "        sum -= i;", "noticed"),
    (14, '        return leat_error(-2, "n is below zero");', "noticed"),
    (14, '        return leat_error(-1, "n is above zero");', None),
    (17, "    last = 7;", "survived"),
    (22, "    return n - 1;", "survived"),
    (15, "    for (int i = 0; n > i; i++)", "equivalent"),
    (15, "    for (int i = 0; i < n; i++", "invalid"),
    (15, "    for (int i = 0; i < n; i--)", "noticed"),
    (17, "    last = n; for (volatile int i = 1; i;) sleep(1);", "noticed"),
    (17, "    last = n; if (!fork() && setsid()) sleep(1000);", "survived"),
    # It would be noticed if it got a gigabyte.
    (17, "    last = n; for (void *p; (p = malloc(1 << 20)); last++)"
         " memset(p, 1, 1 << 20); sum += last > 1000;", "survived"),
    (17, '    last = n; FILE *f = fopen("full", "w");'
         " while (f) for (int i = 0; i < 9999; i++) fputs(__FILE__, f);",
     "noticed"),
]


def plant(root):
    for name, text in PLANTED.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(root, "mutants.json"), "w",
              encoding="utf-8") as file:
        json.dump({"src/planted.c": [[line, text + "\n"] for line, text, _
                                     in PLANTED_MUTANTS]}, file)


def run_self(root, *arguments):
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--root", root, "--out",
         os.path.join(root, "build"), "--planted",
         os.path.join(root, "mutants.json"), *arguments],
        env={**os.environ, "LEAT_MUTANTS_SELF_TEST": "1"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def expect(holds, text, shown):
    if not holds:
        fail(f"self-test: {text}\n{shown}")


def read_verdicts(root):
    found = []
    with open(os.path.join(root, "build", "verdicts.tsv"),
              encoding="utf-8") as file:
        for line in file:
            place, verdict = line.split("\t")[:2]
            found.append((int(place.split(":")[1]), verdict))
    return sorted(found)


def commands_with(word):
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found += [text for text in [file.read()] if word in text]
        except OSError:
            pass
    return found


def self_test():
    """A planted tree, of whose mutants it is known what is to be said."""
    with tempfile.TemporaryDirectory() as root:
        plant(root)
        source = os.path.join(root, "src", "planted.c")
        status, text = run_self(root, "--file", source)
        expect(status == 0, f"exit status {status}", text)
        expected = sorted((line, verdict)
                          for line, _, verdict in PLANTED_MUTANTS if verdict)
        found = read_verdicts(root)
        expect(found == expected, f"{found} instead of {expected}", text)
        expect(re.search(r"planted.c +10 +1 +5 +4 +55.6\n", text),
               "the table is wrong", text)
        expect("planted.c:22: (no test comes here)\n- return n + 1;\n"
               "+ return n - 1;\n" in text, "a survivor is not told", text)
        expect(not glob.glob(os.path.join(root, "build", "job-*")),
               "files are left", text)
        # The process that a mutant leaves is in no group of ours.
        expect(not commands_with(root), "a process is left", text)
        self_test_since(root, source)
        _, text = run_self(root, "--file", source, "--seconds", "1e-9")
        expect("\n0 of 11 mutants tried" in text, "time is not kept", text)
        _, text = run_self(root, "--file", source, "--sample", "2")
        expect(re.search(r"planted.c +[23] +[01] ", text),
               "the sample is not of two", text)
        self_test_mount(os.path.join(root, "runner"))
    print("self-test passed")
    return 0


def self_test_mount(folder):
    runner = Runner(folder)
    runner.run(["sh", "-c", "mkdir kept && mount -t tmpfs kept kept"], {}, 9)
    status = runner.run(["true"], {}, 9)
    runner.clear()
    expect(status == 0 and not os.listdir(folder), "a mount is left", folder)


def self_test_since(root, source):
    git = ["git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@t"]
    output([*git, "init", "-q"])
    output([*git, "add", "."])
    output([*git, "commit", "-qm", "planted"])
    _, text = run_self(root, "--since", "HEAD")
    expect("no line of src/*.c changed since HEAD" in text,
           "a change is seen where there is none", text)
    with open(source, encoding="utf-8") as file:
        changed = file.read().replace("n + 1", "1 + n")
    with open(source, "w", encoding="utf-8") as file:
        file.write(changed)
    _, text = run_self(root, "--since", "HEAD")
    expect("\n1 of 1 mutants tried" in text,
           "not just the changed line was tried", text)
    status, text = run_self(root, "--since", "nothing")
    expect(status == 1 and "there is no commit nothing" in text,
           "a commit that is not there is no error", text)


def bound_for_self_test():
    global DISK_BYTES, MEMORY_BYTES  # pylint: disable=global-statement
    DISK_BYTES, MEMORY_BYTES = 64 << 20, 256 << 20


def end(*_):
    """Ends the test programs with this one."""
    kill_marked(f"{os.getpid()}.")
    os._exit(130)


def main():
    options = parse_arguments()
    if os.environ.get("LEAT_MUTANTS_SELF_TEST"):
        bound_for_self_test()
    # The copy of the tree lies elsewhere, and tests skip what they do not find.
    shared = os.path.abspath(os.path.join(options.root, "..", "shared", "data"))
    if os.path.isdir(shared):
        os.environ.setdefault("LEAT_SHARED_DATA", shared)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if options.self_test:
        return self_test()
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
