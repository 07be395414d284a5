"""llama.cpp's side of llama.py: makes models, quantizes them, and measures speed and loss.

    python llama_cpp_models.py make SIZE FILE
    python llama_cpp_models.py convert DIR FILE
    python llama_cpp_models.py quantize FROM TO TYPE
    python llama_cpp_models.py speed FILE --prompt N --tokens N --batch N --threads N
    python llama_cpp_models.py loss FILE IDS --threads N

`make` writes a Llama in the shape of SIZE with normal random weights, of standard deviation 0.02, `convert` a Llama
that `qkv export` wrote, without its tokenizer. `speed` and `loss` print JSON in the last line. `loss` reads token ids,
one sequence per line, and prints the mean of −log p over all tokens after the first two of each.
"""

import argparse
import ctypes
import itertools
import json
import statistics
import time
from pathlib import Path

import gguf
import llama_cpp as l
import numpy as np
from safetensors.numpy import load_file

PIECES, POSITIONS = 32000, 2048
# Width, layers, heads, heads of keys and values, width of the feed-forward layers.
SIZES = {"100M": (768, 12, 12, 12, 2048), "1B": (2048, 22, 32, 4, 5632)}
TYPES = {"F16": l.LLAMA_FTYPE_MOSTLY_F16, "Q8_0": l.LLAMA_FTYPE_MOSTLY_Q8_0, "Q4_0": l.LLAMA_FTYPE_MOSTLY_Q4_0,
         "Q4_K": l.LLAMA_FTYPE_MOSTLY_Q4_K_M}


