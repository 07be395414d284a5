#!/usr/bin/env python3
"""Trains RecBole's SASRec on a log of `user item` lines with the settings of its published runs, and evaluates it.

    VENV/bin/python bench/peers/recommend_recbole.py --data beauty.txt --threads 2 --epochs 300

`bench/peers/install.sh VENV recbole` creates VENV. Two layers of width 64, two heads, dropout 0.5, the softmax over all
items, Adam at 0.001, batches of 2,048 prefixes of histories of at most 50 events; ends after 10 epochs without a better
MRR@10. The last event of each user is the test and the one before it the validation, among all items. After every epoch
it prints a line of JSON: seconds of training so far and the measures of the validation; at the end those of the test.
"""

import json
import os
import sys
import tempfile
import time
import types
from pathlib import Path

import torch
from common import recommender_parser


def write_log(data, directory, most_users):
    """Writes the atomic file of RecBole; a line's number is its time."""
    users = {}
    (directory / "log").mkdir()
    with open(data, encoding="utf-8") as lines, open(directory / "log/log.inter", "w", encoding="utf-8") as out:
        out.write("user_id:token\titem_id:token\ttimestamp:float\n")
        for time_of_line, line in enumerate(lines):
            user, item = line.split()
            if most_users and users.setdefault(user, len(users)) >= most_users:
                continue
            out.write(f"{user}\t{item}\t{time_of_line}\n")


def main():
    parser = recommender_parser(__doc__, 300)
    a = parser.parse_args()
    for name in ("ray", "ray.tune", "plotly", "plotly.graph_objects"):  # imported by RecBole, used for tuning only
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].tune = sys.modules[name]
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.model.sequential_recommender import SASRec
    from recbole.trainer import Trainer
    from recbole.utils import init_seed

    torch.set_num_threads(a.threads)
    torch_load = torch.load
    torch.load = lambda *args, **kwargs: torch_load(*args, **{"weights_only": False, **kwargs})  # its own checkpoint
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_log(a.data, directory, a.users)
        os.chdir(directory)  # RecBole writes its logs into the current folder
        config = Config(model="SASRec", dataset="log", config_dict={
            "data_path": name, "checkpoint_dir": name, "show_progress": False, "state": "ERROR", "seed": 1,
            "USER_ID_FIELD": "user_id", "ITEM_ID_FIELD": "item_id", "TIME_FIELD": "timestamp",
            "load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "MAX_ITEM_LIST_LENGTH": 50,
            "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO", "group_by": "user", "mode": "full"},
            "train_neg_sample_args": None, "loss_type": "CE", "hidden_size": 64, "inner_size": 256, "n_layers": 2,
            "n_heads": 2, "hidden_dropout_prob": 0.5, "attn_dropout_prob": 0.5, "learning_rate": 0.001,
            "train_batch_size": 2048, "eval_batch_size": 512, "epochs": a.epochs, "stopping_step": 10,
            "metrics": ["Hit", "NDCG", "MRR"], "topk": [10], "valid_metric": "MRR@10"})
        init_seed(1, True)
        train, dev, test = data_preparation(config, create_dataset(config))
        trainer = Trainer(config, SASRec(config, train.dataset).to(config["device"]))
        seconds, begin = 0.0, time.perf_counter()

        def report(epoch, score):
            nonlocal seconds, begin
            seconds += time.perf_counter() - begin
            print(json.dumps({"epoch": epoch + 1, "seconds": round(seconds, 1), "dev MRR@10": float(score)}), flush=True)
            begin = time.perf_counter()

        best, measures = trainer.fit(train, dev, saved=True, show_progress=False, callback_fn=report)
        found = trainer.evaluate(test, load_best_model=True, show_progress=False)
        print(json.dumps({"seconds with evaluations": round(seconds, 1), "dev": dict(measures), "test": dict(found)}, default=float))


if __name__ == "__main__":
    main()
