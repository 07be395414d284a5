"""qkv.Embedder with an imported encoder, compared with the program."""

import importlib.util
import inspect
import pathlib
import subprocess
import sys
import threading

import pytest

import qkv

np = pytest.importorskip("numpy")
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/bert"
TEXTS = (GOLDEN / "texts.txt").read_text().split("\n")[:-1]


@pytest.fixture(scope="module")
def run(run_program, tmp_path_factory):
    run = tmp_path_factory.mktemp("embedder") / "run"
    run_program("import", GOLDEN / "sentence", run, "--tokens")
    return run


@pytest.fixture(scope="module")
def embedder(run):
    return qkv.Embedder(run)


def test_vectors_match_the_program(embedder, run, run_program, tmp_path):
    run_program("embed", run, "--file", GOLDEN / "texts.txt", "--npy", tmp_path / "vectors.npy")
    found = embedder.embed(iter(TEXTS))
    assert found.dtype == np.float32 and found.shape == (len(TEXTS), embedder.width)
    assert (found == np.load(tmp_path / "vectors.npy")).all()
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert embedder.embed([]).shape == (0, 12)


def test_options_match_the_program(embedder, run, run_program, tmp_path):
    options = ["--pooling", "first", "--no-normalize", "--prefix", "a ", "--max-length", 9, "--batch-tokens", 1]
    run_program("embed", run, "--file", GOLDEN / "texts.txt", "--npy", tmp_path / "vectors.npy", *options)
    with pytest.warns(UserWarning, match="2 of 6 texts had more than 9 tokens and were truncated"):
        found = embedder.embed(TEXTS, pooling="first", normalize=False, prefix="a ", max_length=9, batch_tokens=1)
    assert (found == np.load(tmp_path / "vectors.npy")).all()


def test_concurrent_calls_match_a_single_thread(embedder):
    texts = [" ".join("abcdefgh"[i * k % 8] for k in range(i % 12)) for i in range(600)]
    wanted = embedder.embed(texts)
    found = {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: embedder.embed(texts[i::4])})) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((found[i] == wanted[i::4]).all() for i in range(4))


PAIRS = [(f"{a} {b}", f"{b} {a} {c}") for a in "abcdefgh" for b in "abc" for c in "de"]


def test_hard_negatives_match_the_program(embedder, run, run_program, tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    run_program("embed", run, "--file", tmp_path / "pairs.tsv", "--negatives", tmp_path / "program.csv", "--max-length", 5,
                "--relative-margin", 0.02, "--negatives-per-row", 2, "--sample-from", 4)
    options = {"relative_margin": 0.02, "negatives_per_row": 2, "sample_from": 4, "max_length": 5}
    with pytest.warns(UserWarning) as warned:
        report = embedder.mine_hard_negatives(tmp_path / "pairs.tsv", tmp_path / "file.csv", **options)
    assert (tmp_path / "file.csv").read_bytes() == (tmp_path / "program.csv").read_bytes()
    assert 0 < report.written < report.rows == len(PAIRS) and report.negative_similarity < report.positive_similarity
    assert [str(warning.message) for warning in warned] == report.messages[1:-1]
    assert report.messages[1] == f"{tmp_path}/pairs.tsv: {report.rows - report.written} of {report.rows} rows are dropped: " \
        "they have fewer than 2 negatives within the margin"
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"answer": [b for _, b in PAIRS], "question": [a for a, _ in PAIRS]})
    with pytest.warns(UserWarning, match=r"^rows\.jsonl: "):
        embedder.mine_hard_negatives(table, tmp_path / "table.csv", columns=["question", "answer"], **options)
    assert (tmp_path / "table.csv").read_bytes() == (tmp_path / "program.csv").read_bytes()


@pytest.mark.parametrize("call, message", [
    (lambda e: e.embed("a"), "texts must be a list of str (is 'a')"),
    (lambda e: e.embed(["a", "\ud800"]), "texts[1] is not valid Unicode"),
    (lambda e: e.embed(["a"], pooling="sum"),
     "pooling must be one of mean, first, last, max, mean_sqrt_len, weighted_mean (is 'sum')"),
    (lambda e: e.embed(["a"], normalize=3), "normalize must be True or False (is 3)"),
    (lambda e: e.embed(["a"], prefix=3), "prefix must be a str (is 3)"),
    (lambda e: e.embed(["a"], max_length=2), "max_length must be between 3 and 16 (is 2)"),
    (lambda e: e.mine_hard_negatives("nowhere.csv", "x.csv"), "nowhere.csv: cannot be opened: No such file or directory"),
    (lambda e: e.mine_hard_negatives("nowhere.csv", "x.csv", columns="a"), "columns must be a list of str (is 'a')"),
    (lambda e: e.mine_hard_negatives("nowhere.csv", "x.csv", sample_from=1),
     "sample_from must be 0 or at least negatives_per_row, 3 (is 1)"),
    (lambda e: e.embed(["a"], batch_tokens=-1), "batch_tokens must be between 0 and 16777216 (is -1)"),
    (lambda e: qkv.Embedder("nowhere"), "nowhere: is not a run directory"),
])
def test_errors_name_the_invalid_argument(embedder, call, message):
    with pytest.raises(qkv.Error) as error:
        call(embedder)
    assert str(error.value).startswith(message)


