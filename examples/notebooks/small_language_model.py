# %% [markdown]
# # A small language model
#
# Train a language model of characters on plain text, and let it write. The text is the German side of
# `examples/grammar`; any other will do. It takes a few minutes on two cores.

# %%
import qkv

text = "../grammar/train.de"
losses = []
result = qkv.train_language_model(
    text, "runs/lm", preset="lm-small", max_steps=1000, eval_every=250, on_step=lambda step: losses.append(step.loss))
print(result.steps, result.evaluation.measures)
print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}")

# %% [markdown]
# A low temperature writes what is probable, a high one what is surprising.

# %%
generator = qkv.Generator("runs/lm")
for temperature in (0.2, 0.8, 1.2):
    print(f"--- temperature {temperature}")
    print(generator.generate("Der Hund", max_tokens=120, temperature=temperature, seed=1).text)

# %% [markdown]
# How sure is the model of each character, and what else would it have written?

# %%
for token in generator.generate("Der Hund", max_tokens=12, temperature=0, alternatives=3).tokens:
    others = [(other.text, round(other.log_probability, 2)) for other in token.alternatives]
    print(repr(token.text), round(token.log_probability, 2), others)

# %% [markdown]
# What does it look at? The last row is the attention of the last character.

# %%
kind = generator.attend("Der Hund sieht ").kinds["decoder"]
print(kind.weights.shape)  # layers, heads, rows, columns
print(list(zip(kind.columns, kind.weights[-1].mean(axis=0)[-1].round(2))))
