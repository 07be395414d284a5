"""Averaged word vectors on the STS benchmark, the baseline of embeddings that `qkv train embed` trains: Spearman's rank
correlation x 100 on its dev rows. Prints a line of JSON for each kind of vectors.

    VENV/bin/python bench/peers/word_vectors.py --text FILE --dev ../shared/data/stsb/dev.csv [--run runs/encoder]

`VENV/bin/pip install gensim scipy sentencepiece safetensors` provides what it needs. word2vec (Mikolov et al., 2013) learns
vectors of the lower-case words of FILE, as many numbers as the encoder has. With --run, also the vectors of pieces at
the input of that encoder are averaged.
"""

import argparse
import csv
import json
import re
from pathlib import Path

import numpy
from gensim.models import Word2Vec
from scipy.stats import spearmanr


def words_of(text):
    return re.findall(r"\w+", text.lower())


def spearman(rows, vector_of):
    """vector_of(text) returns a vector. Zero vectors have the similarity 0."""
    pairs = numpy.array([[vector_of(row[side]) for row in rows] for side in (0, 1)])
    norms = numpy.maximum(numpy.linalg.norm(pairs, axis=2), 1e-12)
    similarities = (pairs[0] * pairs[1]).sum(1) / (norms[0] * norms[1])
    return 100 * spearmanr(similarities, [float(row[2]) for row in rows]).statistic


def mean_of(vectors, tokens):
    """Returns the mean of the vectors of known tokens."""
    known = [vectors[token] for token in tokens if token in vectors]
    return numpy.mean(known, axis=0) if known else numpy.zeros(vectors.vector_size)


def word_vectors(lines, width, skip_gram):
    return Word2Vec(lines, vector_size=width, window=5, min_count=2, sg=skip_gram, negative=10, epochs=20, workers=1, seed=1).wv


def input_vectors(run):
    """Returns a function that gives the tokens of a text, and the vectors of all tokens."""
    import sentencepiece
    from safetensors.numpy import load_file
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(run / "tokenizer.model"))
    lowercase = json.loads((run / "encoder.json").read_text())["lowercase"]
    table = load_file(run / "model.safetensors")["source_embedding.weight"]
    return lambda text: tokenizer.encode(text.lower() if lowercase else text), table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True, type=Path, help="lines to learn from")
    parser.add_argument("--dev", required=True, type=Path, help="CSV: sentence, sentence, score")
    parser.add_argument("--run", type=Path, help="run of an encoder")
    parser.add_argument("--width", type=int, default=128)
    options = parser.parse_args()
    with options.dev.open(newline="") as file:
        rows = list(csv.reader(file))
    lines = [words_of(line) for line in options.text.read_text().splitlines()]
    for name, skip_gram in (("skip-gram", 1), ("bag of words", 0)):
        vectors = word_vectors(lines, options.width, skip_gram)
        missing = sum(word not in vectors for row in rows for side in (0, 1) for word in words_of(row[side]))
        score = spearman(rows, lambda text: mean_of(vectors, words_of(text)))
        print(json.dumps({"vectors": f"word2vec, {name}", "spearman": score, "words left out": missing}), flush=True)
    if options.run:
        tokens_of, table = input_vectors(options.run)
        print(json.dumps({"vectors": "input of the encoder", "spearman": spearman(rows, lambda text: table[tokens_of(text)].mean(0))}))


if __name__ == "__main__":
    main()