def add_tokenizer(writer):
    """Byte-pair encoding over all bytes, with the first pairs of bytes as merges."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
    merges = list(itertools.islice(itertools.product(letters, letters), PIECES - 1 - len(letters)))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(letters + [first + second for first, second in merges] + ["<|endoftext|>"])
    writer.add_token_types([gguf.TokenType.NORMAL] * (PIECES - 1) + [gguf.TokenType.CONTROL])
    writer.add_token_merges([f"{first} {second}" for first, second in merges])
    writer.add_bos_token_id(PIECES - 1)
    writer.add_eos_token_id(PIECES - 1)
    writer.add_add_bos_token(False)


def new_writer(path, width, layers, heads, kv_heads, inner, positions=POSITIONS, pieces=PIECES):
    writer = gguf.GGUFWriter(path, "llama", use_temp_file=False)
    writer.add_context_length(positions)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(pieces)
    return writer


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(size, path):
    width, layers, heads, kv_heads, inner = SIZES[size]
    kv = width // heads * kv_heads
    writer = new_writer(path, *SIZES[size])
    add_tokenizer(writer)
    random = np.random.default_rng(1)
    matrices = {"attn_q": (width, width), "attn_k": (kv, width), "attn_v": (kv, width), "attn_output": (width, width),
                "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}
    matrix = lambda shape: random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
    writer.add_tensor("token_embd.weight", matrix((PIECES, width)))
    writer.add_tensor("output.weight", matrix((PIECES, width)))
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for i in range(layers):
        for name, shape in matrices.items():
            writer.add_tensor(f"blk.{i}.{name}.weight", matrix(shape))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(width, np.float32))
    finish(writer)


LAYER = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def convert(folder, path):
    config = json.loads(Path(folder, "config.json").read_text())
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = new_writer(path, config["hidden_size"], config["num_hidden_layers"], heads, kv_heads,
                        config["intermediate_size"], config["max_position_embeddings"], config["vocab_size"])
    writer.add_tokenizer_model("none")
    for name, tensor in load_file(str(Path(folder, "model.safetensors"))).items():
        module = name.removesuffix(".weight")
        if module in OUTER:
            writer.add_tensor(f"{OUTER[module]}.weight", tensor)
            continue
        layer, part = module.removeprefix("model.layers.").split(".", 1)
        if part in ("self_attn.q_proj", "self_attn.k_proj"):  # llama.cpp rotates neighbours, transformers halves
            pairs = tensor.reshape(heads if "q_" in part else kv_heads, 2, -1, tensor.shape[1])
            tensor = np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(tensor.shape))
        writer.add_tensor(f"blk.{layer}.{LAYER[part]}.weight", tensor)
    finish(writer)


def quantize(source, target, kind):
    how = l.llama_model_quantize_default_params()
    how.ftype = TYPES[kind]
    assert l.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(how)) == 0


IGNORE = l.llama_log_callback(lambda level, text, data: None)


class Model:
    """A context of llama.cpp, used through its C functions, as its own programs do."""

    def __init__(self, path, threads, batch=1, positions=POSITIONS):
        l.llama_log_set(IGNORE, None)
        l.llama_backend_init()
        how = l.llama_model_default_params()
        how.n_gpu_layers = 0
        self.model = l.llama_model_load_from_file(path.encode(), how)
        assert self.model
        context = l.llama_context_default_params()
        context.n_ctx = positions * batch
        context.n_batch = context.n_ubatch = 512
        context.n_seq_max = batch
        context.kv_unified = False
        context.n_threads = context.n_threads_batch = threads
        context.no_perf = True
        self.context = l.llama_init_from_model(self.model, context)
        assert self.context
        self.vocab = l.llama_vocab_n_tokens(l.llama_model_get_vocab(self.model))
        self.room = l.llama_batch_init(512, 0, 1)

    def clear(self):
        l.llama_memory_clear(l.llama_get_memory(self.context), True)

    def decode(self, tokens, wanted):
        """Appends (sequence, position, id); `wanted` are the places in the list whose logits are computed."""
        for first in range(0, len(tokens), 512):
            part = tokens[first:first + 512]
            self.room.n_tokens = len(part)
            for i, (sequence, position, token) in enumerate(part):
                self.room.token[i], self.room.pos[i], self.room.n_seq_id[i] = token, position, 1
                self.room.seq_id[i][0] = sequence
                self.room.logits[i] = first + i in wanted
            assert l.llama_decode(self.context, self.room) == 0

    def logits(self, i):
        return np.ctypeslib.as_array(l.llama_get_logits_ith(self.context, i), (self.vocab,))


def speed(a):
    model = Model(a.file, a.threads, a.batch, max(256, a.prompt + a.tokens))
    random = np.random.default_rng(1)
    prompts = random.integers(0, model.vocab - 1, (a.batch, a.prompt)).tolist()
    rounds = []
    for _ in range(6):
        model.clear()
        start = time.perf_counter()
        for s, prompt in enumerate(prompts):
            model.decode([(s, i, token) for i, token in enumerate(prompt)], {a.prompt - 1})
        first = time.perf_counter() - start
        times, last = [], [1] * a.batch
        for t in range(a.tokens - 1):
            start = time.perf_counter()
            model.decode([(s, a.prompt + t, last[s]) for s in range(a.batch)], set(range(a.batch)))
            last = [int(model.logits(s)[:-1].argmax()) for s in range(a.batch)]
            times.append(time.perf_counter() - start)
        rounds.append((1e3 * first, a.batch / statistics.median(times)))
    first, rate = (statistics.median(column) for column in zip(*rounds[1:]))  # the first round is a warm-up
    print(json.dumps({"first_token_ms": first, "tokens_per_s": rate}))


def loss(a):
    with open(a.ids) as file:
        texts = [[int(word) for word in line.split()] for line in file]
    model = Model(a.file, a.threads, 1, max(256, max(map(len, texts))))
    total, count = 0.0, 0
    for ids in texts:
        model.clear()
        for first in range(0, len(ids), 512):
            part = [(0, first + i, token) for i, token in enumerate(ids[first:first + 512])]
            model.decode(part, set(range(512)))
            for i in range(0 if first else 1, min(len(part), len(ids) - first - 1)):
                logits = model.logits(i).astype(np.float64)
                logits -= logits.max()
                total += np.log(np.exp(logits).sum()) - logits[ids[first + i + 1]]
                count += 1
    print(json.dumps({"loss": total / count, "tokens": count}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("make")
    command.add_argument("size", choices=SIZES)
    command.add_argument("file")
    command = commands.add_parser("convert")
    command.add_argument("folder")
    command.add_argument("file")
    command = commands.add_parser("quantize")
    command.add_argument("source")
    command.add_argument("target")
    command.add_argument("type", choices=TYPES)
    command = commands.add_parser("speed")
    command.add_argument("file")
    for name, value in (("prompt", 64), ("tokens", 48), ("batch", 1), ("threads", 2)):
        command.add_argument("--" + name, type=int, default=value)
    command = commands.add_parser("loss")
    command.add_argument("file")
    command.add_argument("ids")
    command.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    if a.command == "make":
        make(a.size, a.file)
        print(a.file)
    elif a.command == "convert":
        convert(a.folder, a.file)
        print(a.file)
    elif a.command == "quantize":
        quantize(a.source, a.target, a.type)
        print(a.target)
    elif a.command == "speed":
        speed(a)
    else:
        loss(a)


main()
