"""Writes the adapters of this folder: small random ones of PEFT for models of ../transformers, with their logits.

    python make.py [NAME ...]        # all by default; needs torch, transformers and peft; written with 2.15, 5.23 and 0.21

NAME/ holds the files of save_pretrained() and expected.safetensors: `ids` [T], and `logits` [T, V] of the model with the
adapter, computed in float64 and rounded.
"""
import json
import pathlib
import shutil
import sys

import peft
import torch
import transformers as t
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
V, T = 32, 24
ADAPTERS = {  # name: (model, configuration)
    "gpt2": ("gpt2", dict(r=3, lora_alpha=5, target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True)),
    "gpt_neox": ("gpt_neox", dict(r=2, lora_alpha=4, target_modules=["query_key_value", "dense"])),
    "llama_rslora": ("llama3", dict(r=2, lora_alpha=4, target_modules=["q_proj", "down_proj"], use_rslora=True,
                                    rank_pattern={"down_proj": 3})),
}


def make(name, base, options):
    source = HERE.parent / "transformers" / base
    model = t.AutoModelForCausalLM.from_pretrained(source, attn_implementation="eager").eval()
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options))
    torch.manual_seed(3)
    for parameter, p in model.named_parameters():
        if "lora_" in parameter:
            p.data = torch.randn_like(p) * 0.3
    shutil.rmtree(HERE / name, ignore_errors=True)
    model.save_pretrained(HERE / name)
    (HERE / name / "README.md").unlink(missing_ok=True)
    config = json.loads((HERE / name / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = base
    (HERE / name / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    torch.manual_seed(2)
    ids = torch.randint(3, V, (1, T))
    with torch.no_grad():
        logits = model.double()(ids).logits[0]
        plain = t.AutoModelForCausalLM.from_pretrained(source).double()(ids).logits[0]
    print(f"{name}: the adapter changes logits by {(logits - plain).abs().max() / logits.abs().max():.2f} of the largest")
    save_file({"ids": ids[0].int(), "logits": logits.float().contiguous()}, HERE / name / "expected.safetensors")


if __name__ == "__main__":
    for name in sys.argv[1:] or ADAPTERS:
        make(name, *ADAPTERS[name])
