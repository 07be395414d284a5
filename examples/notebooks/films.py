# %% [markdown]
# # Films
#
# Train a recommender on a log of who watched what and when, evaluate it, and ask why it recommends a film. The log is
# generated: 3,000 invented people who watch series in order. Training takes about a minute on two cores.

# %%
import csv
import subprocess
import sys

import qkv

subprocess.run([sys.executable, "../films/generate.py", "--out", "films"], check=True)
with open("films/titles.csv", encoding="utf-8", newline="") as file:
    title = {row["item"]: row["title"] for row in csv.DictReader(file)}
item = {name: key for key, name in title.items()}

# %%
result = qkv.train_recommender(
    "films/log.csv", "runs/films", preset="films", ffn=64, max_length=60, batch_tokens=4096, max_epochs=40)
print(result.steps, result.evaluation.measures)

# %% [markdown]
# Each user's last film was held out. HR@10 is the share of users for whom it is among the first ten of all films, and
# the popularity of films and a Markov chain show what is easy.

# %%
print(qkv.evaluate("runs/films"))

# %% [markdown]
# After two series in turn, the next parts of both:

# %%
recommender = qkv.Recommender("runs/films")
history = [item[f"{series}, Part {part}"] for part in (1, 2) for series in ("Golden Dragon", "Silent Harbour")]
answer = recommender.recommend(history, top=3, explain=True)
for found in answer.items:
    print(f"{found.score:7.3f}  {title[found.item]}")
    print("         ", ", ".join(f"{title[name]} {effect:+.2f}" for name, effect in zip(answer.read, found.effects)))

# %% [markdown]
# A new event changes the list at once, without training:

# %%
print([title[name] for name in recommender.recommend([*history, item["Golden Dragon, Part 3"]], top=3).names])

# %%
print([title[name] for name in recommender.similar(item["Golden Dragon, Part 1"], top=5).names])
