#!/usr/bin/env python3
"""Measures how long a training step of several ranks takes on links of limited speed, against a model.

Each rank has a machine of its own: a network namespace with a name, whose link to a bridge is limited by `tc tbf` in
both directions. Open MPI starts the ranks. The time of the exchange is that of a step less that of a step on links
without a limit. Needs root, the packages openmpi-bin and iproute2, and the kernel's tbf. Example:

  bench/cluster_exchange.py build/release/qkv --ranks 2 4 --rates 100 200 500 1000
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

TEXT = pathlib.Path(__file__).resolve().parent.parent / "examples/grammar"
NETWORK = "10.77.0"  # addresses of the machines: 10.77.0.1, …
SWITCH = "qkv-bench-switch"
EFFICIENCY = 0.94  # share of a link that carries data: without headers of Ethernet, IP and TCP
MESSAGE_SECONDS = 15e-6
# Starts a command on a machine, as ssh would: AGENT ADDRESS COMMAND…
AGENT = """#!/bin/sh
machine=${1##*.}; shift
exec ip netns exec "qkv-bench-$machine" unshare --uts sh -c "hostname c$machine && exec sh -c \\"\\$0\\"" "$*"
"""


def sh(command, **options):
    return subprocess.run(command.split(), check=True, capture_output=True, text=True, **options)


def limit(namespace, device, rate):
    """Limits what a device sends. `rate` is in Mbit/s; None removes the limit."""
    tc = f"ip netns exec {namespace} tc qdisc"
    subprocess.run(f"{tc} del dev {device} root".split(), capture_output=True)
    if rate:
        # The bucket holds two of the largest packets that Linux forms (64 KB), because tbf drops parts of larger ones.
        sh(f"{tc} add dev {device} root tbf rate {rate}mbit burst 128kb latency 100ms")


@contextlib.contextmanager
def machines(count):
    """Connects namespaces 1 to count by a bridge."""
    names = [SWITCH, *(f"qkv-bench-{i}" for i in range(1, count + 1))]
    remove = lambda: [subprocess.run(["ip", "netns", "del", name], capture_output=True) for name in names]
    remove()
    try:
        for name in names:
            sh(f"ip netns add {name}")
            sh(f"ip -n {name} link set lo up")
        sh(f"ip -n {SWITCH} link add bridge up type bridge")
        for i in range(1, count + 1):
            sh(f"ip -n qkv-bench-{i} link add eth0 type veth peer name port{i} netns {SWITCH}")
            sh(f"ip -n qkv-bench-{i} address add {NETWORK}.{i}/24 dev eth0")
            sh(f"ip -n qkv-bench-{i} link set eth0 up")
            sh(f"ip -n {SWITCH} link set port{i} master bridge up")
        yield
    finally:
        remove()


def step_seconds(a, folder, ranks, rate):
    """Returns the median time of a step, and the number of parameters."""
    for i in range(1, ranks + 1):
        limit(f"qkv-bench-{i}", "eth0", rate)
        limit(SWITCH, f"port{i}", rate)
    run = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "run"
    hosts = ",".join(f"{NETWORK}.{i}" for i in range(1, ranks + 1))
    mpirun = [folder / "agent", f"{NETWORK}.1", "mpirun.openmpi", "--allow-run-as-root", "-n", ranks, "--host", hosts,
              "--bind-to", "none", "--mca", "plm_rsh_agent", folder / "agent", "--mca", "btl", "tcp,self",
              "--mca", "btl_tcp_if_include", f"{NETWORK}.0/24", "--mca", "oob_tcp_if_include", f"{NETWORK}.0/24",
              "-x", "QKV_TRANSPORT"]
    train = [a.qkv.resolve(), "train", "translate", "--train", TEXT / "train.en", TEXT / "train.de",
             "--dev", TEXT / "dev.en", TEXT / "dev.de", "--shards", max(a.ranks), "--batch-tokens", a.batch_tokens,
             "--threads", 1, "--eval-every", 0, "--save-every", 0, "--max-steps", a.steps, "--out", run]
    done = subprocess.run([*map(str, mpirun + train)], capture_output=True, text=True,
                          env={**os.environ, "QKV_TRANSPORT": str(a.plugin.resolve())})
    if done.returncode != 0 or f"ranks: {ranks} on {ranks} hosts" not in done.stderr:
        sys.exit(f"{ranks} ranks, {rate} Mbit/s: {done.stderr}")
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    times = [step["target_tokens"] / step["tokens_per_second"] for step in steps if "tokens_per_second" in step]
    return statistics.median(times[1:]), (run / "model.safetensors").stat().st_size // 4


def model_seconds(ranks, rate, parameters):
    """Returns the time in which a rank sends its gradients and its weights to all others."""
    sent = 2 * (ranks - 1) / ranks * 4 * parameters
    return sent / (rate * 1e6 / 8 * EFFICIENCY) + 2 * (ranks - 1) * MESSAGE_SECONDS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv", type=pathlib.Path)
    parser.add_argument("--plugin", type=pathlib.Path, help="libqkv_mpi.so [default next to qkv]")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rates", type=int, nargs="+", default=[100, 200, 500, 1000], help="Mbit/s")
    parser.add_argument("--batch-tokens", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    a = parser.parse_args()
    a.plugin = a.plugin or a.qkv.resolve().parent / "libqkv_mpi.so"
    print("| ranks | link, Mbit/s | step, s | step without a limit, s | exchange, s | model, s | ratio |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, machines(max(a.ranks)):
        folder = pathlib.Path(name)
        (folder / "agent").write_text(AGENT)
        (folder / "agent").chmod(0o700)
        for ranks in a.ranks:
            free, parameters = step_seconds(a, folder, ranks, None)
            for rate in a.rates:
                step = step_seconds(a, folder, ranks, rate)[0]
                model = model_seconds(ranks, rate, parameters)
                print(f"| {ranks} | {rate} | {step:.3f} | {free:.3f} | {step - free:.3f} | {model:.3f} | "
                      f"{(step - free) / model:.2f} |", flush=True)
    print(f"\n{parameters:,} parameters; median of {a.steps - 1} steps")


if __name__ == "__main__":
    main()
