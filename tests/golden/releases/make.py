"""Writes the runs that are kept of a release: small ones of each kind, and the output of commands on them.

usage: make.py PROGRAM        writes VERSION/ next to this file, where VERSION is that of the program

VERSION/ holds the runs, data/ (the text and the log that they were trained on), expected/ (the output of each command)
and expected.json: "outputs" has the command of each file of expected/, "resumed" the command that continues the
training of a run, with the SHA-256 of the weights afterwards, and "reports" the members of the JSON that other commands
print. Commands run in VERSION/, with the environment PORTABLE. The folder of a release is written once, by its own
program. docs/versions.md says what it is for.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent
# The models are so narrow that no product is left to oneDNN, so results depend on the instruction set alone.
PORTABLE = {**os.environ, "QKV_ISA": "portable"}

TRAINING = "--threads 2 --save-every 0 --average 2 --learning-rate 0.02 --warmup-steps 4"
SMALL = f"--d-model 8 --heads 2 --ffn 16 --max-length 24 {TRAINING}"
TRAINED = {  # run -> (options of qkv train, steps)
    "translator": (f"translate --train data/train.en data/train.de --dev data/dev.en data/dev.de {SMALL} "
                   "--encoder-layers 1 --decoder-layers 1 --batch-tokens 200 --eval-every 8 --source-tokenizer data/tokenizer.model", 16),
    "language": (f"lm --text data/train.en {SMALL} --decoder-layers 1 --moments int8 --schedule inverse_sqrt "
                 "--batch-tokens 96 --eval-every 8", 16),
    "recommender": ("recommend --data data/log.csv --features data/titles.csv --feature-columns item,genre,title:words "
                    f"{SMALL} --time-gaps true --transitions true --decoder-layers 1 --batch-tokens 64 --eval-every 6 "
                    "--moments bfloat16 --schedule inverse_sqrt", 12),
    "masked": (f"encoder --text data/train.en --lines --vocab-size 60 {SMALL} --encoder-layers 1 --batch-tokens 96 "
               "--schedule inverse_sqrt --eval-every 8", 16),
    "adapter": (f"lm --init language --text data/train.en {TRAINING} --lora-rank 2 --batch-tokens 96 --eval-every 8",
                16),
}
CONVERTED = [  # commands that write runs
    f"import {GOLDEN}/bert/sentence encoder",
    f"import {GOLDEN}/classify/bert classifier",
    f"import {GOLDEN}/classify/cross reranker",
    "merge adapter merged",
    "quantize merged --int8 --out language-int8",
]
OUTPUTS = {  # file of expected/ -> command
    "translator.txt": "translate translator --input data/lines.en",
    "translator.json": "translate translator --input data/lines.en --n-best 2 --json",
    "language.txt": "generate language --prompt There --max-tokens 40 --seed 4",
    "language-int8.txt": "generate language-int8 --prompt There --max-tokens 40 --seed 4",
    "adapter.txt": "generate adapter --prompt There --max-tokens 40 --seed 4",
    "recommender.json": "recommend recommender --user u0005 --explain --json",
    "recommender.evaluation.json": "evaluate recommender --json",
    "encoder.txt": "embed encoder --file data/lines.en",
    "masked.txt": "embed masked --file data/lines.en",
    "translator.vectors.txt": "embed translator --file data/lines.en",
    "classifier.json": "classify classifier --file data/lines.en --json",
    "reranker.json": "rerank reranker --query dog --file data/lines.en --json",
}
REPORTS = (  # commands whose values may change, but not the names and types of the members
    "inspect translator --json",
    "generate language --prompt There --max-tokens 3 --explain 2 --json",
    "embed encoder --file data/lines.en --json",
    "score bleu --ref data/dev.de --hyp data/dev.en --json",
    "data check --train data/train.en data/train.de --json",
    "plot translator --json",
    "attend encoder dog --json -",
    "explain --steps -",
)
TYPES = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}


def run(program, command, folder):
    done = subprocess.run([program, *command.split()], cwd=folder, env=PORTABLE, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


def train(name, steps):
    return f"train {TRAINED[name][0]} --out {name} --max-steps {steps}"


def make_runs(program, folder):
    """Writes data/ and the runs into a folder."""
    shutil.copytree(GOLDEN / "runs/text", folder / "data")
    shutil.copytree(GOLDEN / "runs/log", folder / "data", dirs_exist_ok=True)
    for name, (_, steps) in TRAINED.items():
        run(program, train(name, steps), folder)
    for file in ("base.json", "adapter_config.json"):  # the path of the base is absolute; the tests read it from folder
        text = (folder / "adapter" / file).read_text(encoding="utf-8")
        (folder / "adapter" / file).write_text(text.replace(str(folder / "language"), "language"), encoding="utf-8")
    for command in CONVERTED:
        run(program, command, folder)


def sums(run_directory):
    """File -> SHA-256, for the files of weights and of the state."""
    files = sorted(run_directory.glob("**/*.safetensors"))
    return {str(file.relative_to(run_directory)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def resumed(program, name, folder):
    """The command that trains a run twice as long, and the sums of its files afterwards."""
    copy = folder / "copy"
    shutil.copytree(folder / name, copy)
    command = train(name, 2 * TRAINED[name][1])
    run(program, command.replace(f"--out {name} ", "--out copy "), folder)
    found = sums(copy)
    shutil.rmtree(copy)
    return {"command": command, "sha256": found}


def members(name, value):
    """A line for each member of a JSON value; those of all elements of an array together."""
    if isinstance(value, list):
        return {line for element in value for line in members(f"{name}[]", element)} | {f"{name} array"}
    if isinstance(value, dict):
        return {line for key, part in value.items() for line in members(f"{name}.{key}", part)} | {f"{name} object"}
    return {f"{name} {TYPES[type(value)]}"}


def report(program, command, folder):
    """The members of the JSON that a command prints, one value per line."""
    lines = run(program, command, folder).splitlines()
    return sorted({member for line in lines for member in members("", json.loads(line))})


def main(program):
    program = str(pathlib.Path(program).resolve())
    version = re.search(r"qkv ([\d.]+)", run(program, "--version", HERE))[1]
    folder = HERE / version
    if folder.exists():
        raise SystemExit(f"{folder} exists; the runs of a release are written once")
    folder.mkdir()
    make_runs(program, folder)
    (folder / "expected").mkdir()
    for file, command in OUTPUTS.items():
        (folder / "expected" / file).write_text(run(program, command, folder), encoding="utf-8")
    table = {"outputs": OUTPUTS, "resumed": {name: resumed(program, name, folder) for name in TRAINED},
             "reports": {command: report(program, command, folder) for command in REPORTS}}
    (folder / "expected.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
