"""Saves small random models of every class that qkv reads as transformers 4 and 5 save them, imports each, and compares
ids, texts and vectors with those of transformers.

    python make.py save FOLDER [NAME…]  # once with transformers 4, once with 5: models, tokenizers, what they give
    python make.py check FOLDER QKV     # imports them with the program QKV; prints the table of docs/import.md
    python make.py keep FOLDER          # copies the tokenizers of SentencePiece families to this folder, for the tests

It needs torch, sentencepiece and protobuf. A model is also saved as pytorch_model.bin, in several files, and without
its head (the names have no prefix then); these must become the same run."""
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
GOLDEN = HERE.parent
TEXTS = ["the dog  sees </s> the cat", "Zürich café 你好 e\u0301 ﬁne", " a <mask> b<unk>", "hello\u00a0world  "]
TOKENIZERS_KEPT = ["llama", "gemma3", "xlm-roberta", "t5", "nllb", "mbart", "mbart50", "pegasus", "albert", "m2m_100"]
SMALL = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
             max_position_embeddings=64)
SEQ = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
           encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=64)


def sentencepiece(path, kind="unigram", size=150, **options):
    """A model with a few rules of nmt_nfkc, so that files are small."""
    import sentencepiece as s
    lines = (GOLDEN.parents[1] / "examples" / "grammar" / "train.en").read_text(encoding="utf-8").splitlines()[:400]
    lines += TEXTS * 3
    rules = path.with_suffix(".tsv")
    rules.write_text("A0\t20\nFB01\t66 69\n65 301\tE9\n9\t20\nA\t20\n", encoding="utf-8")
    model = io.BytesIO()
    if options.get("normalization_rule_name") != "identity":
        options["normalization_rule_tsv"] = str(rules)
    s.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, model_type=kind, vocab_size=size,
                                 hard_vocab_limit=False, minloglevel=3, **options)
    rules.unlink()
    path.write_bytes(model.getvalue())
    return s.SentencePieceProcessor(model_proto=model.getvalue())


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")


EXACT = dict(normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True, size=400)
T5_IDS = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)


def llama_files(path):
    sentencepiece(path / "tokenizer.model", "bpe", **EXACT)
    return "LlamaTokenizer", {"legacy": False, "add_bos_token": True}


def gemma_files(path):
    sentencepiece(path / "tokenizer.model", "bpe", add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
                  pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
                  user_defined_symbols=["<start_of_turn>", "<end_of_turn>", "\n\n", "  "], **EXACT)
    return "GemmaTokenizer", {"add_bos_token": True, "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>",
                              "unk_token": "<unk>"}


def fairseq_files(name):
    def files(path):
        sentencepiece(path / "sentencepiece.bpe.model")
        return name, {"src_lang": "en_XX", "tgt_lang": "de_DE"} if "Bart" in name else {}
    return files


def nllb_files(path):
    sentencepiece(path / "sentencepiece.bpe.model", "bpe")
    return "NllbTokenizer", {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn",
                             "additional_special_tokens": ["eng_Latn", "deu_Latn", "fra_Latn"],
                             "extra_special_tokens": ["eng_Latn", "deu_Latn", "fra_Latn"]}


def m2m_files(path):
    library = sentencepiece(path / "sentencepiece.bpe.model")
    names = ["<s>", "<pad>", "</s>", "<unk>"] + [library.id_to_piece(i) for i in range(3, library.get_piece_size())]
    write_json(path / "vocab.json", {name: i for i, name in enumerate(names)})
    return "M2M100Tokenizer", {"src_lang": "en", "tgt_lang": "de"}


def t5_files(path):
    sentencepiece(path / "spiece.model", **T5_IDS)
    return "T5Tokenizer", {"extra_ids": 5}


def pegasus_files(path):
    sentencepiece(path / "spiece.model", **T5_IDS)
    return "PegasusTokenizer", {}


def albert_files(path):
    sentencepiece(path / "spiece.model", pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]"],
                  user_defined_symbols=["[MASK]"])
    return "AlbertTokenizer", {}


def marian_files(path):
    names = ["</s>", "<unk>"]
    for side in ("source", "target"):
        library = sentencepiece(path / f"{side}.spm")
        names += [library.id_to_piece(i) for i in range(3, library.get_piece_size()) if library.id_to_piece(i) not in names]
    write_json(path / "vocab.json", {name: i for i, name in enumerate([*names, "<pad>"])})
    return "MarianTokenizer", {"source_lang": "en", "target_lang": "de"}


