# %% [markdown]
# # Translate your own text
#
# Train a translator on two line-aligned files, translate with it, and look at its attention. The files here are the
# English and German sentences of `examples/grammar`; yours only need the same number of lines. It takes a few minutes
# on two cores.

# %%
from pathlib import Path

import qkv

text = Path("../grammar")
train = [text / "train.en", text / "train.de"]
dev = [text / "dev.en", text / "dev.de"]

# %% [markdown]
# `preset` sets all sizes, and every value can be given: the options are those of `qkv train translate`. Stop the cell
# and run it again: training continues where it was.

# %%
result = qkv.train_translator(
    train, dev, "runs/en-de", preset="tiny", encoder_layers=2, decoder_layers=2, dropout=0.1, vocab_size=4000,
    batch_tokens=2048, learning_rate=4e-3, warmup_steps=300, max_steps=900, eval_every=300)
print(result.steps, result.evaluation.measures)

# %% [markdown]
# Translations come best first. `beam` is the number of hypotheses that the search keeps.

# %%
translator = qkv.Translator("runs/en-de")
for found in translator.translate(["The old dog sees a cat.", "My sister reads a long book."], beam=4, n_best=2):
    print(found.source)
    for hypothesis in found.hypotheses:
        print(f"  {hypothesis.score:7.3f}  {hypothesis.text}")

# %% [markdown]
# BLEU of unseen sentences, equal to that of sacreBLEU:

# %%
source, reference = ((text / f"test.{side}").read_text(encoding="utf-8").splitlines()[:100] for side in ("en", "de"))
translations = [found.text for found in translator.translate(source, beam=4)]
print(qkv.bleu(translations, reference).score)

# %% [markdown]
# The attention of a translation, for each layer and head. In a notebook the map is shown as a page to explore.

# %%
found = translator.attend("The old dog sees a cat.")
print(found.merge_words().to_text("cross"))
