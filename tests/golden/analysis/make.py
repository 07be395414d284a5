"""Writes what PyTorch computes inside of models of ../transformers and ../bert, in float64, rounded to float32.

python3 -m venv venv && venv/bin/pip install torch transformers captum safetensors && venv/bin/python make.py

gpt2.safetensors, llama3.safetensors: of the language models
    ids [T]                          a text
    states [L + 1, T, d]             hidden states (output_hidden_states)
    attention [L, H, T, T]           attention weights
    lens [L + 1, T, V]               log p of the next token from each of them: the final norm and the output layer
    predicted [T]                    the next tokens; the last one is the most probable one
    log_p, baseline [T]              of them; baseline: with embeddings of zeros
    gradient, integrated [T, T]      captum's InputXGradient and IntegratedGradients (50 steps) of log p of each
    integrated_token [T, T]          the same, with all embeddings those of token 3 as the baseline
    corrupted [T]                    another text
    residual, attention_out, feed_forward [L + 1 or L, T], head [L, H]
                                     logit(answer) - logit(wrong) after the corrupted text, in which one output is that of
                                     the first text
    answer, wrong [1]                the most probable token after the first text, and another one after the corrupted
bert.safetensors: ids, states and attention of the encoder ../bert/sentence
"""

import pathlib

import torch
import transformers
from captum.attr import InputXGradient, IntegratedGradients
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
T, STEPS, BASELINE = 8, 50, 3


class Parts:
    """The modules of a language model."""

    def __init__(self, model):
        if hasattr(model, "transformer"):
            inner = model.transformer
            self.embedded, self.layers, self.norm = inner.drop, list(inner.h), inner.ln_f
            self.attention = [layer.attn for layer in self.layers]
            self.projection = [layer.attn.c_proj for layer in self.layers]
        else:
            inner = model.model
            self.embedded, self.layers, self.norm = inner.embed_tokens, list(inner.layers), inner.norm
            self.attention = [layer.self_attn for layer in self.layers]
            self.projection = [layer.self_attn.o_proj for layer in self.layers]
        self.feed_forward = [layer.mlp for layer in self.layers]
        self.states = [self.embedded, *self.layers]


def first(output):
    return output[0] if isinstance(output, tuple) else output


def record(model, ids, modules, inputs=False):
    """The outputs, or inputs, of modules in a pass over ids."""
    kept = {}
    take = (lambda i: lambda m, x: kept.__setitem__(i, x[0].clone())) if inputs else \
        (lambda i: lambda m, x, y: kept.__setitem__(i, first(y).clone()))
    hooks = [m.register_forward_pre_hook(take(i)) if inputs else m.register_forward_hook(take(i)) for i, m in enumerate(modules)]
    with torch.no_grad():
        model(ids)
    for hook in hooks:
        hook.remove()
    return kept


def patched(model, ids, module, change, inputs=False):
    """The logits after ids if change() replaces elements of the output, or input, of a module."""

    def hook(m, x, y=None):
        value = (x[0] if inputs else first(y)).clone()
        change(value)
        if inputs or isinstance(y, tuple):
            return (value, *(x if inputs else y)[1:])
        return value

    handle = module.register_forward_pre_hook(hook) if inputs else module.register_forward_hook(hook)
    with torch.no_grad():
        logits = model(ids).logits[0, -1]
    handle.remove()
    return logits


