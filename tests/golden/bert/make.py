"""Writes the directories next to it: small random encoders in the Hugging Face layout, and the results of transformers
and torch for a few texts, in float64.

    python make.py [NAME…]      with torch, transformers, safetensors and sentencepiece; all directories by default

albert/spiece.model: a SentencePiece tokenizer; tokenized.json: lines and their ids by transformers' AlbertTokenizer

expected.safetensors: ids, offsets   the texts' tokens, one text after the other, [CLS] … [SEP]
                      hidden         [tokens, d], the last hidden states of each text alone
                      mean, first, last, normalized   [texts, d]: pooled, and the mean divided by its norm
"""

import io
import json
import pathlib
import sys

import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
TEXTS = ["a b c", "", "e", "h g f e d c b a h g", "a zzz a", "c c c c c b b"]
CHOSEN = sys.argv[1:]
WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
MPNET = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", *WORDS]
ALBERT = ["<pad>", "<unk>", *BERT[2:]]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *WORDS]
LINES = ["the cat sat on the mat", "a dog and a cat", "she said \"hello\" to the dog", "the end of the story"]
ODD_LINES = ["The CAT", "  sat   on ", "caf\u00e9 \u00c0 la m\u00f4de", "``hello'' said she", "\u4e2d dog", "", "\ufb01ne \u00bd"]
POOLING = {"word_embedding_dimension": 12, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
           "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
MODULES = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
           for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])]


def randomize(model):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    for name, parameter in model.named_parameters():
        if "norm" in name.lower() and name.endswith("weight"):
            parameter.data += 1
    return model.eval()


def expected(encoder, tokens, unknown, start, end):
    encoder = encoder.double()
    ids, offsets, hidden, pooled = [], [0], [], {"mean": [], "first": [], "last": []}
    for text in TEXTS:
        words = [tokens.index(word if word in tokens else unknown) for word in text.split()]
        ids += [tokens.index(start), *words, tokens.index(end)]
        with torch.no_grad():
            h = encoder(input_ids=torch.tensor([ids[offsets[-1]:]])).last_hidden_state[0]
        offsets.append(len(ids))
        hidden.append(h)
        pooled["mean"].append(h.mean(0)), pooled["first"].append(h[0]), pooled["last"].append(h[-1])
    tensors = {name: torch.stack(vectors) for name, vectors in pooled.items()}
    tensors["normalized"] = torch.nn.functional.normalize(tensors["mean"], dim=1)
    tensors["hidden"] = torch.cat(hidden)
    tensors = {name: tensor.float().contiguous() for name, tensor in tensors.items()}
    return tensors | {"ids": torch.tensor(ids, dtype=torch.int32), "offsets": torch.tensor(offsets, dtype=torch.int32)}


def chosen(name):
    return not CHOSEN or name in CHOSEN


def write(name, model, encoder, tokens, special, **save):
    if not chosen(name):
        return
    directory = HERE / name
    model.save_pretrained(directory, **save)
    (directory / "generation_config.json").unlink(missing_ok=True)
    if name == "roberta":
        (directory / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    else:
        (directory / "vocab.txt").write_text("".join(token + "\n" for token in tokens))
    save_file(expected(encoder, tokens, *special), directory / "expected.safetensors")


def with_old_names(directory):
    """Gives norms the names of old files."""
    old = lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    for file in directory.glob("model-*.safetensors"):
        save_file({old(key): tensor for key, tensor in load_file(file).items()}, file, {"format": "pt"})
    index = directory / "model.safetensors.index.json"
    index.write_text(old(index.read_text()))


def write_albert_tokenizer(directory):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 20), model_writer=model, vocab_size=60, model_type="unigram", pad_id=0, unk_id=1,
        bos_id=-1, eos_id=-1, pad_piece="<pad>", unk_piece="<unk>", control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        normalization_rule_name="identity", hard_vocab_limit=False, num_threads=1, minloglevel=3)
    (directory / "spiece.model").write_bytes(model.getvalue())
    tokenizer = transformers.AlbertTokenizer.from_pretrained(directory)
    ids = [tokenizer(line)["input_ids"] for line in LINES + ODD_LINES]
    (directory / "tokenized.json").write_text(json.dumps({"lines": LINES + ODD_LINES, "ids": ids}, ensure_ascii=False))


