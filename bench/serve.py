#!/usr/bin/env python3
"""Measures `qkv serve`, each row in turn with the command that does the same offline, and prints a Markdown table.

    python3 bench/serve.py --translator runs/m30k --text val.en --rows translate,overload,health
    python3 bench/serve.py --translator R --language R --encoder R --recommender R --text FILE     # all rows

A figure is the median of --rounds. The client shares the processors with the server. Rows whose model is not given are
left out. Rows with 64 clients need wrk (apt-get install wrk).
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import serve_faults  # noqa: F401  rows
import serve_rates  # noqa: F401  rows
import serve_soak  # noqa: F401  rows
from serve_load import ROWS


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--qkv", default="build/release/qkv", help="program (default: %(default)s)")
    add("--translator", help="run of a translator")
    add("--language", help="run of a language model")
    add("--encoder", help="run of an encoder")
    add("--recommender", help="run of a recommender")
    add("--text", help="file of sentences, one per line")
    add("--lines", type=int, default=256, help="number of sentences that are used (default: %(default)s)")
    add("--rows", default=",".join(ROWS), help="rows (default: %(default)s)")
    add("--rounds", type=int, default=3, help="rounds of a row (default: %(default)s)")
    add("--seconds", type=float, default=10, help="seconds under load (default: %(default)s)")
    add("--length", type=int, help="exact length of translations in tokens, for random weights (default: that of the model)")
    add("--beam", type=int, default=5, help="beam of the translator (default: %(default)s)")
    add("--prompt", default="a", help="beginning of texts that are generated (default: %(default)s)")
    add("--tokens", type=int, default=128, help="tokens of texts that are generated (default: %(default)s)")
    add("--long-prompt", type=int, default=2000, help="tokens of the prompt of the row prompt (default: %(default)s)")
    add("--requests", type=int, default=1_000_000, help="requests of the row soak (default: %(default)s)")
    add("--minutes", type=float, default=60, help="time of the row soak-mixed (default: %(default)s)")
    add("--rate", type=float, default=20, help="requests per second of soak-mixed (default: %(default)s)")
    add("--slow-readers", type=float, default=0.5, help="their percentage in soak-mixed (default: %(default)s)")
    add("--drains", type=int, default=20, help="repetitions of the row drain (default: %(default)s)")
    add("--connections", type=int, default=1000, help="connections of idle and slowloris (default: %(default)s)")
    add("--offline-workers", default="1,2",
        help="values of qkv translate --workers; the best counts (default: %(default)s)")
    add("--server", default="", help="further options of qkv serve, as one text")
    return parser.parse_args()


def items_of(run):
    """Ids of items of a recommender."""
    value = json.loads(Path(run, "items.json").read_text())
    names = value if isinstance(value, list) else next(v for v in value.values() if isinstance(v, list))
    return [name if isinstance(name, str) else name["item"] for name in names[:1000]]


def main():
    a = options()
    a.server = a.server.split()
    a.offline_workers = [int(n) for n in a.offline_workers.split(",")]
    a.any = a.translator or a.language or a.encoder or a.recommender
    a.items = items_of(a.recommender) if a.recommender else []
    a.sentences = Path(a.text).read_text(encoding="utf-8").splitlines()[:a.lines] if a.text else []
    unknown = set(a.rows.split(",")) - set(ROWS)
    if unknown or not a.any:
        sys.exit(f"unknown rows {', '.join(sorted(unknown))} (choose from {', '.join(ROWS)})" if unknown else
                 "give at least one model")
    print("| row | what | to reach | measured |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        a.folder = Path(folder)
        for name in a.rows.split(","):
            function, needs = ROWS[name]
            if all(getattr(a, need) for need in needs):
                print(f"| {name} | {' | '.join(function(a))} |", flush=True)


if __name__ == "__main__":
    main()
