#!/usr/bin/env python3
"""Measures the speed and the memory of importing a checkpoint of 1 GB that is in the page cache.

    python3 bench/import_speed.py --folder FOLDER [--qkv build/release/qkv] [--rounds 5] [--megabytes 1000]

Writes to FOLDER, unless they exist: a Llama in float32, as safetensors and as pytorch_model.bin; a Llama in bfloat16; a
GPT-2 in float32, whose matrices are transposed. Copies and imports each of them in turn, and prints the best times of all
rounds. Megabytes are of the checkpoint; a run is float32. Memory is the largest resident anonymous memory, which
excludes mapped files.
"""

import argparse
import array
import functools
import json
import os
import pathlib
import pickle
import random
import shutil
import struct
import subprocess
import sys
import time
import types
import zipfile

WIDTH, TOKENS = 1024, 32000
TYPES = {"F32": 4, "BF16": 2}


def llama(layers):
    """The shapes of a Llama by name, and its config.json."""
    shapes = {"model.embed_tokens.weight": [TOKENS, WIDTH], "model.norm.weight": [WIDTH], "lm_head.weight": [TOKENS, WIDTH]}
    for i in range(layers):
        name = f"model.layers.{i}."
        shapes |= {name + f"self_attn.{part}_proj.weight": [WIDTH, WIDTH] for part in "qkvo"}
        shapes |= {name + f"mlp.{part}_proj.weight": [4 * WIDTH, WIDTH] for part in ("gate", "up")}
        shapes |= {name + "mlp.down_proj.weight": [WIDTH, 4 * WIDTH]}
        shapes |= {name + part + "_layernorm.weight": [WIDTH] for part in ("input", "post_attention")}
    return shapes, {"model_type": "llama", "vocab_size": TOKENS, "hidden_size": WIDTH, "intermediate_size": 4 * WIDTH,
                    "num_hidden_layers": layers, "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": WIDTH,
                    "tie_word_embeddings": False, "eos_token_id": 2, "bos_token_id": 1}


def gpt2(layers):
    """The same of a GPT-2."""
    shapes = {"transformer.wte.weight": [TOKENS, WIDTH], "transformer.wpe.weight": [WIDTH, WIDTH]}
    linear = {"attn.c_attn": [WIDTH, 3 * WIDTH], "attn.c_proj": [WIDTH, WIDTH], "mlp.c_fc": [WIDTH, 4 * WIDTH],
              "mlp.c_proj": [4 * WIDTH, WIDTH]}
    norms = ["transformer.ln_f"] + [f"transformer.h.{i}.ln_{n}" for i in range(layers) for n in (1, 2)]
    for i in range(layers):
        for name, shape in linear.items():
            shapes |= {f"transformer.h.{i}.{name}.weight": shape, f"transformer.h.{i}.{name}.bias": shape[1:]}
    for name in norms:
        shapes |= {name + ".weight": [WIDTH], name + ".bias": [WIDTH]}
    return shapes, {"model_type": "gpt2", "vocab_size": TOKENS, "n_embd": WIDTH, "n_layer": layers, "n_head": 16,
                    "n_positions": WIDTH, "eos_token_id": 2, "bos_token_id": 1}


