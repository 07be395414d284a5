"""PyTorch's side of train.py, decoder.py and encoder.py: measures the speed of training steps.

    python torch_training.py --model tiny|base|sasrec|sasrec-ce|lm-small|lm-med|encoder-tiny|bert-base [--threads 2]
        [--steps 20]

Prints JSON: target tokens per step, the median of the steps in milliseconds, and target tokens per second. PyTorch runs
at its best: tcmalloc, if it is installed, denormals flushed, fused attention, a fused optimizer, and layers that
compute queries, keys and values with one product and have no dropout of attention weights. Data are random.
"""

import argparse
import json
import math
import statistics
import time

from common import use_fast_malloc

use_fast_malloc()  # before PyTorch is loaded

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Attention of x to itself or, with cross, to a memory. Keys where the mask is false are hidden."""

    def __init__(self, width, heads, cross=False):
        super().__init__()
        self.heads = heads
        self.input = nn.Linear(width, width if cross else 3 * width)
        self.memory = nn.Linear(width, 2 * width) if cross else None
        self.output = nn.Linear(width, width)

    def forward(self, x, memory=None, mask=None, causal=False):
        B, T, width = x.shape
        parts = (self.input(x), *self.memory(memory).split(width, 2)) if self.memory else self.input(x).split(width, 2)
        q, k, v = (part.view(B, -1, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.output(y.transpose(1, 2).reshape(B, T, width))


class FeedForward(nn.Sequential):
    def __init__(self, width, inner, activation):
        super().__init__(nn.Linear(width, inner), activation, nn.Linear(inner, width))


class PostNormLayer(nn.Module):
    """A layer of the translator: of its encoder or, with cross, of its decoder."""

    def __init__(self, width, heads, inner, dropout, cross):
        super().__init__()
        self.attention = Attention(width, heads)
        self.cross = Attention(width, heads, cross=True) if cross else None
        self.feed_forward = FeedForward(width, inner, nn.ReLU())
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if cross else 2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask, memory=None):
        own = self.attention(x, causal=True) if self.cross else self.attention(x, mask=mask)
        x = self.norms[0](x + self.dropout(own))
        if self.cross:
            x = self.norms[1](x + self.dropout(self.cross(x, memory, mask)))
        return self.norms[-1](x + self.dropout(self.feed_forward(x)))


class Translator(nn.Module):
    """An encoder-decoder with sinusoidal positions, shared embeddings and label smoothing, trained with Adam."""

    def __init__(self, layers, width, heads, inner, vocabulary, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        angles = torch.arange(512)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).reshape(512, width))
        self.encoder = nn.ModuleList(PostNormLayer(width, heads, inner, dropout, False) for _ in range(layers))
        self.decoder = nn.ModuleList(PostNormLayer(width, heads, inner, dropout, True) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.width, self.vocabulary = width, vocabulary

    def make_optimizer(self):
        return torch.optim.Adam(self.parameters(), 1e-3, betas=(0.9, 0.98), fused=True)

    def make_batch(self, sentences, length):
        """Returns sentences of 8 to `length` tokens, with a mask that is true where they have one, and their number."""
        source = torch.randint(4, self.vocabulary, (sentences, length))
        target = torch.randint(4, self.vocabulary, (sentences, length + 1))
        mask = torch.arange(length)[None] < torch.linspace(8, length, sentences).long()[:, None]
        return (source, target[:, :-1], target[:, 1:].masked_fill(~mask, -100), mask), int(mask.sum())

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * math.sqrt(self.width) + self.positions[: ids.shape[1]])

    def forward(self, source, target, labels, mask):
        keys = mask[:, None, None]
        memory, y = self.embed(source), self.embed(target)
        for layer in self.encoder:
            memory = layer(memory, keys)
        for layer in self.decoder:
            y = layer(y, keys, memory)
        logits = y @ self.embedding.weight.T
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=0.1)


class PreNormLayer(nn.Module):
    """A causal layer."""

    def __init__(self, width, heads, inner, dropout, activation):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, heads)
        self.feed_forward = FeedForward(width, inner, activation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norms[0](x), causal=True))
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


class Decoder(nn.Module):
    """A language model or SASRec with learned positions, trained with AdamW. The loss is the cross-entropy of the
    softmax or, with bce, the binary cross-entropy with one sampled negative."""

    def __init__(self, layers, width, heads, inner, vocabulary, dropout, positions, activation, bce=False):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(PreNormLayer(width, heads, inner, dropout, activation) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.bce, self.vocabulary = bce, vocabulary

    def make_optimizer(self):
        return torch.optim.AdamW(self.parameters(), 1e-3, fused=True)

    def make_batch(self, sequences, length):
        """Returns inputs, labels and negatives, and the number of labels."""
        ids = [torch.randint(0, self.vocabulary, (sequences, length)) for _ in range(3)]
        return ids, sequences * length

    def forward(self, inputs, labels, negatives):
        x = self.embedding(inputs) + self.positions.weight[: inputs.shape[1]]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if not self.bce:
            return F.cross_entropy((x @ self.embedding.weight.T).flatten(0, 1), labels.flatten())
        right, wrong = ((x * self.embedding(ids)).sum(-1) for ids in (labels, negatives))
        return F.softplus(-right).mean() + F.softplus(wrong).mean()


class RotaryAttention(Attention):
    """Attention whose queries and keys are rotated by their positions."""

    def __init__(self, width, heads, positions):
        super().__init__(width, heads)
        frequencies = 10000 ** (-torch.arange(0, width // heads, 2) / (width // heads))
        angles = torch.outer(torch.arange(positions), frequencies).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, x):
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat((-second, first), -1) * self.sin

    def forward(self, x):
        B, T, width = x.shape
        q, k, v = (part.view(B, T, self.heads, -1).transpose(1, 2) for part in self.input(x).split(width, 2))
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v)
        return self.output(y.transpose(1, 2).reshape(B, T, width))


class RotaryLayer(PreNormLayer):
    def __init__(self, width, heads, inner, positions):
        super().__init__(width, heads, inner, 0.0, nn.GELU())
        self.attention = RotaryAttention(width, heads, positions)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class MaskedEncoder(nn.Module):
    """BERT, or with rotary positions and norms first encoder-tiny. Logits are computed for the masked tokens only."""

    def __init__(self, layers, width, heads, inner, vocabulary, length, rotary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = None if rotary else nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        if rotary:
            self.layers = nn.ModuleList(RotaryLayer(width, heads, inner, length) for _ in range(layers))
        else:
            self.layers = nn.ModuleList(PostNormLayer(width, heads, inner, 0.1, False) for _ in range(layers))
            for layer in self.layers:
                layer.feed_forward[1] = nn.GELU()
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.vocabulary = vocabulary

    def make_optimizer(self):
        return torch.optim.AdamW(self.parameters(), 1e-4, fused=True)

    def make_batch(self, sequences, length):
        tokens = sequences * length
        masked = torch.linspace(0, tokens - 1, int(0.15 * tokens)).long()
        inputs, labels = torch.randint(0, self.vocabulary, (sequences, length)), torch.randint(0, self.vocabulary, masked.shape)
        return (inputs, masked, labels), tokens

    def forward(self, inputs, masked, labels):
        x = self.embedding(inputs)
        if self.positions is not None:
            x = F.dropout(self.norm(x + self.positions.weight[: inputs.shape[1]]), 0.1)
        for layer in self.layers:
            x = layer(x) if self.positions is None else layer(x, None)
        h = x.flatten(0, 1)[masked]
        h = self.head(self.norm(h) if self.positions is None else h)
        return F.cross_entropy(h @ self.embedding.weight.T + self.bias, labels)


# name: a function that makes the model, sequences per batch, tokens per sequence
MODELS = {
    "tiny": (lambda: Translator(4, 128, 4, 256, 10000, 0.3), 256, 16),
    "base": (lambda: Translator(6, 512, 8, 2048, 16000, 0.1), 64, 16),
    "sasrec": (lambda: Decoder(2, 50, 1, 50, 3417, 0.2, 200, nn.ReLU(), bce=True), 128, 200),
    "sasrec-ce": (lambda: Decoder(2, 128, 2, 128, 3417, 0.2, 200, nn.ReLU()), 128, 200),
    "lm-small": (lambda: Decoder(4, 128, 4, 512, 65, 0.0, 64, nn.GELU()), 12, 64),
    "lm-med": (lambda: Decoder(6, 384, 6, 1536, 65, 0.2, 256, nn.GELU()), 16, 256),
    "encoder-tiny": (lambda: MaskedEncoder(4, 128, 4, 512, 8000, 128, rotary=True), 32, 128),
    "bert-base": (lambda: MaskedEncoder(12, 768, 12, 3072, 30000, 128, rotary=False), 16, 128),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, choices=MODELS, help="model and batch")
    parser.add_argument("--threads", type=int, default=2, help="number of threads (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="steps to time, after 3 others (default: %(default)s)")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    make, sequences, length = MODELS[a.model]
    model = make()
    optimizer = model.make_optimizer()
    batch, tokens = model.make_batch(sequences, length)
    seconds = []
    for _ in range(3 + a.steps):
        start = time.perf_counter()
        loss = model(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
    step = statistics.median(seconds[3:])
    print(json.dumps({"peer": "torch", "model": a.model, "target_tokens_per_step": tokens,
                      "median_step_ms": round(1e3 * step, 1), "target_tokens_per_s": round(tokens / step)}))


main()
