"""Writes the directories next to it: small random models for sequence classification in the Hugging Face layout, and
what transformers computes for a few texts and pairs of texts, in float64.

    python make.py [NAME…]      with torch and transformers; all directories by default

expected.json: labels, and for each input its text, pair or null, token ids, logits and scores. Inputs are truncated to
model_max_length of tokenizer_config.json, the longest text first. Scores are those of the pipeline of transformers.
"""

import json
import pathlib
import shutil
import sys

import torch
import transformers

HERE = pathlib.Path(__file__).parent
CHOSEN = sys.argv[1:]
LONGEST = 14
LETTERS = "abcdefgh"
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
         "max_position_embeddings": 16}
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
LONG = "h g f e d c b a h g f e d c b a"
INPUTS = [("a b c", None), ("", None), (LONG, None), ("a b", "c d"), ("a b", "a b"), ("", "e"), ("e", ""),
          (LONG, "a b"), ("a b c", LONG), (LONG, LONG), ("a b c d e f", "b c d e f"), ("a b c d e", "b c d e f"),
          ("a b c d e f", "g h a b c d")]


def randomize(model):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    for name, parameter in model.named_parameters():
        if "norm" in name.lower() and name.endswith("weight"):
            parameter.data += 1
    return model.eval()


def scores(config, logits):
    """As the pipeline "text-classification" computes them."""
    if config.problem_type == "regression":
        return logits
    if config.problem_type == "multi_label_classification" or config.num_labels == 1:
        return torch.sigmoid(logits)
    return torch.softmax(logits, -1)


def answer(model, tokenizer, text, pair):
    texts = [text] if pair is None else [text, pair]
    types = model.config.model_type not in ("distilbert", "mpnet", "modernbert")  # ALBERT was trained with types, which its tokenizer may omit
    encoded = tokenizer(*([text] for text in texts), truncation="longest_first", return_tensors="pt",
                        return_token_type_ids=types)
    with torch.no_grad():
        logits = model(**encoded).logits[0]
    return {"text": text, "pair": pair, "ids": encoded["input_ids"][0].tolist(), "logits": logits.tolist(),
            "scores": scores(model.config, logits).tolist()}


def write(name, model, files, tokenizer_class, **settings):
    directory = HERE / name
    randomize(model)
    if CHOSEN and name not in CHOSEN:
        return
    shutil.rmtree(directory, ignore_errors=True)
    model.save_pretrained(directory)
    for file, text in files.items():
        (directory / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": tokenizer_class.__name__, "model_max_length": LONGEST} | settings))
    tokenizer = tokenizer_class.from_pretrained(directory)
    model = model.double()
    labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
    answers = ",\n".join(json.dumps(answer(model, tokenizer, *texts)) for texts in INPUTS)
    (directory / "expected.json").write_text(f'{{"labels": {json.dumps(labels)}, "inputs": [\n{answers}]}}\n')
    for file in directory.iterdir():
        file.chmod(0o644)


def names(*labels):
    return {"num_labels": len(labels), "id2label": dict(enumerate(labels)),
            "label2id": {label: i for i, label in enumerate(labels)}}


def byte_pieces():
    """All bytes, as GPT-2 spells them, and letters with a space before them, for RoBERTa."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelt = [chr(byte) for byte in shown] + [chr(256 + i) for i in range(256 - len(shown))]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *spelt, *("\u0120" + letter for letter in LETTERS)]
    merges = "#version: 0.2\n" + "".join(f"\u0120 {letter}\n" for letter in LETTERS)
    return {"vocab.json": json.dumps({piece: i for i, piece in enumerate(pieces)}, ensure_ascii=False),
            "merges.txt": merges}, len(pieces)


def main():
    torch.manual_seed(2)
    word_pieces = {"vocab.txt": "".join(piece + "\n" for piece in BERT)}
    V = len(BERT)

    config = transformers.BertConfig(vocab_size=V, **SIZES, **names("negative", "neutral", "positive"))
    write("bert", transformers.BertForSequenceClassification(config), word_pieces, transformers.BertTokenizer)

    # A cross-encoder whose scores are logits.
    config = transformers.BertConfig(vocab_size=V, **SIZES, num_labels=1)
    config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.1.0"}
    write("cross", transformers.BertForSequenceClassification(config), word_pieces, transformers.BertTokenizer)

    files, count = byte_pieces()
    config = transformers.RobertaConfig(vocab_size=count, **(SIZES | {"max_position_embeddings": 18}), type_vocab_size=1,
                                        layer_norm_eps=1e-5, problem_type="multi_label_classification",
                                        **names("joy", "anger"))
    write("roberta", transformers.RobertaForSequenceClassification(config), files, transformers.RobertaTokenizer)

    config = transformers.DistilBertConfig(vocab_size=V, max_position_embeddings=16, dim=12, n_layers=2, n_heads=3,
                                           hidden_dim=20, **names("NEGATIVE", "POSITIVE"))
    write("distilbert", transformers.DistilBertForSequenceClassification(config), word_pieces,
          transformers.DistilBertTokenizer)

    config = transformers.ElectraConfig(vocab_size=V, embedding_size=8, **SIZES, num_labels=1, problem_type="regression")
    write("electra", transformers.ElectraForSequenceClassification(config), word_pieces, transformers.ElectraTokenizer)

    config = transformers.AlbertConfig(vocab_size=48, embedding_size=8, **SIZES,
                                       problem_type="single_label_classification", **names("no", "yes", "maybe", "never"))
    spiece = (HERE.parent / "bert/albert/spiece.model").read_bytes()
    write("albert", transformers.AlbertForSequenceClassification(config), {"spiece.model": spiece},
          transformers.AlbertTokenizer)

    pieces = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", *LETTERS]
    config = transformers.MPNetConfig(vocab_size=len(pieces), **(SIZES | {"max_position_embeddings": 18}),
                                      **names("contradiction", "entailment"))
    write("mpnet", transformers.MPNetForSequenceClassification(config),
          {"vocab.txt": "".join(piece + "\n" for piece in pieces)}, transformers.MPNetTokenizer)

    config = transformers.ModernBertConfig(
        vocab_size=V, max_position_embeddings=16, local_attention=4, num_hidden_layers=3, hidden_size=12,
        num_attention_heads=3, intermediate_size=20, pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2,
        eos_token_id=3, classifier_pooling="mean", **names("ham", "spam"))
    config._attn_implementation = "eager"
    write("modernbert", transformers.ModernBertForSequenceClassification(config), word_pieces, transformers.BertTokenizer)


main()
