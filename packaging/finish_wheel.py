"""Adds to a repaired wheel what it must say of the libraries in it, and packs it with the same bytes every time.

usage: finish_wheel.py WHEEL FOLDER

Adds OpenMP's runtime of the wheel's processor, DEB_HOST_MULTIARCH, under its own name (packaging/build.sh says why).
In the wheel's .dist-info: sboms/qkv.spdx.json, the list of what is bundled (SPDX 2.3, PEP 770), and licenses/, the
copyright files of Debian's packages. FOLDER also gets the list as a file of its own, by the wheel's name. Each file
gets the time SOURCE_DATE_EPOCH.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

import sbom

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
MODES = {True: 0o755, False: 0o644}


def read(path):
    """The files of a wheel by name, each with its bytes and whether it is executable."""
    with zipfile.ZipFile(path) as wheel:
        files = [info for info in wheel.infolist() if not info.is_dir()]
        return {info.filename: (wheel.read(info), bool(info.external_attr >> 16 & 0o100)) for info in files}


def record_of(files, name):
    """The file RECORD: a line `path,sha256=...,size` for each file."""
    lines = []
    for path in sorted(files):
        data = files[path][0]
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{name},,"]).encode() + b"\n"


def write(path, files):
    when = max(time.gmtime(EPOCH)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(path, "w") as wheel:
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            info = zipfile.ZipInfo(name, when)
            info.external_attr = (0o100000 | MODES[files[name][1]]) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, files[name][0], compresslevel=9)


def openmp_runtime():
    return Path("/usr/lib", os.environ["DEB_HOST_MULTIARCH"], "libgomp.so.1").read_bytes()


def main(wheel, folder):
    files = read(wheel)
    files["qkv.libs/libgomp.so.1"] = (openmp_runtime(), True)
    info = next(name.partition("/")[0] for name in files if name.endswith(".dist-info/RECORD"))
    libraries = [Path(name).name for name in files if name.startswith("qkv.libs/")]
    packages = sbom.bundled_packages(libraries)
    document = sbom.document(info.removesuffix(".dist-info").partition("-")[2], packages, EPOCH)
    files[f"{info}/sboms/qkv.spdx.json"] = (document, False)
    for package in packages:
        files[f"{info}/licenses/debian/{package.name}.txt"] = (package.copyright, False)
    del files[f"{info}/RECORD"]
    files[f"{info}/RECORD"] = (record_of(files, f"{info}/RECORD"), False)
    write(Path(folder) / Path(wheel).name, files)
    Path(folder, f"{Path(wheel).stem}.spdx.json").write_bytes(document)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: finish_wheel.py WHEEL FOLDER")
    main(*sys.argv[1:])
