"""Writes the checkpoints of this folder with torch.save, and their tensors to expected.safetensors.

    python make.py        # needs torch and safetensors; written with torch 2.15
"""
import collections
import pathlib

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
torch.manual_seed(1)
base = torch.randn(4, 6)
TENSORS = collections.OrderedDict(
    weight=base,
    tied=base,
    rows=base[1:3],
    columns=base[:, 2:4],
    transposed=base.t(),
    permuted=torch.randn(2, 3, 4).permute(2, 0, 1),
    scalar=torch.tensor(3.5),
    empty=torch.zeros(0, 3),
    half=torch.randn(3, 2).half(),
    bfloat16=torch.randn(5).bfloat16(),
    double=torch.randn(2, 2).double(),
    position_ids=torch.arange(7).expand(1, -1),
    int32=torch.arange(-2, 3, dtype=torch.int32),
    int16=torch.arange(-2, 3, dtype=torch.int16),
    int8=torch.arange(-2, 3, dtype=torch.int8),
    uint8=torch.arange(3, dtype=torch.uint8),
    mask=torch.ones(3, 3).tril().bool(),
    parameter=torch.nn.Parameter(torch.randn(2, 5)),
)
TENSORS._metadata = collections.OrderedDict({"": {"version": 1}, "layer": {"version": 2}})

OLD = dict(_use_new_zipfile_serialization=False)
torch.save(TENSORS, HERE / "zip.pt")
torch.save(TENSORS, HERE / "zip-protocol4.pt", pickle_protocol=4)
torch.save(dict(TENSORS), HERE / "old.pt", **OLD)
torch.save(TENSORS, HERE / "old-protocol4.pt", pickle_protocol=4, **OLD)
optimizer = {"state": {0: {"step": torch.tensor(7.0), "exp_avg": base * 2}}, "param_groups": [{"lr": 1e-3, "params": [0]}]}
lightning = {"epoch": 3, "global_step": 2**40, "pytorch-lightning_version": "2.0.0", "state_dict": TENSORS,
             "optimizer_states": [optimizer], "lr_schedulers": [], "dtype": torch.float32, "best": None}
torch.save(lightning, HERE / "lightning.ckpt")
plain = {name: tensor.detach().clone().contiguous() for name, tensor in TENSORS.items()}
save_file(plain, HERE / "expected.safetensors")
