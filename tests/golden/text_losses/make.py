"""Writes losses.json: losses of small vectors and logits with their gradients, from sentence-transformers and PyTorch.

python3 -m venv venv && venv/bin/pip install sentence-transformers==6.2.0 datasets && venv/bin/python make.py

Numbers are multiples of 1/8, so that they are the same in float and double. Losses are in float64, but those of lists,
which sentence-transformers computes in float32.
"""

import json
import math
import random
from importlib.metadata import version
from pathlib import Path

import torch
from sentence_transformers.cross_encoder import losses as list_losses
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.util import dot_score, pairwise_cos_sim, pairwise_dot_score
from torch import nn

ROWS, WIDTH = 4, 6
SCALE = 4.0
DRAW = random.Random(5)
SCORES = [0.75, 0.25, 0.25, 1.0]


def numbers(count, largest=16):
    """Random multiples of 1/8."""
    return [DRAW.randint(-largest, largest) / 8 for _ in range(count)]


class Given(nn.Module):
    """A model whose embeddings and scores are given."""

    num_labels = 1
    device = torch.device("cpu")
    scores = None

    def forward(self, features):
        if "scores" in features:
            return {"scores": self.scores}
        return {"sentence_embedding": features["given"]}

    def preprocess(self, pairs, **_):
        return {"scores": torch.zeros(len(pairs))}

    def get_embedding_dimension(self):
        return WIDTH


def vector_case(name, make, columns=2, kind="info_nce", scores=None, teacher_rows=0, widths=None, **options):
    """The loss that make(model) computes of random vectors."""
    vectors = [torch.tensor(numbers(ROWS * WIDTH), dtype=torch.float64).view(ROWS, WIDTH).requires_grad_() for _ in range(columns)]
    log_scale = torch.tensor(math.log(SCALE), dtype=torch.float64, requires_grad=True)
    teacher = torch.tensor(numbers(teacher_rows * WIDTH), dtype=torch.float64).view(teacher_rows, WIDTH)
    labels = torch.tensor(scores or [], dtype=torch.float64)
    if teacher_rows:
        labels = teacher if teacher_rows == ROWS else teacher.view(columns, ROWS, WIDTH).transpose(0, 1)
    loss = make(Given())
    if hasattr(loss, "scale"):
        loss.scale = log_scale.exp()
    if widths:
        loss = losses.MatryoshkaLoss(loss.model, loss, widths)
    value = loss([{"given": v} for v in vectors], labels)
    value.backward()
    return {"name": name, "kind": kind, "columns": columns, "width": WIDTH, "log_scale": log_scale.item(),
            "v": torch.cat([v.detach() for v in vectors]).flatten().tolist(), "scores": scores or [],
            "teacher": teacher.flatten().tolist(), "widths": widths or [], **options, "loss": value.item(),
            "dv": torch.cat([v.grad for v in vectors]).flatten().tolist(),
            "dlog_scale": 0.0 if log_scale.grad is None else log_scale.grad.item()}


def vector_cases():
    symmetric = losses.MultipleNegativesSymmetricRankingLoss
    return [
        vector_case("MultipleNegativesRankingLoss", losses.MultipleNegativesRankingLoss),
        vector_case("MultipleNegativesRankingLoss, two negatives", losses.MultipleNegativesRankingLoss, 4),
        vector_case("MultipleNegativesRankingLoss, dot", lambda m: losses.MultipleNegativesRankingLoss(m, similarity_fct=dot_score),
                    3, similarity="dot"),
        vector_case("MultipleNegativesSymmetricRankingLoss", symmetric, symmetric=True),
        vector_case("MultipleNegativesSymmetricRankingLoss, a negative", symmetric, 3, symmetric=True),
        vector_case("MatryoshkaLoss of MultipleNegativesRankingLoss", losses.MultipleNegativesRankingLoss, 3, widths=[6, 3, 2]),
        vector_case("CoSENTLoss", losses.CoSENTLoss, kind="cosent", scores=SCORES),
        vector_case("CoSENTLoss, dot", lambda m: losses.CoSENTLoss(m, similarity_fct=pairwise_dot_score), kind="cosent",
                    scores=SCORES, similarity="dot"),
        vector_case("MatryoshkaLoss of CoSENTLoss", losses.CoSENTLoss, kind="cosent", scores=SCORES, widths=[6, 4]),
        vector_case("CosineSimilarityLoss", losses.CosineSimilarityLoss, kind="cosine", scores=SCORES),
        vector_case("MarginMSELoss", losses.MarginMSELoss, 3, kind="margin_mse", scores=SCORES, similarity="dot"),
        vector_case("MarginMSELoss, cosine", lambda m: losses.MarginMSELoss(m, similarity_fct=pairwise_cos_sim), 3,
                    kind="margin_mse", scores=SCORES),
        vector_case("MSELoss", losses.MSELoss, 1, kind="distill", teacher_rows=ROWS),
        vector_case("MSELoss, two columns", losses.MSELoss, 2, kind="distill", teacher_rows=ROWS),
    ]


