"""Writes measures.json: random lists, targets and earlier events, with the measures that RecTools computes of them.

python3 -m venv venv && venv/bin/pip install rectools==0.19.0 && venv/bin/python make.py
"""

import json
import random
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from rectools import Columns
from rectools.metrics import (MAP, MRR, NDCG, AvgRecPopularity, CatalogCoverage, HitRate, MeanInvUserFreq, Precision,
                              Recall, calc_metrics)

USERS, ITEMS = 14, 60
MEASURES = {
    "HR": HitRate,
    "Recall": Recall,
    "Precision": Precision,
    "MRR": MRR,
    "MAP": MAP,
    "NDCG": lambda k: NDCG(k, divide_by_achievable=True),
    "NDCG_full": NDCG,
    "coverage": lambda k: CatalogCoverage(k, normalize=True),
    "MIUF": MeanInvUserFreq,
    "ARP": AvgRecPopularity,
}


def table(rows):
    """A data frame of the items of each user, with their ranks."""
    return pd.DataFrame([(user, item, rank + 1) for user, items in enumerate(rows) for rank, item in enumerate(items)],
                        columns=[Columns.User, Columns.Item, Columns.Rank])


def case(draw, most_targets):
    """One evaluation. User 0 has no list, user 1 a short one; items above 55 have no earlier event."""
    previous = [[min(int(draw.paretovariate(0.6)) - 1, 55) for _ in range(draw.randint(1, 12))] for _ in range(USERS)]
    lists = [draw.sample(range(ITEMS), length) for length in [0, 3] + [20] * (USERS - 2)]
    targets = [sorted(draw.sample(range(ITEMS), draw.randint(1, most_targets))) for _ in range(USERS)]
    for user in range(2, USERS, 2):  # hits near the top
        targets[user] = sorted({*targets[user][1:], lists[user][draw.randrange(9)]})
    metrics = {f"{name}@{k}": measure(k=k) for name, measure in MEASURES.items() for k in (5, 10, 20)}
    figures = calc_metrics(metrics, table(lists), table(targets), table(previous), list(range(ITEMS)))
    return {"previous": previous, "lists": lists, "targets": targets,
            "measures": {name: float(figures[name]) for name in metrics}}


def main():
    """Writes the file next to this script."""
    draw = random.Random(24)
    content = {"rectools": version("rectools"), "items": ITEMS, "cases": [case(draw, 6), case(draw, 1)]}
    Path(__file__).with_name("measures.json").write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
