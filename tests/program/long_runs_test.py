"""Processes that run for long do not grow, a sample of bench/long_runs.py, and their counters do not overflow."""

import argparse
import json
import pathlib
import struct
import sys

from conftest import QKV, ROOT, qkv

sys.path.insert(0, str(ROOT / "bench"))
import long_runs  # noqa: E402

LAST = 2**31 - 1


def test_training_and_translation_do_not_grow(tmp_path):
    arguments = argparse.Namespace(qkv=pathlib.Path(QKV), steps=5000, lines=50_000)
    long_runs.train(arguments, tmp_path)
    long_runs.translate(arguments)


def change_metadata(path, **changes):
    """Replaces values of the metadata of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    assert changes.keys() <= header["__metadata__"].keys()
    header["__metadata__"] |= changes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])


def test_training_continues_up_to_the_last_step_of_a_run(tmp_path):
    (tmp_path / "text").write_text("a b c d e f g h\n" * 40)
    command = ["train", "lm", "--text", tmp_path / "text", "--out", tmp_path / "run", "--decoder-layers", "1",
               "--d-model", "8", "--heads", "2", "--ffn", "16", "--max-length", "16", "--batch-tokens", "32",
               "--schedule", "inverse_sqrt"]
    qkv(*command, "--max-steps", "4")
    change_metadata(tmp_path / "run/checkpoints/state.safetensors", step=str(LAST - 3), epoch=str(LAST - 3))
    qkv(*command, "--max-steps", str(LAST))
    qkv(*command, "--max-steps", str(LAST))  # reads the state of the last step
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "epoch" in line][-3:]
    assert [step["step"] for step in steps] == [LAST - 2, LAST - 1, LAST]
    assert all(step["epoch"] > LAST - 3 and step["learning_rate"] > 0 and step["loss"] > 0 for step in steps)
    status, _, error = qkv(*command, "--max-steps", str(LAST + 1), ok=False)
    assert status == 1 and error.endswith(f"qkv: training: {LAST + 1} steps are more than the {LAST} of a run\n")
