#!/usr/bin/env python3
"""Writes a directory in the format of Hugging Face: GPT-2's shape with random weights, for measurements that do not
depend on training. The default of 4,096 positions makes 127 million parameters. Needs NumPy.

    python3 bench/random_gpt2.py DIR [--positions 4096]
    qkv import DIR RUN && qkv quantize RUN --int8
"""

import argparse
import itertools
import json
import struct
from pathlib import Path

import numpy as np

WIDTH, LAYERS, HEADS, PIECES = 768, 12, 12, 50257


def tokenizer():
    """Byte-pair encoding over all bytes, with the first pairs of bytes as merges."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
    merges = list(itertools.islice(itertools.product(letters, letters), PIECES - 1 - len(letters)))
    names = letters + [first + second for first, second in merges] + ["<|endoftext|>"]
    return {
        "version": "1.0",
        "added_tokens": [{"id": PIECES - 1, "content": names[-1], "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": True, "special": True}],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {name: i for i, name in enumerate(names)}, "merges": merges},
    }


def shapes(positions):
    """The shape of every tensor by its name."""
    layer = {"ln_1.weight": (WIDTH,), "ln_1.bias": (WIDTH,), "ln_2.weight": (WIDTH,), "ln_2.bias": (WIDTH,),
             "attn.c_attn.weight": (WIDTH, 3 * WIDTH), "attn.c_attn.bias": (3 * WIDTH,),
             "attn.c_proj.weight": (WIDTH, WIDTH), "attn.c_proj.bias": (WIDTH,),
             "mlp.c_fc.weight": (WIDTH, 4 * WIDTH), "mlp.c_fc.bias": (4 * WIDTH,),
             "mlp.c_proj.weight": (4 * WIDTH, WIDTH), "mlp.c_proj.bias": (WIDTH,)}
    table = {"wte.weight": (PIECES, WIDTH), "wpe.weight": (positions, WIDTH), "ln_f.weight": (WIDTH,),
             "ln_f.bias": (WIDTH,)}
    return table | {f"h.{i}.{name}": shape for i in range(LAYERS) for name, shape in layer.items()}


def write_weights(path, tensors):
    """Writes float32 tensors of a normal distribution with standard deviation 0.02 to a safetensors file."""
    header, offset, random = {}, 0, np.random.default_rng(1)
    for name, shape in tensors.items():
        size = 4 * int(np.prod(shape))
        header["transformer." + name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors.items():
            norm = 1 if ".ln_" in name and name.endswith("weight") else 0
            file.write((norm + 0.02 * random.standard_normal(shape, dtype=np.float32)).astype("<f4").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--positions", type=int, default=4096, help="greatest length in tokens (default: %(default)s)")
    a = parser.parse_args()
    a.directory.mkdir(parents=True)
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": PIECES, "n_embd": WIDTH,
              "n_positions": a.positions, "n_layer": LAYERS, "n_head": HEADS, "bos_token_id": PIECES - 1,
              "eos_token_id": PIECES - 1}
    (a.directory / "config.json").write_text(json.dumps(config))
    (a.directory / "tokenizer.json").write_text(json.dumps(tokenizer()))
    write_weights(a.directory / "model.safetensors", shapes(a.positions))


if __name__ == "__main__":
    main()
