"""Writes the files of this folder with llama.cpp's Python package gguf: blocks of each type, models and tokenizers.

    python make.py        # needs gguf, sentencepiece, tokenizers, torch and transformers; written with gguf 0.19

    blocks.safetensors    for each type TYPE.bytes [N, bytes of a block] and TYPE.values [N, numbers of a block]
    MODEL.gguf            the models of ../transformers as llama.cpp's converter stores them, in float32
    quantized.gguf        a Llama with a tensor of every type, and quantized.safetensors: `ids` and `logits` of
                          transformers in float64, and `q` and `down`, two of its weights as gguf dequantizes them
    NAME.tokenizer.gguf   tokenizers without a model. Those of ../tokenizers have their ids there; spm.ids.json and
                          starcoder.ids.json are lists of texts and their ids
"""
import io
import json
import math
import pathlib

import gguf
import numpy as np
import sentencepiece
import tokenizers
import torch
import transformers as t
from gguf import GGMLQuantizationType as Type, TokenType
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent
SMALL = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0]
LARGE = [Type.Q4_K, Type.Q5_K, Type.Q6_K]
HALVES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
          Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}  # where blocks have float16 scales


def random_blocks(kind, count, rng, scale):
    """Blocks of random bits, whose float16 scales are finite."""
    blocks = rng.integers(0, 256, (count, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
    for at in HALVES[kind]:
        scales = (rng.standard_normal((count, 1)) * scale).astype(np.float16)
        blocks[:, at:at + 2] = scales.view(np.uint8)
    return blocks


def make_blocks():
    rng = np.random.default_rng(1)
    tensors = {}
    for kind in SMALL + LARGE:
        blocks = random_blocks(kind, 12, rng, 3.0)
        for i, bits in enumerate([0x0001, 0x83FF, 0x7BFF, 0x8000]):  # the least, subnormal, the largest, negative zero
            for at in HALVES[kind]:
                blocks[i, at:at + 2] = np.array([bits], np.uint16).view(np.uint8)
        tensors[kind.name + ".bytes"] = blocks
        tensors[kind.name + ".values"] = gguf.dequantize(blocks, kind).astype(np.float32)
    save_file(tensors, HERE / "blocks.safetensors")


def interleave(weight, heads):
    """llama.cpp's order of the rows of queries and keys of Llama."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def split_heads(weight, heads):
    """GPT-NeoX keeps queries, keys and values of each head together, llama.cpp all queries, then keys, then values."""
    return weight.reshape(heads, 3, -1, *weight.shape[1:]).swapaxes(0, 1).reshape(weight.shape)


LLAMA = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.dense": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.c_fc": "ffn_up",
         "mlp.c_proj": "ffn_down", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}
AROUND = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
          "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}  # Gemma, OLMo 2
FUSED = {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}  # Phi-3
GPT2 = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
        "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
NEOX = {"input_layernorm": "attn_norm", "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
        "post_attention_layernorm": "ffn_norm", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"}
OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "model.final_layernorm": "output_norm",
         "lm_head": "output", "transformer.wte": "token_embd", "transformer.wpe": "position_embd",
         "transformer.ln_f": "output_norm", "gpt_neox.embed_in": "token_embd", "embed_out": "output",
         "gpt_neox.final_layer_norm": "output_norm"}


def gguf_name(name, model_type=""):
    module, ending = name.rsplit(".", 1)
    if module in OUTER:
        return f"{OUTER[module]}.{ending}"
    parts = module.split(".")
    layer = next(i for i, part in enumerate(parts) if part.isdigit())
    names = GPT2 if parts[0] == "transformer" else NEOX if parts[0] == "gpt_neox" else LLAMA | FUSED
    if model_type in ("gemma2", "gemma3_text", "olmo2"):
        names = LLAMA | AROUND
    return f"blk.{parts[layer]}.{names['.'.join(parts[layer + 1:])]}.{ending}"


def converted(name, tensor, config):
    """The numbers of a tensor of transformers as llama.cpp's converter stores them."""
    if config.model_type == "gpt2" and tensor.ndim == 2 and ".h." in name:
        return tensor.T
    if config.model_type == "gpt_neox" and "query_key_value" in name:
        return split_heads(tensor, config.num_attention_heads)
    if config.model_type.startswith("gemma") and name.endswith("norm.weight"):
        return tensor + np.float32(1)
    if config.model_type in ("llama", "mistral", "smollm3") and ("q_proj" in name or "k_proj" in name):
        return interleave(tensor, config.num_attention_heads if "q_proj" in name else config.num_key_value_heads)
    return tensor


def add_config(w, c):
    """The metadata of a configuration of transformers."""
    heads, width = c.num_attention_heads, c.hidden_size
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(width)
    w.add_block_count(c.num_hidden_layers)
    w.add_feed_forward_length(getattr(c, "intermediate_size", None) or 4 * width)
    w.add_head_count(heads)
    w.add_vocab_size(c.vocab_size)
    if c.model_type not in ("gpt2", "gpt_neox"):
        w.add_head_count_kv(c.num_key_value_heads)
    if hasattr(c, "rms_norm_eps"):
        w.add_layer_norm_rms_eps(c.rms_norm_eps)
    else:
        w.add_layer_norm_eps(getattr(c, "layer_norm_eps", None) or getattr(c, "norm_epsilon", None)
                             or c.layer_norm_epsilon)
    if c.model_type == "gpt2":
        return
    head = getattr(c, "head_dim", None) or width // heads
    rope = c.rope_parameters
    if c.model_type.startswith("gemma"):
        w.add_key_length(head)
        w.add_value_length(head)
        w.add_sliding_window(c.sliding_window)
    if c.model_type == "gemma2":
        w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        w.add_final_logit_softcapping(c.final_logit_softcapping)
        return
    if c.model_type == "gemma3_text":
        w.add_sliding_window_pattern(3)
        w.add_rope_freq_base(rope["full_attention"]["rope_theta"])
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["full_attention"]["factor"])
        return
    w.add_rope_dimension_count(int(head * rope.get("partial_rotary_factor", 1)))
    w.add_rope_freq_base(rope["rope_theta"])
    if c.model_type == "phi3":
        w.add_rope_scaling_orig_ctx_len(c.original_max_position_embeddings)
    if c.model_type in ("llama", "mistral", "qwen3"):
        w.add_key_length(head)
        w.add_value_length(head)
    if c.model_type == "gpt_neox":
        w.add_parallel_residual(c.use_parallel_residual)
    if c.model_type in ("mistral", "starcoder2", "phi3"):
        w.add_sliding_window(c.sliding_window)
    if rope["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_divisors(rope, head))


def llama3_divisors(rope, width):
    divisors = []
    for j in range(width // 2):
        turns = rope["original_max_position_embeddings"] * rope["rope_theta"] ** (-2 * j / width) / (2 * math.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = min(max((turns - low) / (high - low), 0), 1)
        divisors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(divisors, np.float32)


def add_pieces(w, pieces, **special):
    """A tokenizer of SentencePiece: (text, score, type) of each piece."""
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list([piece[0] for piece in pieces])
    w.add_token_scores([piece[1] for piece in pieces])
    w.add_token_types([piece[2] for piece in pieces])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


CONTROL = [("<unk>", 0.0, TokenType.UNKNOWN), ("<s>", 0.0, TokenType.CONTROL), ("</s>", 0.0, TokenType.CONTROL)]
NAMES = {"gpt_neox": "gptneox", "phi": "phi2", "mistral": "llama", "gemma3_text": "gemma3"}


def fused(tensors):
    """The queries, keys and values of Phi in one tensor, as old files have them."""
    for name in [name for name in tensors if "q_proj" in name]:
        parts = [tensors.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
        tensors[name.replace("q_proj", "qkv_proj")] = np.concatenate(parts)
    return tensors


def make_model(name, to=None, change=lambda tensors: tensors):
    config = t.AutoConfig.from_pretrained(GOLDEN / "transformers" / name)
    w = gguf.GGUFWriter(HERE / f"{to or name}.gguf", NAMES.get(config.model_type, config.model_type))
    add_config(w, config)
    add_pieces(w, CONTROL + [(f"p{i}", 0.0, TokenType.NORMAL) for i in range(3, config.vocab_size)])
    for tensor, values in change(load_file(GOLDEN / "transformers" / name / "model.safetensors")).items():
        w.add_tensor(gguf_name(tensor, config.model_type), np.ascontiguousarray(converted(tensor, values, config)))
    finish(w)


def make_quantized():
    rng = np.random.default_rng(3)
    config = t.LlamaConfig(vocab_size=32, max_position_embeddings=64, hidden_size=256, intermediate_size=32,
                           num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                           bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
    torch.manual_seed(3)
    model = t.LlamaForCausalLM._from_config(config, attn_implementation="eager").eval()
    types = {"q_proj": Type.Q4_K, "k_proj": Type.Q5_K, "v_proj": Type.Q6_K, "o_proj": Type.Q4_0, "up_proj": Type.Q5_0,
             "gate_proj": Type.Q5_1, "down_proj": Type.Q4_1, "embed_tokens": Type.Q8_0, "lm_head": Type.BF16,
             "input_layernorm": Type.F32, "post_attention_layernorm": Type.F16, "norm": Type.F32}
    w = gguf.GGUFWriter(HERE / "quantized.gguf", "llama")
    add_config(w, config)
    add_pieces(w, CONTROL + [(f"p{i}", 0.0, TokenType.NORMAL) for i in range(3, config.vocab_size)])
    kept = {}
    for name, p in model.named_parameters():
        kind = types[name.split(".")[-2]]
        values = (rng.standard_normal(tuple(p.shape)) * 0.1 + ("norm" in name)).astype(np.float32)
        if kind in LARGE:
            rows = random_blocks(kind, p.shape[0] * p.shape[1] // 256, rng, 1e-4).reshape(p.shape[0], -1)
        else:
            rows = gguf.quantize(converted(name, values, config), kind)
        stored = gguf.dequantize(rows, kind).astype(np.float32).reshape(p.shape)
        w.add_tensor(gguf_name(name), rows, raw_dtype=kind)
        if "q_proj" in name or "k_proj" in name:  # back to the order of transformers
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            stored = stored.reshape(heads, -1, 2, p.shape[1]).swapaxes(1, 2).reshape(p.shape)
        if name.split(".")[-2] in ("q_proj", "down_proj"):
            kept[name.split(".")[-2].split("_")[0]] = np.ascontiguousarray(stored)
        p.data = torch.from_numpy(np.ascontiguousarray(stored))
    finish(w)
    ids = torch.randint(3, 32, (1, 24))
    with torch.no_grad():
        single, logits = model(ids).logits[0], model.double()(ids).logits[0]
    print("quantized: float32 is %.1e from float64" % ((single - logits).abs().max() / logits.abs().max()))
    save_file(kept | {"ids": ids[0].int().numpy(), "logits": logits.float().numpy()}, HERE / "quantized.safetensors")


def texts():
    return [case[0] for case in json.loads((GOLDEN / "tokenizers" / "gpt2.ids.json").read_text())]


def write_ids(name, encode):
    cases = [[text, encode(text)] for text in texts()]
    (HERE / f"{name}.ids.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


def make_sentencepiece():
    sentences = (GOLDEN.parent.parent / "examples" / "grammar" / "train.en").read_text().splitlines()[:3000]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, vocab_size=420, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, user_defined_symbols=["<|im_end|>"],
        minloglevel=2)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    kinds = [(sp.is_unknown, TokenType.UNKNOWN), (sp.is_control, TokenType.CONTROL), (sp.is_byte, TokenType.BYTE),
             (sp.is_unused, TokenType.UNUSED)]
    pieces = []
    for i in range(sp.get_piece_size()):
        kind = next((kind for has, kind in kinds if has(i)), TokenType.NORMAL)
        if sp.id_to_piece(i) == "<|im_end|>":
            kind = TokenType.USER_DEFINED
        pieces.append((sp.id_to_piece(i), sp.get_score(i), kind))
    w = gguf.GGUFWriter(HERE / "spm.tokenizer.gguf", "llama")
    add_pieces(w, pieces)
    w.add_eot_token_id(next(i for i, piece in enumerate(pieces) if piece[0] == "<|im_end|>"))
    finish(w)
    write_ids("spm", sp.encode)


def make_byte_level(name, pre, source, change=None):
    file = json.loads((GOLDEN / "tokenizers" / f"{source}.json").read_text())
    if change:
        change(file)
    pieces = sorted(file["model"]["vocab"], key=file["model"]["vocab"].get)
    kinds = [TokenType.NORMAL] * len(pieces)
    for token in file["added_tokens"]:
        assert token["id"] == len(pieces)
        pieces.append(token["content"])
        kinds.append(TokenType.CONTROL if token["special"] else TokenType.USER_DEFINED)
    w = gguf.GGUFWriter(HERE / f"{name}.tokenizer.gguf", "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list(pieces)
    w.add_token_types(kinds)
    w.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in file["model"]["merges"]])
    w.add_bos_token_id(420)
    w.add_eos_token_id(421 if len(pieces) > 421 else 420)
    finish(w)
    return tokenizers.Tokenizer.from_str(json.dumps(file))


def like_starcoder(file):
    file["normalizer"] = None
    file["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = False
    del file["added_tokens"][1:]  # GGUF does not store which tokens take the spaces around them


if __name__ == "__main__":
    make_blocks()
    for name in ["gemma2", "gemma3_text", "gpt2", "gpt_neox", "gpt_neox_sequential", "llama", "llama3", "mistral", "olmo2",
                 "phi", "phi3", "qwen2", "qwen3", "smollm3", "starcoder2"]:
        make_model(name)
    make_model("phi", "phi_fused", fused)
    make_quantized()
    make_sentencepiece()
    for name, pre in [("gpt2", "gpt-2"), ("llama3", "llama-bpe"), ("qwen2", "qwen2")]:
        make_byte_level(name, pre, name)
    starcoder = make_byte_level("starcoder", "starcoder", "digits", like_starcoder)
    write_ids("starcoder", lambda text: starcoder.encode(text, add_special_tokens=False).ids)
