"""Compares the loss of quantized language models on held-out text with llama.cpp's. Prints the table in
docs/results.md.

    python3 bench/peers/llama_quality.py RUN --text FILE --llama VENV/bin/python --models DIR [--qkv build/release/qkv]

RUN is a Llama with pieces that `qkv train lm` made; VENV is that of llama.py. Both sides read the same tokens: windows
of the text, after the model's start token, as long as the model reads. A loss is the mean of −log p over all tokens of
a window but the first, in nats; the perplexity is e to its power.
"""

import argparse
import json
import math
import subprocess
import urllib.request
from pathlib import Path

from common import measure, run_command

PEER = str(Path(__file__).with_name("llama_cpp_models.py"))
TOKENS = """
import sys, sentencepiece
ids = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1]).encode(open(sys.argv[2]).read())
start, length, out = sys.argv[3], int(sys.argv[4]) - 1, open(sys.argv[5], "w")
for i in range(0, len(ids) - length + 1, length):
    print(start, *ids[i:i + length], file=out)
print(len(ids))
"""


def our_loss(qkv, run, windows):
    """Returns the loss of a run, which a server computes. It adds the start token itself."""
    server = subprocess.Popen([qkv, "serve", f"lm={run}", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        words = (word for line in server.stderr for word in line.split())
        address = next(word for word in words if word.startswith("http://"))
        total, count = 0.0, 0
        for first in range(0, len(windows), 8):
            texts = [window[1:] for window in windows[first:first + 8]]
            body = {"model": "lm", "prompt": texts, "echo": True, "logprobs": 0, "max_tokens": 0}
            request = urllib.request.Request(f"{address}/v1/completions", json.dumps(body).encode(),
                                             {"content-type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                for choice in json.load(answer)["choices"]:
                    scores = choice["logprobs"]["token_logprobs"][1:]
                    total -= sum(scores)
                    count += len(scores)
        return total / count
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run directory of a Llama with pieces")
    parser.add_argument("--text", required=True, help="held-out text")
    parser.add_argument("--llama", required=True, help="Python interpreter with llama-cpp-python")
    parser.add_argument("--models", required=True, help="folder of the models, which must not exist")
    parser.add_argument("--qkv", default="build/release/qkv", help="qkv program (default: %(default)s)")
    a = parser.parse_args()

    models = Path(a.models)
    models.mkdir()
    run_command([a.qkv, "export", a.run, str(models / "exported")])
    run_command([a.llama, PEER, "convert", str(models / "exported"), str(models / "F32.gguf")])
    config = json.loads((models / "exported/config.json").read_text())
    length = config["max_position_embeddings"]
    ids = models / "ids.txt"
    run_command([a.llama, "-c", TOKENS, f"{a.run}/tokenizer.model", a.text, str(config["bos_token_id"]),
                 str(length), str(ids)])
    windows = [[int(word) for word in line.split()] for line in ids.read_text().splitlines()]
    losses = {"qkv float32": our_loss(a.qkv, a.run, windows)}
    for bits in ("int8", "int4"):
        run_command([a.qkv, "quantize", a.run, f"--{bits}", "--out", str(models / bits)])
        losses[f"qkv {bits}"] = our_loss(a.qkv, models / bits, windows)
    for kind in ("F32", "Q8_0", "Q4_0", "Q4_K"):
        file = str(models / f"{kind}.gguf")
        if kind != "F32":
            run_command([a.llama, PEER, "quantize", str(models / "F32.gguf"), file, kind])
        losses[f"llama.cpp {kind}"] = measure([a.llama, PEER, "loss", file, str(ids)])[0]["loss"]

    print(f"{len(windows)} windows of {length} tokens\n")
    print("| weights | loss | above float32 | perplexity |\n|---|---|---|---|")
    for name, loss in losses.items():
        print(f"| {name} | {loss:.4f} | {loss - losses['qkv float32']:+.4f} | {math.exp(loss):.2f} |")


main()