def count(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def largest(family, megabytes, width):
    """The model of this family with as many layers as fit."""
    layers = 1
    while sum(map(count, family(layers + 1)[0].values())) * width <= megabytes * 10**6:
        layers += 1
    return family(layers)


@functools.cache
def random_block(width):
    """2^18 random numbers of this width in bytes: float32 or bfloat16."""
    values = array.array("f", (random.Random(1).gauss(0, 0.02) for _ in range(1 << 18)))
    return array.array("H", values.tobytes())[1::2].tobytes() if width == 2 else values.tobytes()


def numbers(size, width):
    """As many bytes of random numbers, in blocks."""
    block = random_block(width)
    for begin in range(0, size, len(block)):
        yield block[:size - begin]


def write_safetensors(path, shapes, kind):
    entries, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + count(shape) * TYPES[kind]
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for shape in shapes.values():
            for block in numbers(count(shape) * TYPES[kind], TYPES[kind]):
                file.write(block)


def write_checkpoint(path, shapes):
    """Writes what torch.save writes, without torch."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
    utils._rebuild_tensor_v2 = lambda *_: None
    utils._rebuild_tensor_v2.__module__, utils._rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    sys.modules |= {"torch": torch, "torch._utils": utils}

    class Storage:
        def __init__(self, key, size):
            self.description = ("storage", torch.FloatStorage, key, "cpu", size)

    class Tensor:
        def __init__(self, key, shape):
            self.state = (Storage(key, count(shape)), 0, tuple(shape), tuple([shape[1], 1] if len(shape) > 1 else [1]), False, {})

        def __reduce__(self):
            return utils._rebuild_tensor_v2, self.state

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return value.description if isinstance(value, Storage) else None

    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("model/data.pkl", "w") as file:
            Pickler(file, 2).dump({name: Tensor(str(i), shape) for i, (name, shape) in enumerate(shapes.items())})
        for i, shape in enumerate(shapes.values()):
            with archive.open(f"model/data/{i}", "w", force_zip64=True) as file:
                for block in numbers(count(shape) * 4, 4):
                    file.write(block)
    del sys.modules["torch"], sys.modules["torch._utils"]


def write_tokenizer(path):
    """A tokenizer.json of byte-level BPE with 256 pieces and an end token; the model's other tokens have no text."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    pieces = {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
    tokenizer = {"version": "1.0", "normalizer": None, "post_processor": None, "decoder": {"type": "ByteLevel"},
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                 "added_tokens": [], "model": {"type": "BPE", "vocab": pieces, "merges": []}}
    path.write_text(json.dumps(tokenizer))


def write_model(folder, family, megabytes, kind, checkpoint=False):
    if folder.exists():
        return
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    shapes, config = largest(family, megabytes, TYPES[kind])
    (partial / "config.json").write_text(json.dumps(config))
    write_tokenizer(partial / "tokenizer.json")
    if checkpoint:
        write_checkpoint(partial / "pytorch_model.bin", shapes)
    else:
        write_safetensors(partial / "model.safetensors", shapes, kind)
    partial.rename(folder)


def timed(command):
    """Runs a program; returns its seconds by the clock and of CPU time, and its largest resident anonymous memory in MB."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                most = max(most, int(line.split()[1]))
        time.sleep(0.002)
    seconds = time.monotonic() - begin
    if ended[1]:
        raise SystemExit(f"{command} failed")
    return seconds, ended[2].ru_utime + ended[2].ru_stime, most * 1024 / 10**6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--qkv", default="build/release/qkv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    cases = {"llama": (llama, "F32", False), "llama.bin": (llama, "F32", True), "llama-bfloat16": (llama, "BF16", False),
             "gpt2": (gpt2, "F32", False)}
    for name, (family, kind, checkpoint) in cases.items():
        write_model(options.folder / name, family, options.megabytes, kind, checkpoint)
        weights = max((options.folder / name).iterdir(), key=lambda file: file.stat().st_size)
        size = weights.stat().st_size / 10**6
        for _ in range(2):  # into the page cache
            with open(weights, "rb") as file:
                while file.read(1 << 24):
                    pass
        copy, run, results = options.folder / "copy", options.folder / "run", {"cp": [], "qkv import": []}
        for _ in range(options.rounds):
            results["cp"].append(timed(["cp", weights, copy]))
            os.unlink(copy)
            results["qkv import"].append(timed([options.qkv, "import", weights.parent, run]))
            shutil.rmtree(run)
        for command, found in results.items():
            seconds, cpu = (min(result[i] for result in found) for i in (0, 1))
            print(f"{name}, {size:.0f} MB: {command} {size / seconds:.0f} MB/s, {seconds:.2f} s ({cpu:.2f} s of CPU time), "
                  f"{max(result[2] for result in found):.1f} MB of anonymous memory", flush=True)


if __name__ == "__main__":
    main()
