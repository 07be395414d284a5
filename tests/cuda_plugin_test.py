"""Checks the plugin for GPUs where it was built (QKV_CUDA=ON), and that nothing else links CUDA.

`tests/cuda_plugin_test.py --fix` writes the table of registers from the last build.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QKV = Path(os.environ.get("QKV", ROOT / "build/dev/qkv")).resolve()
PLUGIN = QKV.parent / "libqkv_cuda.so"
TABLE = ROOT / "plugins/cuda/registers.tsv"
HEAD = "kernel\tarchitecture\tregisters\tbytes of shared memory\tbytes of stack\tbytes of spills\n"
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                   r"(\d+) bytes spill loads.*?Used (\d+) registers([^\n]*)", re.DOTALL)

needs_plugin = pytest.mark.skipif(not PLUGIN.exists(), reason="the plugin for GPUs is not built (QKV_CUDA)")


def short(symbol):
    """The name of a kernel with its template arguments."""
    full = subprocess.run(["c++filt", symbol], check=True, capture_output=True, text=True).stdout.strip()
    full = full.replace("(anonymous namespace)::", "").replace("qkv::cuda::kernel::", "").replace("qkv::cuda::", "")
    return full.replace("qkv::", "").partition("(")[0].removeprefix("void ")


def rows():
    """Rows of the table from the messages of ptxas."""
    found = set()
    for log in (PLUGIN.parent / "cuda").glob("*.ptxas"):
        for symbol, architecture, stack, stores, loads, registers, rest in ENTRY.findall(log.read_text(encoding="utf-8")):
            shared = re.search(r"(\d+) bytes smem", rest)
            found.add((short(symbol), architecture, int(registers), int(shared[1]) if shared else 0, int(stack),
                       int(stores) + int(loads)))
    return sorted(found)


def compiler():
    cache = (PLUGIN.parent / "CMakeCache.txt").read_text(encoding="utf-8")
    nvcc = re.search(r"^QKV_NVCC:\w+=(.*)$", cache, re.MULTILINE)[1]
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return "nvcc " + re.search(r"V([\d.]+)", text)[1]


def table():
    return f"# {compiler()}\n{HEAD}" + "".join("\t".join(map(str, row)) + "\n" for row in rows())


def linked(file):
    """The libraries that the loader needs for a file."""
    text = subprocess.run(["readelf", "-d", file], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


@needs_plugin
def test_no_kernel_spills_registers():
    assert rows() and not [row for row in rows() if row[-1] > 0]


@needs_plugin
def test_registers_are_those_of_the_table():
    kept = TABLE.read_text(encoding="utf-8")
    if kept.split("\n")[0] != f"# {compiler()}":
        pytest.skip("the table of registers is of another nvcc")
    assert kept == table(), "tests/cuda_plugin_test.py --fix writes the table"


@needs_plugin
def test_the_plugin_links_only_what_every_machine_has():
    assert all(re.match(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux[\w-]*)\.so", name)
               for name in linked(PLUGIN)), linked(PLUGIN)


@needs_plugin
def test_the_plugin_says_what_is_missing():
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has an NVIDIA driver")
    text = subprocess.run([QKV, "doctor"], check=True, capture_output=True, text=True,
                          env={**os.environ, "QKV_DEVICE": str(PLUGIN)}).stdout
    assert re.search(r"CUDA [\d.]+: no NVIDIA driver was found \(libcuda\.so\.1\)", text), text


@pytest.mark.parametrize("file", ["qkv", "libqkv.so", "libqkv_local.so"])
def test_nothing_else_links_cuda(file):
    path = QKV.parent / file
    if not path.exists():
        pytest.skip(f"{file} is not built")
    assert linked(path) and not re.search("cuda|cublas|nvidia|nccl", " ".join(linked(path)))


if __name__ == "__main__" and sys.argv[1:] == ["--fix"]:
    TABLE.write_text(table(), encoding="utf-8")