def test_encode_has_the_parameters_of_sentence_transformers():
    named = list(inspect.signature(qkv.Embedder.encode).parameters)
    assert named == ["self", "sentences", "prompt_name", "prompt", "batch_size", "show_progress_bar", "output_value",
                     "precision", "convert_to_numpy", "convert_to_tensor", "device", "normalize_embeddings",
                     "truncate_dim", "pool", "chunk_size"]
    if not importlib.util.find_spec("sentence_transformers"):
        pytest.skip("needs sentence-transformers")
    code = ("import inspect, sentence_transformers as s\n"
            "print(*inspect.signature(s.SentenceTransformer.encode).parameters)")
    theirs = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [{"inputs": "sentences"}.get(name, name) for name in theirs[:len(named)]] == named


def test_encode_returns_the_vectors_of_embed(embedder):
    wanted = embedder.embed(TEXTS)
    assert (embedder.encode(TEXTS, batch_size=2, device="cpu") == wanted).all()
    assert (embedder.encode(TEXTS[0]) == wanted[0]).all() and embedder.encode(TEXTS[0]).shape == (embedder.width,)
    assert embedder.encode([]).shape == (0, embedder.width)
    assert (embedder.encode(TEXTS, prompt="a ", prompt_name="query") == embedder.embed(TEXTS, prefix="a ")).all()
    plain = embedder.encode(TEXTS, truncate_dim=8)
    assert (plain == wanted[:, :8]).all()
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    assert np.allclose(embedder.encode(TEXTS, truncate_dim=8, normalize_embeddings=True), plain / norms, atol=1e-6)
    assert (embedder.encode(TEXTS, normalize_embeddings=True) == embedder.embed(TEXTS, normalize=True)).all()
    bits = embedder.encode(TEXTS, precision="ubinary", truncate_dim=8)
    assert bits.dtype == np.uint8 and bits.shape == (len(TEXTS), 1)
    assert (np.unpackbits(bits, axis=1) == (plain > 0)).all()
    signed = embedder.encode(TEXTS, precision="binary", truncate_dim=8)
    assert signed.dtype == np.int8 and (signed.astype(int) + 128 == bits).all()


def test_encode_gives_tensors_and_progress(embedder, capsys):
    torch = pytest.importorskip("torch")
    wanted = embedder.embed(TEXTS)
    found = embedder.encode(TEXTS, convert_to_tensor=True)
    assert isinstance(found, torch.Tensor) and (found.numpy() == wanted).all()
    listed = embedder.encode(TEXTS, convert_to_numpy=False)
    assert [x.tolist() for x in listed] == wanted.tolist() and all(isinstance(x, torch.Tensor) for x in listed)
    assert embedder.encode(TEXTS[1], convert_to_tensor=True).shape == (embedder.width,)
    pytest.importorskip("tqdm")
    assert (embedder.encode(TEXTS, show_progress_bar=True) == wanted).all()
    assert "Batches: 100%" in capsys.readouterr().err


def test_vectors_of_langchain_are_lists(embedder):
    assert embedder.embed_documents(TEXTS) == embedder.embed(TEXTS).tolist()
    assert embedder.embed_query(TEXTS[0]) == embedder.embed(TEXTS[:1])[0].tolist()


@pytest.mark.parametrize("options, message", [
    ({"prompt_name": "query"}, 'prompt_name must not be set: the run has no prompts (is "query")'),
    ({"batch_size": 0}, "batch_size must be at least 1 (is 0)"),
    ({"output_value": "token_embeddings"}, "output_value must be sentence_embedding (is 'token_embeddings')"),
    ({"precision": "int8"}, "precision must be float32 or binary or ubinary (is 'int8')"),
    ({"device": "cuda"}, "device must be None or cpu (is 'cuda')"),
    ({"pool": {}}, "pool must be None (is {})"),
    ({"truncate_dim": 0}, "truncate_dim must be between 1 and 12 (is 0)"),
    ({"prompt": 3}, "prefix must be a str (is 3)"),
])
def test_encode_refuses_what_it_does_not_do(embedder, options, message):
    with pytest.raises(qkv.Error) as error:
        embedder.encode(["a"], **options)
    assert str(error.value) == message


def test_attention_has_the_weights_of_transformers(embedder):
    found = embedder.attend("a c b")
    kind = found.kinds["encoder"]
    assert list(found.kinds) == ["encoder"] and (found.source, found.target, kind.causal) == ("a c b", "", False)
    assert kind.rows == kind.columns == ["[CLS]", "a", "c", "b", "[SEP]"]
    assert np.allclose(kind.weights.sum(-1), 1, atol=1e-6)
    with pytest.raises(qkv.Error, match=r"text must have at most 16 tokens \(has 22\)"):
        embedder.attend(" ".join("a" * 20))
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model = transformers.AutoModel.from_pretrained(GOLDEN / "sentence", attn_implementation="eager").eval()
    names = (GOLDEN / "sentence/vocab.txt").read_text().split("\n")
    ids = torch.tensor([[names.index(piece) for piece in kind.rows]])
    with torch.no_grad():
        theirs = model(ids, output_attentions=True).attentions
    assert kind.weights.shape == (len(theirs), *theirs[0].shape[1:])
    assert np.allclose(kind.weights, torch.cat(theirs).numpy(), atol=1e-5)


def test_attention_of_other_runs_is_refused(trained):
    with pytest.raises(qkv.Error, match="^attend: the run is a translator or a language model, expected an encoder$"):
        qkv.Embedder(trained).attend("a")