def patching(model, parts, clean, corrupted, heads):
    answer = model(clean).logits[0, -1].argmax().item()
    others = model(corrupted).logits[0, -1].detach().clone()
    others[answer] = -torch.inf
    wrong = others.argmax().item()
    score = lambda logits: logits[answer] - logits[wrong]
    found = {"answer": torch.tensor([answer]), "wrong": torch.tensor([wrong])}
    for name, modules in (("residual", parts.states), ("attention_out", parts.attention), ("feed_forward", parts.feed_forward)):
        kept = record(model, clean, modules)
        rows = []
        for i, module in enumerate(modules):
            for t in range(T):
                def change(value, i=i, t=t):
                    value[0, t] = kept[i][0, t]
                rows.append(score(patched(model, corrupted, module, change)))
        found[name] = torch.stack(rows).view(len(modules), T)
    kept = record(model, clean, parts.projection, inputs=True)
    rows = []
    for i, module in enumerate(parts.projection):
        for h in range(heads):
            def change(value, i=i, h=h):
                width = value.shape[-1] // heads
                value[0, :, h * width:(h + 1) * width] = kept[i][0, :, h * width:(h + 1) * width]
            rows.append(score(patched(model, corrupted, module, change, inputs=True)))
    found["head"] = torch.stack(rows).view(-1, heads)
    return found


def attributions(model, ids, predicted):
    embeddings = model.get_input_embeddings()(ids).detach()
    found = {"gradient": torch.zeros(T, T), "integrated": torch.zeros(T, T), "log_p": torch.zeros(T), "baseline": torch.zeros(T),
             "integrated_token": torch.zeros(T, T)}
    for t in range(T):
        def log_p(x, t=t):
            return model(inputs_embeds=x).logits[:, -1].log_softmax(-1)[:, predicted[t]]
        x = embeddings[:, :t + 1].clone().requires_grad_()
        found["log_p"][t], found["baseline"][t] = log_p(x).item(), log_p(torch.zeros_like(x)).item()
        found["gradient"][t, :t + 1] = InputXGradient(log_p).attribute(x)[0].sum(-1).detach()
        found["integrated"][t, :t + 1] = IntegratedGradients(log_p).attribute(x, n_steps=STEPS, method="gausslegendre")[0].sum(-1)
        token = model.get_input_embeddings().weight[BASELINE].detach().expand_as(x)
        found["integrated_token"][t, :t + 1] = IntegratedGradients(log_p).attribute(
            x, baselines=token, n_steps=STEPS, method="gausslegendre")[0].sum(-1)
    return found


def language_model(name):
    model = transformers.AutoModelForCausalLM.from_pretrained(HERE.parent / "transformers" / name, dtype=torch.float64,
                                                              attn_implementation="eager").eval()
    every = load_file(HERE.parent / "transformers" / name / "expected.safetensors")["ids"].long()
    ids, corrupted = every[None, :T], every[None, T:2 * T]
    parts = Parts(model)
    with torch.no_grad():
        out = model(ids, output_hidden_states=True, output_attentions=True)
        before_norm = [*out.hidden_states[:-1]]
        lens = [model.get_output_embeddings()(parts.norm(h))[0].log_softmax(-1) for h in before_norm] + [out.logits[0].log_softmax(-1)]
    predicted = torch.cat([ids[0, 1:], out.logits[0, -1:].argmax(-1)])
    return {"ids": ids[0], "states": torch.cat(out.hidden_states), "attention": torch.cat(out.attentions), "lens": torch.stack(lens),
            "predicted": predicted, "corrupted": corrupted[0], **attributions(model, ids, predicted.tolist()),
            **patching(model, parts, ids, corrupted, model.config.num_attention_heads)}


def encoder():
    path = HERE.parent / "bert/sentence"
    model = transformers.AutoModel.from_pretrained(path, dtype=torch.float64, attn_implementation="eager").eval()
    ids = load_file(path / "expected.safetensors")["ids"].long()[None, :T]
    with torch.no_grad():
        out = model(ids, output_hidden_states=True, output_attentions=True)
    return {"ids": ids[0], "states": torch.cat(out.hidden_states), "attention": torch.cat(out.attentions)}


def all_tensors():
    """The tensors of each file."""
    found = {"gpt2": language_model("gpt2"), "llama3": language_model("llama3"), "bert": encoder()}
    return {name: {key: (x.detach().float() if x.is_floating_point() else x.int()).contiguous() for key, x in tensors.items()}
            for name, tensors in found.items()}


if __name__ == "__main__":
    for name, tensors in all_tensors().items():
        save_file(tensors, HERE / f"{name}.safetensors")