def golden_files(golden, name, **config):
    """A golden tokenizer as vocab.json and merges.txt, or vocab.txt."""
    def files(path):
        file = json.loads((GOLDEN / "tokenizers" / f"{golden}.json").read_text(encoding="utf-8"))
        vocabulary = dict(file["model"]["vocab"])
        if "merges" not in file["model"]:
            (path / "vocab.txt").write_text("".join(piece + "\n" for piece in sorted(vocabulary, key=vocabulary.get)),
                                            encoding="utf-8")
            return name, config
        for token in ("<|endoftext|>",) if "Roberta" not in name and "Bart" not in name else ("<s>", "<pad>", "</s>", "<unk>", "<mask>"):
            vocabulary.setdefault(token, len(vocabulary))
        write_json(path / "vocab.json", vocabulary)
        merges = [" ".join(m) if isinstance(m, list) else m for m in file["model"]["merges"]]
        (path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
        return name, config
    return files


def fast_files(golden, **config):
    """A golden tokenizer.json."""
    def files(path):
        shutil.copy(GOLDEN / "tokenizers" / f"{golden}.json", path / "tokenizer.json")
        return "PreTrainedTokenizerFast", config
    return files


gpt2 = golden_files("gpt2", "GPT2Tokenizer")
bert = golden_files("bert-uncased", "BertTokenizer")
roberta = golden_files("roberta", "RobertaTokenizer")
ends = dict(bos_token="<|endoftext|>", eos_token="<|endoftext|>")
DECODERS = {  # configuration, model, tokenizer, what differs in the configuration
    "llama": ("LlamaConfig", "LlamaForCausalLM", llama_files, {}),
    "mistral": ("MistralConfig", "MistralForCausalLM", llama_files, {}),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", llama_files, dict(pad_token_id=0)),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", gemma_files, dict(head_dim=8, eos_token_id=1, bos_token_id=2)),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM", gemma_files, dict(head_dim=8, eos_token_id=1, bos_token_id=2)),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", gpt2, dict(n_embd=16, n_layer=2, n_head=2, n_positions=64)),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", fast_files("digits", **ends), dict(rotary_pct=0.5)),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", gpt2, {}),
    "opt": ("OPTConfig", "OPTForCausalLM", gpt2, dict(ffn_dim=24, word_embed_proj_dim=16)),
    "phi": ("PhiConfig", "PhiForCausalLM", gpt2, {}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", golden_files("qwen2", "Qwen2Tokenizer"), {}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", golden_files("qwen2", "Qwen2Tokenizer"), dict(head_dim=8)),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", fast_files("llama3", **ends), dict(pad_token_id=0)),
    "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", gpt2, {}),
}
ENCODERS = {
    "bert": ("BertConfig", "BertModel", bert, {}),
    "distilbert": ("DistilBertConfig", "DistilBertModel", bert, dict(dim=16, hidden_dim=24, n_layers=2, n_heads=2)),
    "electra": ("ElectraConfig", "ElectraModel", bert, dict(embedding_size=8)),
    "mpnet": ("MPNetConfig", "MPNetModel", bert, {}),
    "roberta": ("RobertaConfig", "RobertaModel", roberta, dict(pad_token_id=1)),
    "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaModel", fairseq_files("XLMRobertaTokenizer"), dict(pad_token_id=1)),
    "albert": ("AlbertConfig", "AlbertModel", albert_files, dict(embedding_size=8)),
    "modernbert": ("ModernBertConfig", "ModernBertModel", fast_files("modernbert", cls_token="[CLS]", sep_token="[SEP]"),
                   dict(pad_token_id=0, global_attn_every_n_layers=2, local_attention=8)),
}
TRANSLATORS = {  # also the ids that decoding starts from, or their pieces; source and target language
    "bart": ("BartConfig", "BartForConditionalGeneration", golden_files("roberta", "BartTokenizer"), {}, ["</s>"], None),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", fairseq_files("MBartTokenizer"), {}, ["de_DE"], ("en_XX", "de_DE")),
    "mbart50": ("MBartConfig", "MBartForConditionalGeneration", fairseq_files("MBart50Tokenizer"), {}, ["</s>", "de_DE"],
                ("en_XX", "de_DE")),
    "nllb": ("M2M100Config", "M2M100ForConditionalGeneration", nllb_files, {}, ["</s>", "deu_Latn"], ("eng_Latn", "deu_Latn")),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration", m2m_files, {}, ["</s>", "__de__"], ("en", "de")),
    "marian": ("MarianConfig", "MarianMTModel", marian_files, {}, ["<pad>"], None),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", pegasus_files, {}, ["<pad>"], None),
    "t5": ("T5Config", "T5ForConditionalGeneration", t5_files,
           dict(d_kv=8, d_ff=24, num_layers=1, num_heads=2, relative_attention_num_buckets=8), ["<pad>"], None),
}


