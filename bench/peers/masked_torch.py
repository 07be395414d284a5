"""Masked language modelling in PyTorch, as `qkv train encoder` does it: the same loss, AdamW, learning rates and
clipping. Dropout is off."""

import itertools
import math

import torch
from transformers import AutoModelForMaskedLM


def read_model(folder, dtype=torch.float32):
    """Returns an encoder of transformers with the parameters that qkv trains. qkv has no table of token types, so the
    first row of one is added to the positions. The vector of the padding token, which may be the end token, is trained
    too."""
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    model.get_input_embeddings().padding_idx = None
    embeddings = getattr(model.base_model, "embeddings", None)
    types = getattr(embeddings, "token_type_embeddings", None)
    if types is not None:
        embeddings.position_embeddings.weight.data += types.weight.data[0]
        types.weight.data.zero_()
        types.requires_grad_(False)
    return model


def loss_of(model, batch):
    """Returns the mean loss of the masked tokens of a batch. Texts of one length are computed together, without padding."""
    total, tokens = 0, 0
    by_length = sorted(batch, key=lambda text: len(text[0]))
    for _, group in itertools.groupby(by_length, key=lambda text: len(text[0])):
        group = list(group)
        labels = torch.full((len(group), len(group[0][0])), -100)
        for row, (_, places, expected) in zip(labels, group):
            row[places] = torch.tensor(expected)
        logits = model(input_ids=torch.tensor([ids for ids, _, _ in group])).logits
        total = total + torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        tokens += sum(len(places) for _, places, _ in group)
    return total / tokens


def learning_rate(recipe, step):
    """Returns the rate of a step, from 1: it rises over warmup_steps and falls to 0 as a cosine."""
    peak, warmup, last = (recipe[name] for name in ("learning_rate", "warmup_steps", "max_steps"))
    if step <= warmup:
        return peak * step / warmup
    return peak * (1 + math.cos(math.pi * (step - warmup) / max(1, last - warmup))) / 2


def clip(parameters, norm):
    """Scales the gradients to a norm of at most `norm`, without the 1e-6 that clip_grad_norm_ adds."""
    total = torch.sqrt(sum((p.grad.double()**2).sum() for p in parameters)).item()
    for p in parameters:
        p.grad *= min(1, norm / total)


def train(model, batches, recipe):
    """Yields the loss of each step of a recipe, the values of training.json."""
    assert recipe["optimizer"] == "adamw" and recipe["schedule"] == "cosine" and recipe["label_smoothing"] == 0
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, betas=(recipe["beta1"], recipe["beta2"]), eps=recipe["epsilon"],
                                  weight_decay=recipe["weight_decay"])
    for step in range(1, recipe["max_steps"] + 1):
        loss = loss_of(model, next(batches))
        loss.backward()
        clip([p for p in trained if p.grad is not None], recipe["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()
