#!/usr/bin/env python3
"""Computes the same answers in many ways, and compares their bytes (docs/reliability.md).

A translator, a language model, a recommender and an encoder of texts, which are trained first, answer 1,000 sentences,
prompts, histories and texts. A way is an order of the inputs, which gives each one other neighbours and another place
in its batch, with a size of batches, a window, a number of threads and a number of workers. With one instruction set
and one kind of weights an answer, scores included, must have the same bytes in all ways. Between instruction sets, the
number of answers with another text or other items is printed, and the largest difference of a score. Example:

  bench/same_answers.py build/release/qkv --ways 200
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
INSTRUCTION_SETS = ["avx512", "avx2", "neon", "portable"]
ORDERS = ["as they are", "reversed", "shuffled", "by length"]
SHAPE = ("--decoder-layers 2 --d-model 64 --heads 4 --ffn 128 --batch-tokens 1024 --max-steps 200 --warmup-steps 50 "
         "--eval-every 0").split()
TRAIN = {
    "translator": ("train translate --train {text}/train.en {text}/train.de --dev {text}/dev.en {text}/dev.de "
                   "--vocab-size 1000 --encoder-layers 2").split(),
    "language": "train lm --text {text}/train.en".split(),
    "recommender": "train recommend --data {folder}/log.csv --preset films --max-length 30".split(),
}
SIZES = {"--threads": [1, 2, 3, 4, 7, 16]}
# task: the run, the command with {file} for the inputs, the options that must not change an answer
TASKS = {
    "translate, beam 4": ("translator", "translate {run} --input {file} --beam 4 --json",
                          SIZES | {"--batch-tokens": [1, 64, 700, 4096], "--workers": [0, 1, 2, 5],
                                   "--window": [1, 33, 1024]}),
    "generate": ("language", "generate {run} --prompts {file} --max-tokens 12 --json",
                 SIZES | {"--batch": [1, 3, 8, 64]}),
    "recommend": ("recommender", "recommend {run} --input {file}", SIZES),
    "embed": ("translator", "embed {run} --file {file} --json", SIZES | {"--batch-tokens": [1, 64, 700, 4096]}),
}
WEIGHTS = {"float": None, "8 bits": "--int8", "4 bits": "--int4"}


def run(qkv, *arguments, **environment):
    return subprocess.run([qkv, *map(str, arguments)], check=True, capture_output=True, text=True,
                          env={**os.environ, **environment}).stdout


def instruction_sets(qkv):
    def works(name):
        return subprocess.run([qkv, "doctor"], env={**os.environ, "QKV_ISA": name}, capture_output=True).returncode == 0

    return list(filter(works, INSTRUCTION_SETS))


def make_runs(qkv, folder):
    subprocess.run([sys.executable, EXAMPLES / "films/generate.py", "--out", folder], check=True, capture_output=True)
    places = {"folder": folder, "text": EXAMPLES / "grammar"}
    for name, command in TRAIN.items():
        run(qkv, *(word.format(**places) for word in [*command, *SHAPE]), "--out", folder / name)
        for weights in filter(None, WEIGHTS.values()):
            run(qkv, "quantize", folder / name, weights)


def inputs(a, task, draws):
    """The lines of a task: of one to three sentences, or of one to forty events."""
    if task == "recommend":
        films = [line.split(",")[0] for line in (a.folder / "titles.csv").read_text().splitlines()[1:]]
        return [json.dumps({"history": draws.choices(films, k=draws.randint(1, 40))}) for _ in range(a.lines)]
    sentences = a.text.read_text().splitlines()
    lines = [" ".join(draws.choices(sentences, k=draws.randint(1, 3))) for _ in range(a.lines)]
    return [line[: draws.randint(1, len(line))].strip() or line for line in lines] if task == "generate" else lines


def order_of(name, lines, draws):
    order = list(range(len(lines)))
    if name == "reversed":
        order.reverse()
    elif name == "shuffled":
        draws.shuffle(order)
    elif name == "by length":
        order.sort(key=lambda i: len(lines[i]))
    return order


def answers(a, task, run_directory, isa, way, lines, draws):
    """The answers of a way, in the order of the lines."""
    order = order_of(way["order"], lines, draws)
    file = a.folder / "inputs"
    file.write_text("".join(lines[i] + "\n" for i in order))
    options = itertools.chain.from_iterable(item for item in way.items() if item[0] != "order")
    command = [word.format(run=run_directory, file=file) for word in TASKS[task][1].split()]
    found = run(a.qkv, *command, *options, QKV_ISA=isa).splitlines()
    if len(found) != len(lines):
        raise SystemExit(f"{task}: {len(found)} answers to {len(lines)} lines")
    return [answer for _, answer in sorted(zip(order, found))]


def parts_of(value):
    """The words of an answer in its structure, and its numbers."""
    if isinstance(value, float):
        return None, [value]
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (list, tuple)):
        parts = [parts_of(part) for part in value]
        return [said for said, _ in parts], [number for _, numbers in parts for number in numbers]
    return value, []


def compare_instruction_sets(found):
    """Compares the answers of each instruction set with those of the first."""
    (first, expected), *others = found.items()
    for isa, answers_of_isa in others:
        differing, largest = 0, 0.0
        for one, other in zip(expected, answers_of_isa):
            (said, numbers), (other_said, other_numbers) = parts_of(json.loads(one)), parts_of(json.loads(other))
            if said == other_said:
                largest = max([largest, *(abs(x - y) for x, y in zip(numbers, other_numbers))])
            differing += said != other_said
        print(f"  {isa} against {first}: {differing} other answers, scores differ by at most {largest:.1e}", flush=True)


def compare_ways(a, task, weights, draws):
    name, _, options = TASKS[task]
    run_directory = a.folder / (name + (WEIGHTS[weights] or "").replace("--", "-"))
    lines = inputs(a, task, draws)
    values = {"order": ORDERS} | options
    ways = [dict(zip(values, way)) for way in itertools.product(*values.values())]
    found = {}
    for isa in instruction_sets(a.qkv):
        for way in draws.sample(ways, min(a.ways, len(ways))):
            got = answers(a, task, run_directory, isa, way, lines, draws)
            expected = found.setdefault(isa, got)
            if differing := [i for i, answer in enumerate(got) if answer != expected[i]]:
                raise SystemExit(f"{task}, {weights}, {isa}: {way}: other bytes of line {differing[0]}:\n"
                                 f"{expected[differing[0]]}\n{got[differing[0]]}")
    print(f"{task}, {weights}: {a.lines} answers, each the same in {min(a.ways, len(ways))} of {len(ways)} ways with "
          f"{', '.join(found)}", flush=True)
    compare_instruction_sets(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--ways", type=int, default=50, help="drawn for each task, kind of weights and instruction set")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--text", type=pathlib.Path, default=EXAMPLES / "grammar/test.en", help="sentences, one per line")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    draws = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as name:
        a.folder = pathlib.Path(name)
        make_runs(a.qkv, a.folder)
        for task in a.tasks:
            for weights in WEIGHTS:
                compare_ways(a, task, weights, draws)


if __name__ == "__main__":
    main()
