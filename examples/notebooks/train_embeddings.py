# %% [markdown]
# # Embeddings of your own text
#
# Train an encoder on plain text, then on pairs of texts that belong together, and search with it. The pairs are German
# sentences and their translations from `examples/grammar`. It takes about five minutes on two cores.

# %%
import pathlib

import numpy as np

import qkv

german, english = (pathlib.Path(f"../grammar/train.{side}").read_text("utf-8").splitlines() for side in ("de", "en"))
pathlib.Path("runs").mkdir(exist_ok=True)
pathlib.Path("runs/texts.txt").write_text("\n".join(english + german) + "\n", "utf-8")
qkv.train_encoder("runs/texts.txt", "runs/texts", lines=True, vocab_size=2000, max_steps=600, eval_every=200)

# %% [markdown]
# A row of the training data has a text and one that belongs to it. The texts of the other rows of a batch are those
# that do not.

# %%
pathlib.Path("runs/pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(german, english)), "utf-8")
recalls = []
result = qkv.train_embedder(
    "runs/pairs.tsv", "runs/embedder", init="runs/texts", learning_rate=1e-3, max_steps=600, eval_every=150,
    on_evaluation=lambda report: recalls.append(report.measures["recall@1"]))
print(result.steps, result.evaluation.measures)

# %% [markdown]
# The curve of the share of the sentences whose translation is the nearest of all.

# %%
for recall in recalls:
    print(f"{recall:.3f} " + "#" * round(50 * recall))

# %% [markdown]
# Search: the English sentences that are nearest to a German one, among those that the model has not seen.

# %%
embedder = qkv.Embedder("runs/embedder")
candidates = pathlib.Path("../grammar/test.en").read_text("utf-8").splitlines()
vectors = embedder.embed(candidates, normalize=True)
for query in pathlib.Path("../grammar/test.de").read_text("utf-8").splitlines()[:3]:
    scores = vectors @ embedder.embed([query], normalize=True)[0]
    print(query)
    for i in np.argsort(-scores)[:2]:
        print(f"  {scores[i]:.2f} {candidates[i]}")
