"""qkv.export_model, quantize, bleu and chrf, compared with the program and with known values."""

import json

import pytest

import qkv


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_exported_model_has_the_bytes_of_the_program(trained, run_program, tmp_path, dtype):
    line = run_program("export", trained, tmp_path / "program", "--dtype", dtype)[1]
    report = qkv.export_model(trained, tmp_path / "python", dtype=dtype)
    assert files(tmp_path / "python") == files(tmp_path / "program")
    assert line == f"{tmp_path}/program: {report.model_type} model, {report.parameters} parameters\n"


def test_a_quantized_run_has_the_bytes_of_the_program(trained, run_program, tmp_path):
    line = run_program("quantize", trained, "--int8", "--out", tmp_path / "program")[1]
    report = qkv.quantize(trained, tmp_path / "python")
    assert files(tmp_path / "python") == files(tmp_path / "program")
    assert f"{report.int8_matrices} matrices in 8 bits, {report.bytes / 2**20:.1f} MiB" in line
    assert report.out == str(tmp_path / "python") and report.bytes < report.bytes_before


def test_scores_match_the_program(run_program, tmp_path):
    hypotheses, references = ["The cat sat on the mat.", "A dog!"], ["the cat sat on a mat.", "A dog runs."]
    (tmp_path / "hypotheses").write_text("\n".join(hypotheses) + "\n")
    (tmp_path / "references").write_text("\n".join(references) + "\n")
    for lowercase in (False, True):
        for metric in ("bleu", "chrf"):
            wanted = json.loads(run_program("score", metric, "--ref", tmp_path / "references", "--hyp",
                                            tmp_path / "hypotheses", "--json", *["--lowercase"] * lowercase)[1])
            found = getattr(qkv, metric)(iter(hypotheses), references, lowercase=lowercase)
            if metric == "chrf":
                assert found == wanted["score"]
            else:
                assert vars(found) == {name: wanted[name] for name in vars(found)}


def test_scores_have_known_values():
    lines = ["The quick brown fox jumps."]
    assert qkv.bleu(lines, lines) == qkv.BleuScore(pytest.approx(100), [100] * 4, 1, 6, 6)
    assert qkv.chrf(lines, lines) == 100
    short = qkv.bleu(["the cat"], ["the cat sat down"])
    assert short.precisions[:2] == [100, 100] and short.brevity_penalty == pytest.approx(2.718281828**-1)
    assert qkv.bleu(["a b c d e"], ["a b c d f"]).score == pytest.approx(66.87403)
    assert str(qkv.bleu(["x"], ["y"])) == "0.00" and qkv.chrf(["x"], ["y"]) == 0


@pytest.mark.parametrize("call, message", [
    (lambda run: qkv.export_model("nowhere", "out"), "nowhere: is not a run directory"),
    (lambda run: qkv.export_model(run, run), "already exists"),
    (lambda run: qkv.export_model(run, "out", dtype="int8"), "dtype must be one of float32, float16, bfloat16 (is 'int8')"),
    (lambda run: qkv.quantize("nowhere"), "nowhere: is not a run directory"),
    (lambda run: qkv.quantize(run, run), "already exists"),
    (lambda run: qkv.quantize(run, "out", bits=3), "quantize: bits must be 4 or 8 (is 3)"),
    (lambda run: qkv.quantize(run, "out", bits=4), "has no linear layer of which the outputs are a multiple of 16"),
    (lambda run: qkv.bleu(["a"], []), "bleu: expected one reference per hypothesis (found 1 hypotheses and 0"),
    (lambda run: qkv.chrf([], ["a"]), "chrf: expected one reference per hypothesis (found 0 hypotheses and 1"),
    (lambda run: qkv.bleu("a", ["a"]), "hypotheses must be a list of str (is 'a')"),
    (lambda run: qkv.chrf(["a"], [None]), "references[0] must be a str (is None)"),
])
def test_errors_name_the_invalid_argument(trained, call, message):
    with pytest.raises(qkv.Error) as found:
        call(trained)
    assert message in str(found.value)
