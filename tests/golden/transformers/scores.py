"""Writes scores.json: log-probabilities of the tokens of a text by models of this folder, in windows with a stride.

    python scores.py        # needs torch and transformers; written with 2.15 and 5.24

The windows are those of "Perplexity of fixed-length models" in the documentation of transformers: each begins `stride`
tokens after the one before, reads `context` tokens, and scores those that no window before it contains. The first token
of a window has no score unless an earlier window contains it. `ids` begin with the start token. Computed in float64.
"""
import json
import pathlib
import random

import torch
import transformers

HERE = pathlib.Path(__file__).parent
WINDOWS = [(0, 0), (16, 8), (16, 16), (10, 3), (2, 1)]  # context and stride; 0: all tokens at once


def scores(model, ids, context, stride):
    """The log-probability of each token after the first one; None for one that no window scores."""
    context = context or len(ids)
    found, before = [None] * len(ids), 0
    for begin in range(0, len(ids), stride or context):
        end = min(begin + context, len(ids))
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids[begin:end]])).logits[0]
        log_p = torch.log_softmax(logits, -1)
        for place in range(max(before, begin + 1), end):
            found[place] = round(log_p[place - begin - 1, ids[place]].item(), 9)
        before = end
        if end == len(ids):
            break
    return found[1:]


def main():
    chosen = random.Random(1)
    cases = {}
    for name in ("gpt2", "llama", "gemma3_text"):
        model = transformers.AutoModelForCausalLM.from_pretrained(HERE / name, dtype=torch.float64).eval()
        ids = [1, 0, *(chosen.randrange(3, 32) for _ in range(56))]  # 0: the space before a text, which is no piece
        cases[name] = {"ids": ids, "windows": [{"context": c, "stride": s, "log_probabilities": scores(model, ids, c, s)}
                                               for c, s in WINDOWS]}
    (HERE / "scores.json").write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