def main():
    torch.manual_seed(1)
    (HERE / "texts.txt").write_text("".join(text + "\n" for text in TEXTS))
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20}
    cls_sep = ("[UNK]", "[CLS]", "[SEP]")

    # As sentence-transformers keeps it.
    bert = transformers.BertConfig(vocab_size=len(BERT), max_position_embeddings=16, **sizes)
    model = randomize(transformers.BertModel(bert))
    write("sentence", model, model, BERT, cls_sep)
    if chosen("sentence"):
        directory = HERE / "sentence"
        (directory / "modules.json").write_text(json.dumps(MODULES))
        (directory / "1_Pooling").mkdir(exist_ok=True)
        (directory / "1_Pooling/config.json").write_text(json.dumps(POOLING))
        (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 14, "do_lower_case": False}))

    # With a prefix and heads, in several files, with the old names of norms, with a vocabulary padded with rows.
    bert = transformers.BertConfig(vocab_size=len(BERT) + 3, max_position_embeddings=16, hidden_act="gelu_new", **sizes)
    model = randomize(transformers.BertForPreTraining(bert))
    write("pretraining", model, model.bert, BERT, cls_sep, max_shard_size="6KB")
    if chosen("pretraining"):
        with_old_names(HERE / "pretraining")

    # Positions begin at 2; one row of token types; float16.
    roberta = transformers.RobertaConfig(vocab_size=len(ROBERTA), max_position_embeddings=18, type_vocab_size=1,
                                         layer_norm_eps=1e-5, **sizes)
    model = randomize(transformers.RobertaForMaskedLM(roberta)).half()
    write("roberta", model, model.roberta, ROBERTA, ("<unk>", "<s>", "</s>"))

    distilbert = transformers.DistilBertConfig(vocab_size=len(BERT), max_position_embeddings=16, dim=12, n_layers=2,
                                               n_heads=3, hidden_dim=20)
    model = randomize(transformers.DistilBertForMaskedLM(distilbert))
    write("distilbert", model, model.distilbert, BERT, cls_sep)

    # Positions begin at 2; a relative bias with the 32 buckets that MPNet always has.
    mpnet = transformers.MPNetConfig(vocab_size=len(MPNET), max_position_embeddings=18, **sizes)
    model = randomize(transformers.MPNetForMaskedLM(mpnet))
    write("mpnet", model, model.mpnet, MPNET, ("[UNK]", "<s>", "</s>"))

    # Texts are longer than the window of the local layers.
    torch.manual_seed(1)
    modernbert = transformers.ModernBertConfig(
        vocab_size=len(BERT), max_position_embeddings=16, local_attention=4, num_hidden_layers=4, hidden_size=12,
        num_attention_heads=3, intermediate_size=20, pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2,
        eos_token_id=3, rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 160000.0},
                                         "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}})
    modernbert._attn_implementation = "eager"
    model = randomize(transformers.ModernBertForMaskedLM(modernbert))
    write("modernbert", model, model.model, BERT, cls_sep)

    # Embeddings are narrower than the layers.
    electra = transformers.ElectraConfig(vocab_size=len(BERT), max_position_embeddings=16, embedding_size=8, **sizes)
    model = randomize(transformers.ElectraForPreTraining(electra))
    write("electra", model, model.electra, BERT, cls_sep)

    # The same, with shared layers and wider embeddings.
    albert = transformers.AlbertConfig(vocab_size=48, max_position_embeddings=16, embedding_size=20,
                                       **(sizes | {"num_hidden_layers": 3}))
    model = randomize(transformers.AlbertForMaskedLM(albert))
    write("albert", model, model.albert, ALBERT, ("<unk>", "[CLS]", "[SEP]"))
    if chosen("albert"):
        write_albert_tokenizer(HERE / "albert")


main()
