"""The module links no library of an accelerator: devices are plugins."""
import re
import subprocess
from pathlib import Path

import qkv


def test_the_module_links_no_library_of_a_device():
    modules = list(Path(qkv.__file__).parent.rglob("*.so"))
    assert modules
    for module in modules:
        text = subprocess.run(["readelf", "-d", module], check=True, capture_output=True, text=True).stdout
        libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", text)
        assert libraries and not re.search("cuda|cublas|nvidia|nccl", " ".join(libraries)), module
