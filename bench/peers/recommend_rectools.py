#!/usr/bin/env python3
"""Trains RecTools' SASRec on a log of `user item` lines, and evaluates it as `qkv evaluate` does.

    VENV/bin/python bench/peers/recommend_rectools.py --data beauty.txt --threads 2 --epochs 100

`bench/peers/install.sh VENV rectools` creates VENV. The settings are those published for Beauty with sampled softmax:
one block of width 64, 256 uniform negatives, dropout 0.2, the last 50 events, batches of 128 users, Adam at 0.001.
Every --every epochs it prints a line of JSON: seconds of training so far, and HR@10 and NDCG@10 on the validation (the
last but one event of each user) and on the test (the last one), among all items but those of the user before it.
"""

import json
import math
import time
import warnings

import pandas as pd
import pytorch_lightning as pl
import torch
from common import recommender_parser
from rectools.dataset import Dataset
from rectools.models import SASRecModel


def read(path, most_users):
    log = pd.read_csv(path, sep=" ", names=["user_id", "item_id"])
    log = log[log.user_id.isin(log.user_id.unique()[:most_users])] if most_users else log
    log["datetime"] = pd.to_datetime(range(len(log)), unit="s")  # lines are in the order of time
    log["weight"] = 1
    log["from_end"] = log.groupby("user_id").cumcount(ascending=False)
    return log


def score(model, log, held_out):
    """HR@10 and NDCG@10 of the event at place `held_out` from the end."""
    known = log[log.from_end > held_out]
    target = log[log.from_end == held_out].set_index("user_id").item_id
    users = [user for user in target.index if user in set(known.user_id)]
    found = model.recommend(users, Dataset.construct(known), k=10, filter_viewed=True, on_unsupported_targets="ignore")
    hits = found[found.item_id == found.user_id.map(target)]["rank"]
    return {"HR@10": len(hits) / len(target), "NDCG@10": sum(1 / math.log2(1 + rank) for rank in hits) / len(target)}


class Curve(pl.Callback):
    """Scores the model every few epochs; the time that takes does not count."""

    def __init__(self, model, log, every):
        self.model, self.events, self.every = model, log, every
        self.seconds, self.begin = 0.0, 0.0

    def on_train_epoch_start(self, trainer, module):
        self.begin = time.perf_counter()

    def on_train_epoch_end(self, trainer, module):
        self.seconds += time.perf_counter() - self.begin
        epoch = trainer.current_epoch + 1
        if epoch % self.every == 0:
            self.model().is_fitted = True
            module.eval()
            dev, test = (score(self.model(), self.events, held_out) for held_out in (1, 0))
            print(json.dumps({"epoch": epoch, "seconds": round(self.seconds, 1), "dev": dev, "test": test}), flush=True)
            module.train()


def main():
    parser = recommender_parser(__doc__, 100)
    parser.add_argument("--every", type=int, default=5, help="epochs between two evaluations")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="where to train (default: %(default)s)")
    a = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(a.threads)
    pl.seed_everything(1, verbose=False)
    log = read(a.data, a.users)
    models = []
    curve = Curve(lambda: models[0], log, a.every)

    def trainer():
        return pl.Trainer(max_epochs=a.epochs, accelerator=a.device, logger=False, enable_checkpointing=False,
                          enable_progress_bar=False, enable_model_summary=False, callbacks=[curve])

    models.append(SASRecModel(n_blocks=1, n_heads=1, n_factors=64, dropout_rate=0.2, session_max_len=50, lr=1e-3,
                              batch_size=128, loss="sampled_softmax", n_negatives=256,
                              recommend_torch_device="cuda" if a.device == "gpu" else "cpu", get_trainer_func=trainer))
    models[0].fit(Dataset.construct(log[log.from_end > 1]))


if __name__ == "__main__":
    main()
