# %% [markdown]
# # Classify texts
#
# Train a classifier from texts and their labels, look at its mistakes, and classify. The texts are English sentences of
# `examples/grammar`, the label is their tense. It takes about three minutes on two cores.

# %%
import collections
import pathlib
import re

import qkv


def tense(sentence):
    if re.search(r" will ", sentence):
        return "future"
    return "past" if re.search(r" (did|was|were|had|could|has|have|should|wanted) ", sentence) else "present"


texts = pathlib.Path("../grammar/train.en").read_text("utf-8").splitlines()
labels = [tense(text) for text in texts]
print(collections.Counter(labels))
pathlib.Path("runs").mkdir(exist_ok=True)
pathlib.Path("runs/tenses.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in zip(texts, labels)), "utf-8")

# %% [markdown]
# A classifier starts from an encoder, which has learned the words from plain text.

# %%
qkv.train_encoder("../grammar/train.en", "runs/english", lines=True, vocab_size=1000, max_steps=300, eval_every=100)
accuracies = []
result = qkv.train_classifier(
    "runs/tenses.tsv", "runs/tense", init="runs/english", learning_rate=1e-3, max_steps=300, eval_every=100,
    on_evaluation=lambda report: accuracies.append(report.measures["accuracy"]))
print(result.steps, result.evaluation.measures)
for accuracy in accuracies:
    print(f"{accuracy:.3f} " + "#" * round(50 * accuracy))

# %% [markdown]
# Sentences that the model has not seen, and what it takes for another tense.

# %%
classifier = qkv.Classifier("runs/tense")
test = pathlib.Path("../grammar/test.en").read_text("utf-8").splitlines()
found = [best[0] for best in classifier.classify(test)]
wrong = [(text, best) for text, best in zip(test, found) if best.label != tense(text)]
print(f"{1 - len(wrong) / len(test):.3f} of {len(test)} are right")
for text, best in wrong[:3]:
    print(best.label, round(best.score, 2), text)
