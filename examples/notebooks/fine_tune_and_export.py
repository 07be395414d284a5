# %% [markdown]
# # Fine-tune and export
#
# Adapt a translator to the words of a workshop, with all weights and with a low-rank adapter (LoRA), and write the
# result as a model of transformers. The base is the translator of the notebook "Translate your own text"; if there is
# none, it is trained first.

# %%
import subprocess
import sys
from pathlib import Path

import qkv

text = Path("../grammar")
base = qkv.train_translator(
    [text / "train.en", text / "train.de"], [text / "dev.en", text / "dev.de"], "runs/en-de", preset="tiny",
    encoder_layers=2, decoder_layers=2, dropout=0.1, vocab_size=4000, batch_tokens=2048, learning_rate=4e-3,
    warmup_steps=300, max_steps=900, eval_every=300)

# %% [markdown]
# A smaller corpus with the same grammar and other nouns:

# %%
subprocess.run([sys.executable, text / "generate.py", "--domain", "workshop", "--out", "workshop"], check=True)
train, dev = ([f"workshop/{split}.en", f"workshop/{split}.de"] for split in ("train", "dev"))

# %%
qkv.train_translator(train, dev, "runs/workshop", init="runs/en-de", learning_rate=1e-3, batch_tokens=2048,
                     max_steps=200)
qkv.train_translator(train, dev, "runs/adapter", init="runs/en-de", lora_rank=16, learning_rate=5e-3,
                     batch_tokens=2048, max_steps=200)

# %%
source, reference = (Path(f"workshop/test.{side}").read_text(encoding="utf-8").splitlines()[:100]
                     for side in ("en", "de"))
for run in ("en-de", "workshop", "adapter"):
    translations = [found.text for found in qkv.Translator(f"runs/{run}").translate(source, beam=4)]
    print(run, qkv.bleu(translations, reference).score)

# %% [markdown]
# `AutoModelForSeq2SeqLM.from_pretrained("workshop-marian")` of transformers reads the directory that is written here,
# and `qkv.quantize` makes a copy with weights in 8 bits.

# %%
print(qkv.export_model("runs/workshop", "workshop-marian"))
print(qkv.quantize("runs/workshop"))
