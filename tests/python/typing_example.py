"""Every name of the module, for mypy --strict."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qkv

Array = NDArray[np.float32]


def attend(q: Array, k: Array, v: Array) -> Array:
    out: Array = qkv.attention(q, k, v)
    both: tuple[Array, Array] = qkv.attention(q, k, v, causal=True, return_lse=True)
    with_weights: tuple[Array, Array] = qkv.attention(q, k, v, causal="top-left", return_weights=True)
    all_three: tuple[Array, Array, Array] = qkv.attention(
        q,
        k,
        v,
        mask=np.ones((3, 3), bool),
        scale=1,
        window=(None, 4),
        softcap=2.5,
        alibi=np.zeros(2, np.float32),
        q_offsets=np.array([0, 3], np.int32),
        k_offsets=[0, 3],
        return_lse=True,
        return_weights=True,
    )
    dq, dk, dv = qkv.attention_backward(out, q, k, v, *both, window=5)
    gradients: tuple[Array, Array, Array, Array] = qkv.attention_backward(
        out, q, k, v, out, both[1], mask=q, return_mask_grad=True
    )
    return np.asarray(dq + dk + dv + gradients[0] + with_weights[1] + all_three[2], np.float32)


def translate(run: Path) -> list[str]:
    translator = qkv.Translator(run)
    found: qkv.AttentionMap = translator.attend("A dog.", target=None)
    kind: qkv.AttentionKind = found.merge_words().kinds["cross"]
    weights: Array = kind.weights
    tokens: list[str] = kind.rows + kind.columns
    page: str = found.to_html() + found.to_json() + found.source + found.target + kind.name
    states: list[Array] = translator.encode(["A dog."]) + translator.logits(["A dog."], ["Ein Hund."], batch_tokens=9)
    own = qkv.AttentionMap(states[0], ["a"], columns=["b"], name="own", causal=True)
    page += own.to_text("own", layer=1, head=1)
    found_lines: list[qkv.Translation] = translator.translate(
        ["A dog.", page], beam=2, n_best=2, length_penalty=0.6, batch_tokens=100, on_token=show
    )
    best: qkv.Hypothesis = found_lines[0].hypotheses[0]
    pairs: list[tuple[int, int]] = best.alignment
    forced: list[qkv.Translation] = translator.score(["A dog."], [best.tokens], length_penalty=0)
    future = translator.translate_async(["A dog."], beam=1)
    lines: list[str] = [t.text for t in translator.stream(["A dog."])] + [t.text for t in future.result()]
    return lines + tokens + [str(weights.shape), str(kind.causal), str(pairs), str(forced[0].hypotheses[0].score)]


class Interactions:
    """A table with the method that those of pandas, polars and pyarrow have."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return requested_schema


def recommend(run: Path) -> list[str]:
    recommender = qkv.Recommender(run)
    history: list[str] = recommender.history(recommender.users[0]) + recommender.items[: recommender.max_length]
    times: list[int | None] = [None] * len(history)
    found: qkv.Recommendations = recommender.recommend(history, times=times, top=3, allow=None, deny=("x",), explain=True)
    every: list[qkv.Recommendations] = recommender.recommend_all([history, found.names], exclude_seen=False, allow=["x"])
    every.append(recommender.similar(found.names[0], top=3, where=["genre=comedy"], diversity=0.3))
    table = Interactions()
    recommended: Interactions = recommender.recommend_all(table, columns=["user", "item"], top=3)
    measures: Interactions = qkv.evaluate(table, next=2)
    several: Interactions = qkv.evaluate([table, recommended, measures], columns=["user", "item"])
    scores: dict[str, Any] = qkv.evaluate(run, users=None)
    logs: dict[str, Any] = qkv.evaluate([str(scores), str(several)])
    print(logs)
    basket: list[str] = recommender.basket(found.names) + recommender.messages
    best: qkv.Recommendation = every[0].items[0]
    return [best.item, str(best.score + sum(best.effects)), str(found.popular)] + basket + found.read + found.unknown


def embed(run: Path) -> Array:
    embedder = qkv.Embedder(run)
    vectors: Array = embedder.embed(["A dog."], pooling="mean", normalize=True, prefix="query: ")
    one: list[float] = embedder.embed_query("A dog.") + embedder.embed_documents(["A dog."])[0]
    weights: Array = embedder.attend("A dog.", prefix="").kinds["encoder"].weights
    same: Array = embedder.encode(["A dog."], normalize_embeddings=True)
    print(one, weights, same)
    return vectors[: embedder.width + embedder.max_length]


def generate(run: Path) -> list[str]:
    generator = qkv.Generator(run, cache_bytes=1 << 20)
    found: qkv.Generation = generator.generate("A dog", max_tokens=5, temperature=0, stop=["."], on_text=print)
    every: list[qkv.Generation] = generator.generate(["A", "B"], alternatives=2, batch=2, on_done=lambda i, text: print(i, text))
    token: qkv.GeneratedToken = every[0].tokens[0]
    other: qkv.TokenAlternative = token.alternatives[0]
    pieces: list[str] = list(generator.stream("A dog", seed=2))
    weights: Array = generator.attend("A dog", 3).kinds["decoder"].weights
    return pieces + [found.text, found.end, token.text, other.text, str(other.end or other.log_probability), str(weights)]


def train(text: Path) -> list[str]:
    found: qkv.TrainingResult = qkv.train_language_model(
        text, "runs/lm", unit="bytes", max_steps=10, freeze=["embedding"], config={"ffn": 64}, on_step=trained
    )
    qkv.train_translator([text, text], text, Path("runs/de"), memory="1G", dropout=0.1, progress=False, on_message=print)
    qkv.train_recommender([text], "runs/films", columns=["user", "item"], loss="bce", on_evaluation=evaluated)
    return [found.run, str(found.finished and found.steps), *found.messages]


def trained(report: qkv.StepReport) -> None:
    print(report.step, report.loss)


def evaluated(report: qkv.EvaluationReport) -> bool:
    measures: dict[str, float] = report.measures
    return measures["NDCG@10"] > report.baselines["markov"]["NDCG@10"]


def score(run: Path, lines: list[str]) -> float:
    exported: qkv.ExportReport = qkv.export_model(run, "exported", dtype="float16")
    small: qkv.QuantizeReport = qkv.quantize(run)
    bleu: qkv.BleuScore = qkv.bleu(lines, lines, lowercase=True)
    return bleu.score + qkv.chrf(lines, lines) + exported.parameters + small.bytes


def show(report: qkv.TokenReport) -> bool:
    print(report.line, report.token, report.log_probability)
    return report.last


def settings() -> Any:
    try:
        qkv.set_threads(qkv.threads())
    except qkv.Error as error:
        return str(error)
    return qkv.__version__ + qkv.active_isa()