def label_case(name, kind, loss_of, labels=3, **targets):
    """The loss that loss_of computes of random logits."""
    z = torch.tensor(numbers(ROWS * labels, 24), dtype=torch.float64).view(ROWS, labels).requires_grad_()
    value = loss_of(z)
    value.backward()
    return {"name": name, "kind": kind, "labels": labels, "z": z.detach().flatten().tolist(), **targets,
            "loss": value.item(), "dz": z.grad.flatten().tolist()}


def softmax_case(name, smoothing, weights):
    """Class weights multiply the loss of a row, and the mean is over the rows."""
    targets = [2, 0, 1, 1]

    def loss_of(z):
        by_row = nn.CrossEntropyLoss(reduction="none", label_smoothing=smoothing)(z, torch.tensor(targets))
        return (by_row * torch.tensor([weights[t] if weights else 1.0 for t in targets])).mean()

    return label_case(name, "softmax", loss_of, targets=targets, smoothing=smoothing, weights=weights)


def weighted_sum_case(weights):
    """CrossEntropyLoss with its own weights, whose sum over the rows is that of softmax_case."""
    targets = [0, 2, 2, 1]
    loss = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float64), reduction="sum")
    return label_case("CrossEntropyLoss, its weights", "softmax", lambda z: loss(z, torch.tensor(targets)) / ROWS,
                      targets=targets, weights=weights)


def sigmoid_case(name, values, weights):
    def loss_of(z):
        pos_weight = torch.tensor(weights, dtype=torch.float64) if weights else None
        return nn.BCEWithLogitsLoss(pos_weight=pos_weight)(z, torch.tensor(values, dtype=torch.float64).view(z.shape))

    return label_case(name, "sigmoid", loss_of, values=values, weights=weights)


def list_case(name, kind, loss, values, groups):
    def loss_of(z):
        model = loss.model
        model.scores = z.view(-1)
        lengths = [end - begin for begin, end in zip(groups, groups[1:])]
        documents = [["text"] * length for length in lengths]
        labels = list(torch.tensor(values).split(lengths))
        return loss([["query"] * len(lengths), documents], labels)

    return label_case(name, kind, loss_of, 1, values=values, groups=groups)


def label_cases():
    squares = numbers(ROWS * 2)
    return [
        softmax_case("CrossEntropyLoss", 0.0, []),
        softmax_case("CrossEntropyLoss, label_smoothing", 0.125, []),
        softmax_case("CrossEntropyLoss, label_smoothing and weights of rows", 0.25, [0.5, 2.0, 1.25]),
        weighted_sum_case([0.5, 2.0, 1.25]),
        sigmoid_case("BCEWithLogitsLoss", [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.25, 0.75, 1.0, 1.0, 1.0, 0.5], []),
        sigmoid_case("BCEWithLogitsLoss, pos_weight", [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.25, 0.75, 1.0, 1.0, 1.0, 0.5],
                     [3.0, 0.5, 1.5]),
        label_case("MSELoss", "squared", lambda z: nn.MSELoss()(z, torch.tensor(squares, dtype=torch.float64).view(z.shape)), 2,
                   values=squares),
        list_case("RankNetLoss", "pairwise", list_losses.RankNetLoss(Given(), mini_batch_size=-1), [1.0, 0.0, 2.0, 1.0], [0, 4]),
        list_case("RankNetLoss, two lists", "pairwise", list_losses.RankNetLoss(Given(), mini_batch_size=-1), [1.0, 0.0, 0.5, 2.0], [0, 1, 4]),
        list_case("ListNetLoss", "listwise", list_losses.ListNetLoss(Given(), mini_batch_size=-1), [1.0, 0.0, 2.0, 1.0], [0, 4]),
        list_case("ListNetLoss, two lists", "listwise", list_losses.ListNetLoss(Given(), mini_batch_size=-1), [1.0, 0.0, 0.5, 2.0], [0, 1, 4]),
    ]


def main():
    """Writes the file next to this script."""
    content = {"sentence-transformers": version("sentence-transformers"), "torch": version("torch"), "rows": ROWS,
               "vectors": vector_cases(), "labels": label_cases()}
    Path(__file__).with_name("losses.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
