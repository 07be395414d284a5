"""Writes the models of this folder: small random ones of transformers, with their logits and generated ids.

    python make.py [NAME ...]        # all by default; needs torch and transformers; written with 2.15 and 5.23

NAME/ holds the files of save_pretrained() and expected.safetensors: `ids` [T], `logits` [T, V], `generated` [20]. The
logits are those of float64, rounded; the script prints by how much those of float32 differ, relative to the largest.
"""
import pathlib
import shutil
import sys

import torch
import transformers as t
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
V, T, MORE = 32, 24, 20
NEOX = dict(vocab_size=V, max_position_embeddings=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
            num_attention_heads=2, bos_token_id=1, eos_token_id=2)
GPT2 = dict(vocab_size=V, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2)
LLAMA = dict(vocab_size=V, max_position_embeddings=128, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
             num_attention_heads=2, num_key_value_heads=2, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
GROUPED = LLAMA | dict(num_attention_heads=4, num_key_value_heads=2, head_dim=8)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=100, rope_theta=10000.0)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0)
FEW_KEYS = LLAMA | dict(num_attention_heads=4, num_key_value_heads=2)
LINEAR = dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=1e6),
              sliding_attention=dict(rope_type="default", rope_theta=10000.0))
VISION = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=4, patch_size=2)
GEMMA3 = GROUPED | dict(num_hidden_layers=4, head_dim=6, sliding_window=6, query_pre_attn_scalar=12,
                        tie_word_embeddings=True)
MODELS = {
    "gpt_neox": t.GPTNeoXConfig(**NEOX, rotary_pct=0.25),
    "gpt_neox_sequential": t.GPTNeoXConfig(**NEOX, rotary_pct=0.5, use_parallel_residual=False, attention_bias=False),
    "phi": t.PhiConfig(**NEOX, partial_rotary_factor=0.5),
    "phi_grouped": t.PhiConfig(**NEOX | dict(num_attention_heads=4), num_key_value_heads=2, qk_layernorm=True),
    "gpt2": t.GPT2Config(**GPT2),
    "opt": t.OPTConfig(vocab_size=V, max_position_embeddings=64, hidden_size=16, ffn_dim=24, num_hidden_layers=2,
                       num_attention_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0),
    "llama": t.LlamaConfig(**LLAMA | dict(tie_word_embeddings=True, attention_bias=True, mlp_bias=True)),
    "llama3": t.LlamaConfig(**GROUPED, rope_parameters=LLAMA3),
    "mistral": t.MistralConfig(**GROUPED, sliding_window=6),
    "qwen2": t.Qwen2Config(**LLAMA | dict(num_key_value_heads=1), use_sliding_window=False),
    "starcoder2": t.Starcoder2Config(**GROUPED | dict(head_dim=4), sliding_window=6, use_bias=True),
    "qwen2_layers": t.Qwen2Config(**LLAMA | dict(num_hidden_layers=3), use_sliding_window=True, sliding_window=5,
                                  max_window_layers=1),
    "qwen3": t.Qwen3Config(**GROUPED | dict(head_dim=12), rope_parameters=YARN),
    "phi3": t.Phi3Config(**FEW_KEYS, sliding_window=7, pad_token_id=0, rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)),
    "olmo2": t.Olmo2Config(**FEW_KEYS),
    "smollm3": t.SmolLM3Config(**FEW_KEYS | dict(num_hidden_layers=5), pad_token_id=0),
    "gemma2": t.Gemma2Config(**GROUPED | dict(num_hidden_layers=3, tie_word_embeddings=True), sliding_window=6,
                             query_pre_attn_scalar=12, attn_logit_softcapping=2.0, final_logit_softcapping=3.0,
                             pad_token_id=0),
    "gemma3_text": t.Gemma3TextConfig(**GEMMA3, layer_types=["sliding_attention"] * 2 + ["full_attention"] +
                                      ["sliding_attention"], rope_parameters=LINEAR, pad_token_id=0),
    "gemma3": t.Gemma3Config(text_config=t.Gemma3TextConfig(**GEMMA3 | dict(num_hidden_layers=2), pad_token_id=0),
                             vision_config=VISION, mm_tokens_per_image=1, image_token_index=31, bos_token_id=1,
                             eos_token_id=2, pad_token_id=0),
}


def randomize(model):
    """Weights large enough that logits differ, norms around 1, biases other than 0."""
    torch.manual_seed(1)
    for name, p in model.named_parameters():
        norm = "norm" in name or ".ln_" in name
        p.data = torch.randn_like(p) * 0.3 + (1.0 if norm and name.endswith("weight") else 0.0)
        if norm and model.config.model_type.startswith("gemma"):  # multiplies by 1 + weight, here without rounding
            p.data = ((p.data - 1) * 1024).round() / 1024
    model.tie_weights()


def make(name, config):
    model = t.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    randomize(model)
    shutil.rmtree(HERE / name, ignore_errors=True)
    model.save_pretrained(HERE / name)
    torch.manual_seed(2)
    ids = torch.randint(3, V, (1, T))
    with torch.no_grad():
        # min_new_tokens: generation may not choose an end token.
        options = dict(do_sample=False, max_new_tokens=MORE, min_new_tokens=MORE, pad_token_id=0)
        generated = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, T:]
        single = model(ids).logits[0]
        logits = model.double()(ids).logits[0]
    error = (single - logits).abs().max() / logits.abs().max()
    print(f"{name}: float32 is {error:.1e} from float64, {sum(p.numel() for p in model.parameters())} parameters")
    tensors = {"ids": ids[0].int(), "logits": logits.float().contiguous(), "generated": generated.int()}
    save_file(tensors, HERE / name / "expected.safetensors")


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        make(name, MODELS[name])
