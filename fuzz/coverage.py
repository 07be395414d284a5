#!/usr/bin/env python3
"""Measures how many lines of the readers of files from outside the fuzz targets reach, on their seeds and on the
inputs that a fuzzer finds.

    fuzz/coverage.py                       # runs every target for a minute, then reports all files below 95 %
    fuzz/coverage.py --seconds 0           # only what an earlier run of this script or of fuzz/run.sh found
    fuzz/coverage.py --missed json.cc      # also the lines of these files that are not reached

The targets are built once more, in build/coverage, with clang's coverage of source code: lines are those that contain
code, and a line after a call counts as reached if the call throws. readers.json lists the files, and the functions in
them that do not read what comes from outside, with the reason.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/coverage"
FLAGS = "-fprofile-instr-generate -fcoverage-mapping"  # besides those of the preset
WANTED = 95  # percent
READERS = json.loads((ROOT / "fuzz/readers.json").read_text())


def tool(name):
    """A tool of LLVM, of the version that the preset asan uses."""
    version = re.search(r"version (\d+)", subprocess.check_output(["clang++-19", "--version"], text=True))[1]
    return f"{name}-{version}"


def build():
    """Builds the targets and writes their seeds. Returns the names of the targets."""
    for command in (["cmake", "--preset", "asan", "-B", BUILD, f"-DCMAKE_CXX_FLAGS_NONE={FLAGS}"],
                    ["cmake", "--build", BUILD, "--target", "fuzz"], [BUILD / "fuzz/fuzz_seeds", BUILD / "seeds"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "LLVM_PROFILE_FILE": os.devnull})  # of the program that writes the seeds
    return sorted(path.name for path in (BUILD / "seeds").iterdir())


def fuzz(target, seconds):
    """Runs a target on its seeds and what was found, then on new inputs. Returns the file of its counts."""
    corpus, counts = BUILD / "corpus" / target, BUILD / f"{target}.profraw"
    corpus.mkdir(parents=True, exist_ok=True)
    found = ROOT / "build/fuzz/corpus" / target  # by fuzz/run.sh
    folders = [corpus, BUILD / "seeds" / target, *([found] if found.exists() else [])]
    limit = f"-max_total_time={seconds}" if seconds else "-runs=0"
    done = subprocess.run([BUILD / f"fuzz/fuzz_{target}", limit, "-timeout=60", "-rss_limit_mb=2048", "-max_len=65536",
                           f"-artifact_prefix={BUILD}/{target}-", *folders], capture_output=True, text=True,
                          errors="replace", env={**os.environ, "LLVM_PROFILE_FILE": str(counts)})
    if done.returncode:
        raise SystemExit(f"{target}: {done.stderr[-2000:]}")
    return counts


def relative(path):
    return str(pathlib.Path(path).relative_to(ROOT))


def sources():
    return sorted({path for pattern in READERS["files"] for path in ROOT.glob(pattern)})


def line_counts(counts):
    """Returns file -> {line: times it was run} of the readers."""
    data = BUILD / "all.profdata"
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *counts, "-o", data], check=True)
    text = subprocess.check_output([tool("llvm-cov"), "export", "-format=lcov", f"-instr-profile={data}",
                                    BUILD / "fuzz/fuzz_readers", *sources()], text=True)
    files, lines = {}, {}
    for record in text.splitlines():
        key, _, value = record.partition(":")
        if key == "SF":
            lines = files.setdefault(relative(value), {})
        elif key == "DA":
            line, times = value.split(",")[:2]
            lines[int(line)] = max(lines.get(int(line), 0), int(times))
    return files


def functions(path):
    """Returns, for each line of a file from 1 on, the name of the last function that begins in the first column."""
    name, names = "", [""]
    for line in (ROOT / path).read_text().splitlines():
        start = re.match(r".*?\b((?:\w+::)*~?(?:operator\S+|\w+))\(", line) if line[:1].isalpha() else None
        name = start[1] if start and not line.endswith(";") else name
        names.append(name)
    return names


def left_out(path, name):
    """Returns the pattern that leaves out a function, if one does."""
    matching = (pattern for pattern in READERS["without"] if fnmatch.fnmatchcase(f"{path}:{name}", f"*/{pattern}"))
    return next(matching, None)


def report(path, lines):
    """Returns the numbers of lines that count and that are reached, and the others with their functions."""
    names = functions(path)
    counted = {line: times for line, times in sorted(lines.items()) if not left_out(path, names[line])}
    missed = [f"  {path}:{line}: {names[line]}" for line, times in counted.items() if not times]
    return len(counted), len(counted) - len(missed), missed


def main():
    parser = argparse.ArgumentParser(description="Measures how many lines of the readers the fuzz targets reach.")
    parser.add_argument("--seconds", type=int, default=60, help="that each target runs on new inputs [60]")
    parser.add_argument("--missed", nargs="*", default=[], metavar="FILE", help="files whose missed lines are printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets that run at once [one per processor]")
    options = parser.parse_args()
    targets = build()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        counts = list(pool.map(lambda target: fuzz(target, options.seconds), targets))
    total = reached = low = 0
    for path, lines in line_counts(counts).items():
        counted, run, missed = report(path, lines)
        total, reached = total + counted, reached + run
        if 100 * run < WANTED * counted:
            low += 1
            print(f"{path}: {run} of {counted} lines, {100 * run / counted:.1f} %")
        if pathlib.Path(path).name in options.missed:
            print(*missed, sep="\n")
    paths = map(relative, sources())
    stale = set(READERS["without"]) - {left_out(path, name) for path in paths for name in functions(path)}
    if stale:
        print("readers.json: these match no function:", *sorted(stale))
    print(f"{len(targets)} targets reach {reached} of {total} lines of readers, {100 * reached / total:.1f} %; "
          f"{low} of {len(sources())} files below {WANTED} %")
    sys.exit(low > 0 or bool(stale))


if __name__ == "__main__":
    main()