def randomize(model):
    import torch
    torch.manual_seed(1)
    for name, p in model.named_parameters():
        if p.requires_grad:
            p.data = torch.randn_like(p) * 0.3 + (1.0 if "norm" in name and name.endswith("weight") else 0.0)
    model.tie_weights()
    return model.eval()


def save_all(folder, names):
    import transformers
    version = f"v{transformers.__version__.split('.')[0]}"
    for name, case in {**DECODERS, **ENCODERS, **TRANSLATORS}.items():
        if names and name not in names:
            continue
        path = folder / version / name
        shutil.rmtree(path, ignore_errors=True)
        (path / "source").mkdir(parents=True)
        try:
            save(transformers, name, case, path)
        except Exception as error:  # a class that this version lacks, or cannot save
            print(version, name, "is not saved:", repr(error)[:300])
            shutil.rmtree(path)


def save(t, name, case, path):
    import torch
    config_class, model_class, files, own = case[:4]
    kind, config = files(path / "source")
    config.pop("additional_special_tokens" if t.__version__.startswith("5") else "extra_special_tokens", None)
    write_json(path / "source" / "tokenizer_config.json", {"tokenizer_class": kind, **config})
    fast = getattr(t, kind + "Fast", None) if not t.__version__.startswith("5") and not kind.endswith("Fast") else None
    tokenizer = (fast or getattr(t, kind)).from_pretrained(path / "source")
    sizes = {**SEQ, **own} if name in TRANSLATORS else {**SMALL, **own}
    ids = {key: tokenizer.convert_tokens_to_ids(token) for key, token in
           (("pad_token_id", tokenizer.pad_token), ("eos_token_id", tokenizer.eos_token), ("bos_token_id", tokenizer.bos_token))
           if token}
    tokens = max(len(tokenizer), *(i + 1 for i in getattr(tokenizer, "lang_token_to_id", {"": 0}).values()))
    config = getattr(t, config_class)(**{**ids, **sizes, "vocab_size": tokens + 3})
    start = [tokenizer.convert_tokens_to_ids(token) for token in case[4]] if name in TRANSLATORS else []
    if start:
        config.decoder_start_token_id = start[0]
        config.forced_eos_token_id = None
    torch.manual_seed(0)
    model = randomize(getattr(t, model_class)(config))
    if name in TRANSLATORS:
        model.generation_config = t.GenerationConfig.from_model_config(config)
        model.generation_config.forced_eos_token_id = None
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.data = torch.randn_like(model.final_logits_bias) * 0.3
    saved = path / "safetensors"
    model.save_pretrained(saved)
    tokenizer.save_pretrained(saved)
    small = [f for f in saved.iterdir() if not f.name.startswith("model")]
    tied = getattr(config, "tie_word_embeddings", True)
    for form in ("bin", "shards", *(["base"] if name in DECODERS and tied else [])):
        other = path / form
        if form == "base":
            model.base_model.save_pretrained(other)
        elif form == "bin":
            other.mkdir()
            torch.save(model.state_dict(), other / "pytorch_model.bin")
        else:
            model.save_pretrained(other, max_shard_size="8KB")
        for file in small:
            shutil.copy(file, other)
    expected = [expect(t, torch, name, model, tokenizer, text, start) for text in TEXTS]
    write_json(path / "expected.json", {"languages": case[5] if name in TRANSLATORS else None, "texts": expected})
    print(t.__version__, name, sorted(f.name for f in saved.iterdir()))


def expect(t, torch, name, model, tokenizer, text, start):
    ids = tokenizer(text)["input_ids"]
    tensor = torch.tensor([ids])
    result = {"text": text, "plain": tokenizer(text, add_special_tokens=False)["input_ids"]}
    with torch.no_grad():
        if name in ENCODERS:
            return result | {"vector": model(tensor).last_hidden_state[0].mean(0).tolist()}
        if name in DECODERS:
            out = model.generate(tensor, attention_mask=torch.ones_like(tensor), do_sample=False, max_new_tokens=8, pad_token_id=0)[0].tolist()
            decode = lambda i: tokenizer.decode(i, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            return result | {"whole": decode(out), "prompt": decode(ids)}
        forced = {"forced_bos_token_id": start[1]} if len(start) > 1 else {}
        out = model.generate(tensor, do_sample=False, num_beams=1, max_new_tokens=8, **forced)[0].tolist()[len(start):]
        if out[-1:] == [model.config.eos_token_id]:
            out.pop()
        languages = getattr(tokenizer, "id_to_lang_token", {})
        pieces = [languages.get(i) or (tokenizer.convert_ids_to_tokens(i) if i < len(tokenizer) else "") for i in out]
        return result | {"source": tokenizer.convert_ids_to_tokens(ids), "tokens": [p or "" for p in pieces],
                "most": 9 - len(start), "target": tokenizer.decode(out, skip_special_tokens=True, clean_up_tokenization_spaces=False)}


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True)


