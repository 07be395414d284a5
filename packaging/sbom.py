"""The list of what a wheel contains besides qkv, in SPDX 2.3: Debian's packages, with versions and licences."""

import json
import re
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

# Headers that are compiled into the program and the library, and are no library of their own.
HEADERS = ("libboost1.81-dev", "libcli11-dev", "nlohmann-json3-dev")
# The licences of the parts that are bundled, by Debian's name of the source package. A missing entry is an error.
LICENSES = {
    "boost1.81": "BSL-1.0",
    "bzip2": "bzip2-1.0.6",
    "cli11": "BSD-3-Clause",
    "expat": "MIT",
    "fmtlib": "MIT",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "highway": "Apache-2.0 OR BSD-3-Clause",
    "icu": "ICU",
    "libyaml": "MIT",
    "libzip": "BSD-3-Clause",
    "libzstd": "BSD-3-Clause",
    "md4c": "MIT",
    "nlohmann-json3": "MIT",
    "ocl-icd": "BSD-2-Clause",
    "onednn": "Apache-2.0",
    "openssl": "Apache-2.0",
    "prometheus-cpp": "MIT",
    "sentencepiece": "Apache-2.0",
    "zlib": "Zlib",
}


@dataclass(frozen=True)
class Package:
    name: str  # of the binary package in Debian
    version: str
    source: str
    license: str
    copyright: bytes  # Debian's copyright file
    files: tuple[str, ...]  # libraries in the wheel; none for headers


def query(name, field):
    """A field of an installed package; a library may be there for two processors, in the same version."""
    command = ["dpkg-query", "-W", "-f", f"${{{field}}}\\n", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def owner(library):
    """The package of a library of the system, by the name that auditwheel made of it: libzip-1a2b3c4d.so.4."""
    original = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library)
    found = subprocess.run(["dpkg-query", "-S", f"*/{original}"], capture_output=True, text=True, check=True).stdout
    owners = {line.partition(": ")[0].partition(":")[0] for line in found.splitlines()}
    names = sorted(name for name in owners if not name.endswith(("-dev", "-dbg", "-cross")))
    if not names:
        raise SystemExit(f"{library}: no package of Debian contains {original}")
    return names[0]


def package_of(name, files):
    source = query(name, "source:Package")
    if source not in LICENSES:
        raise SystemExit(f"{name}: its source package {source} has no licence in packaging/sbom.py")
    text = Path(f"/usr/share/doc/{name}/copyright").read_bytes()
    return Package(name, query(name, "Version"), source, LICENSES[source], text, tuple(sorted(files)))


def bundled_packages(libraries):
    """The packages whose libraries or headers are in the wheel, sorted by name."""
    files = {name: [] for name in HEADERS}
    for library in libraries:
        files.setdefault(owner(library), []).append(library)
    return [package_of(name, files[name]) for name in sorted(files)]


def entry(package):
    return {
        "SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', package.name)}",
        "name": package.name,
        "versionInfo": package.version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "sourceInfo": f"Debian source package {package.source}",
        "comment": "Bundled: " + (", ".join(package.files) or "headers that are compiled into qkv"),
        "licenseConcluded": package.license,
        "licenseDeclared": package.license,
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{package.name}@{package.version}"}],
    }


def document(version, packages, epoch):
    own = {"SPDXID": "SPDXRef-qkv", "name": "qkv", "versionInfo": version, "downloadLocation": "NOASSERTION",
           "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}
    entries = [entry(package) for package in packages]
    bundled = [{"spdxElementId": "SPDXRef-qkv", "relationshipType": "CONTAINS", "relatedSpdxElement": e["SPDXID"]}
               for e in entries]
    described = {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                 "relatedSpdxElement": "SPDXRef-qkv"}
    content = json.dumps([own, *entries], sort_keys=True)
    text = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"qkv-{version}",
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
                         "creators": ["Tool: packaging/sbom.py"]},
        "packages": [own, *entries],
        "relationships": [described, *bundled],
    }
    return json.dumps(text, indent=1, ensure_ascii=False).encode() + b"\n"
