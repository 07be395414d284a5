"""Computes with qkv and with other packages in one process, and in processes that it starts.

usage: with_others.py PACKAGE...     imported in this order; one of them is qkv, others are numpy, torch and sklearn
"""

import importlib
import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np


def attention():
    import qkv

    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 4, 64, 32), np.float32)
    return float(qkv.attention(q, k, v, causal=True).sum())


def layer():
    """A layer whose products oneDNN computes."""
    from qkv import layers

    encoder = layers.Encoder(256, 4, 1024, layers=1)
    return float(np.abs(encoder(np.ones((2, 64, 256), np.float32))).sum())


def torch_attention():
    import qkv.torch
    import torch

    q, k, v = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 2, 4, 64, 32), np.float32))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    got = qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(expected, got, atol=1e-5)
    return float((torch.ones(512, 512) @ torch.ones(512, 512)).sum())


def clusters():
    from sklearn.cluster import KMeans

    points = np.random.default_rng(0).standard_normal((2000, 8))
    return float(KMeans(4, n_init=1, random_state=0).fit(points).inertia_)


WORK = {"qkv": [attention, layer], "torch": [torch_attention], "sklearn": [clusters], "numpy": []}


def compute(names):
    return [work() for name in names for work in WORK[name]]


def runtimes():
    """The OpenMP runtimes of this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in lines if "libgomp" in line or "libomp" in line})


def main(names):
    for name in names:
        importlib.import_module(name)
    first = compute(names)
    assert compute(names[::-1]) is not None and compute(names) == first
    # PyTorch and scikit-learn do not compute in a forked process after their own threads have started.
    for method, part in (("fork", ["qkv"]), ("spawn", names)):
        with multiprocessing.get_context(method).Pool(2) as pool:
            for result in pool.map_async(compute, [part] * 4).get(timeout=300):
                assert np.allclose(result, compute(part)), (method, result)
    threads = len(os.listdir("/proc/self/task"))
    print(f"{' '.join(names)}: numpy {np.__version__}, {threads} threads, OpenMP: {' '.join(map(os.path.basename, runtimes()))}")


if __name__ == "__main__":
    main(sys.argv[1:])