def check_all(folder, program):
    names = [*DECODERS, *ENCODERS, *TRANSLATORS]
    rows = {name: {v: check(folder / v / name, name, program) for v in ("v4", "v5")} for name in names}
    print("\n| saved model | transformers 4 | transformers 5 |\n|---|---|---|")
    for name, row in rows.items():
        print(f"| `{name}` | {row['v4']} | {row['v5']} |")


def check(path, name, program):
    if not (path / "expected.json").exists():
        return "not saved"
    expected = json.loads((path / "expected.json").read_text(encoding="utf-8"))
    good, out = [], path / "run"
    for form in ("safetensors", "bin", "shards", "base"):
        if not (path / form).exists():
            continue
        shutil.rmtree(out, ignore_errors=True)
        done = run(program, "import", str(path / form), str(out))
        problem = done.stderr.strip() if done.returncode else compare(name, out, program, expected)
        if problem:
            print(path.parent.name, name, form, problem)
        else:
            good.append(form)
    return ", ".join(good) or "refused"


def compare(name, out, program, expected):
    for case in expected["texts"]:
        text = case["text"]
        if "<" in text and name in ("m2m_100", "marian"):
            continue  # these have no tokenizer.json: special tokens are text for qkv
        if name in ENCODERS:
            found = run(program, "embed", str(out), "--pooling", "mean", "--no-normalize", "--json", text=text + "\n")
            if found.returncode:
                return found.stderr.strip()
            vector = json.loads(found.stdout)["vector"]
            worst = max(abs(a - b) for a, b in zip(vector, case["vector"]))
            if worst > 1e-4 * max(map(abs, case["vector"])):
                return f"{text!r}: vectors differ by {worst}"
        elif name in DECODERS:
            found = run(program, "generate", str(out), "--prompt", text, "--temperature", "0", "--max-tokens", "8", "--json")
            if found.returncode:
                return found.stderr.strip()
            got, want = json.loads(found.stdout)["text"], case["whole"][len(case["prompt"]):]
            if "\ufffd" not in want and got != want:  # all bytes near a wrong one become U+FFFD in transformers
                return f"{text!r}: {got!r}, expected {want!r}"
        else:
            languages = ["--from", expected["languages"][0], "--to", expected["languages"][1]] if expected["languages"] else []
            found = run(program, "translate", str(out), "--beam", "1", "--max-length", str(case["most"]), "--json", *languages, text=text + "\n")
            if found.returncode:
                return found.stderr.strip()
            got = json.loads(found.stdout)
            best = got["hypotheses"][0]
            if got["source_tokens"] != case["source"]:
                return f"{text!r}: {got['source_tokens']}, expected {case['source']}"
            if best["tokens"] != case["tokens"]:
                return f"{text!r}: {best['tokens']}, expected {case['tokens']}"
    return ""


def keep(folder):
    for version in ("v4", "v5"):
        for name in TOKENIZERS_KEPT:
            source, target = folder / version / name, HERE / version / name
            shutil.rmtree(target, ignore_errors=True)
            if not source.exists():
                continue
            target.mkdir(parents=True)
            for file in (source / "safetensors").iterdir():
                if file.suffix == ".json" and not file.name.startswith("model"):
                    value = json.loads(file.read_text(encoding="utf-8"))
                    if isinstance(value, dict):
                        value.pop("vocab_file", None)  # a path of this machine
                    write_json(target / file.name, value)
                elif file.suffix == ".model":
                    shutil.copy(file, target)
            expected = json.loads((source / "expected.json").read_text(encoding="utf-8"))
            write_json(target / "expected.json", {case["text"]: case["plain"] for case in expected["texts"]})


if __name__ == "__main__":
    command, folder, *others = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    if command == "save":
        save_all(folder, others)
    elif command == "check":
        check_all(folder, others[0])
    else:
        keep(folder)
