"""`qkv doctor`: the report as text and JSON, and advice that follows the environment."""

import json
import os
import subprocess
from pathlib import Path

from conftest import QKV


def doctor(*arguments, **environment):
    done = subprocess.run([QKV, "doctor", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def test_text_and_json_agree():
    report, text = json.loads(doctor("--json")), doctor()
    assert set(report) == {"version", "system", "processor", "threads", "memory", "libraries", "disks", "plugins", "advice"}
    assert report["processor"]["instruction_set"] in text
    assert f"threads:            {report['threads']['used']}" in text
    assert all(f"\n- {line}\n" in text for line in report["advice"])
    assert report["memory"]["total_bytes"] > 0 and report["libraries"]["oneDNN"]


def test_advice_names_variables_that_slow_down():
    processors = os.cpu_count()
    one = json.loads(doctor("--json", OMP_NUM_THREADS="1"))
    assert one["threads"]["used"] == 1 and one["threads"]["OMP_NUM_THREADS"] == "1"
    assert any(line.startswith("OMP_NUM_THREADS=1 is set: training uses 1 thread") for line in one["advice"]) == (processors > 1)
    many = json.loads(doctor("--json", OMP_NUM_THREADS="1000"))
    assert any("more threads than processors" in line for line in many["advice"])
    portable = json.loads(doctor("--json", QKV_ISA="portable"))
    assert any(line.startswith("QKV_ISA=portable is set") for line in portable["advice"]) == (
        portable["processor"]["instruction_sets"] != ["portable"])


def test_an_unusable_cache_or_plugin_is_reported(tmp_path):
    report = json.loads(doctor("--json", HF_HUB_CACHE=str(tmp_path / "new/cache")))
    assert report["disks"][1]["path"] == str(tmp_path / "new/cache") and report["disks"][1]["free_bytes"] > 0
    (tmp_path / "plugin.so").write_text("no library")
    report = json.loads(doctor("--json", QKV_TRANSPORT=str(tmp_path / "plugin.so")))
    assert any("cannot be loaded" in line for line in report["advice"])
    assert not (tmp_path / "new").exists()


def test_devices_are_listed(tmp_path):
    host = Path(QKV).resolve().parent / "tests/libqkv_host_device.so"
    report = json.loads(doctor("--json", QKV_DEVICE=str(host)))
    cuda = next(plugin for plugin in report["plugins"] if plugin["name"] == "cuda")
    assert cuda == {"name": "cuda", "path": str(host), "installed": True, "error": None, "uses": "host device",
                    "devices": [{"name": "host device", "memory_bytes": 2**34}]}
    assert "\ndevice:             host device, 16.0 GiB (host device)\n" in doctor(QKV_DEVICE=str(host))
    assert version(QKV_DEVICE=str(host)).endswith(")\nhost device (16.0 GiB): host device\n")

    assert version(QKV_DEVICE=str(tmp_path / "missing.so")).count("\n") == 1
    report = json.loads(doctor("--json", QKV_DEVICE=str(tmp_path / "missing.so")))
    assert f"the plugin {tmp_path}/missing.so does not exist" in report["advice"]
    (tmp_path / "plugin.so").write_text("no library")
    assert "device plugin: " in version(QKV_DEVICE=str(tmp_path / "plugin.so"))
    report = json.loads(doctor("--json", QKV_DEVICE=str(tmp_path / "plugin.so")))
    assert any("the device plugin cannot be loaded" in line for line in report["advice"])


def version(**environment):
    return subprocess.run([QKV, "--version"], capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout


def test_an_unknown_instruction_set_is_an_error():
    done = subprocess.run([QKV, "doctor"], capture_output=True, text=True, env={**os.environ, "QKV_ISA": "mmx"})
    assert done.returncode == 1 and done.stderr.startswith("qkv: QKV_ISA: unknown instruction set")
