"""Writes what transformers and torch compute, in float64, for models that predict masked tokens.

    python make.py      with torch, transformers and safetensors

expected.json            for each model the ids of texts, the indices of the masked tokens of each text, their labels, and
                         the sum of the losses
NAME.safetensors         the gradients of this sum under the names of the weights, those of token types as zeros
electra, esm             models; the others are those of ../bert
"""

import json
import pathlib
import shutil
import tempfile

import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
BERT = HERE.parent / "bert"
WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]
ELECTRA = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
ESM = ["<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *WORDS]
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 16}
CLASSES = {"pretraining": "BertForMaskedLM", "roberta": "RobertaForMaskedLM", "distilbert": "DistilBertForMaskedLM",
           "mpnet": "MPNetForMaskedLM", "modernbert": "ModernBertForMaskedLM", "albert": "AlbertForMaskedLM",
           "electra": "ElectraForMaskedLM", "esm": "EsmForMaskedLM"}


def write_model(name, model, tokens):
    torch.manual_seed(1)
    for key, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter, std=0.3)
        if "norm" in key.lower() and key.endswith("weight"):
            parameter.data += 1
    model.save_pretrained(HERE / name)
    (HERE / name / "generation_config.json").unlink(missing_ok=True)
    (HERE / name / "vocab.txt").write_text("".join(token + "\n" for token in tokens))
    if name == "esm":  # without which it is not imported
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({token: i for i, token in enumerate(tokens)}, "<unk>"))
        words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        words.save(str(HERE / name / "tokenizer.json"))


def texts_of(name):
    own = HERE / name
    if own.exists():
        return [[0, 5, 4, 7, 2], [0, 12, 11, 4, 9, 8, 4, 6, 5, 2], [0, 4, 2]] if name == "esm" else \
            [[2, 5, 4, 7, 3], [2, 12, 11, 4, 9, 8, 4, 6, 5, 3], [2, 4, 3]]
    tensors = load_file(BERT / name / "expected.safetensors")
    ids, offsets = tensors["ids"].tolist(), tensors["offsets"].tolist()
    return [ids[begin:end] for begin, end in zip(offsets, offsets[1:])]


def answers(name):
    directory = HERE / name if (HERE / name).exists() else BERT / name
    model = getattr(transformers, CLASSES[name]).from_pretrained(directory, dtype=torch.float64, attn_implementation="eager").eval()
    texts, masked, labels, total = texts_of(name), [], [], 0
    for t, text in enumerate(texts):
        places = [i for i in range(len(text)) if (i + t) % 3 == 1]
        masked.append(places)
        labels.append([(text[i] * 5 + i + 3) % model.config.vocab_size for i in places])
        logits = model(input_ids=torch.tensor([text])).logits[0, places]
        total = total + torch.nn.functional.cross_entropy(logits, torch.tensor(labels[-1]), reduction="sum")
    total.backward()
    for key, parameter in model.named_parameters():
        zero = parameter.grad is None or "token_type" in key
        parameter.data = torch.zeros_like(parameter) if zero else parameter.grad
    with tempfile.TemporaryDirectory() as folder:
        model.float().save_pretrained(folder)
        shutil.copy(pathlib.Path(folder) / "model.safetensors", HERE / f"{name}.safetensors")
    return {"ids": texts, "masked": masked, "labels": labels, "loss": total.item()}


electra = transformers.ElectraConfig(vocab_size=len(ELECTRA), embedding_size=8, **SIZES)
write_model("electra", transformers.ElectraForMaskedLM(electra), ELECTRA)
esm = transformers.EsmConfig(vocab_size=len(ESM), position_embedding_type="rotary", pad_token_id=1, mask_token_id=4,
                             token_dropout=False, layer_norm_eps=1e-5, **SIZES)
write_model("esm", transformers.EsmForMaskedLM(esm), ESM)
(HERE / "expected.json").write_text(json.dumps({name: answers(name) for name in CLASSES}))
