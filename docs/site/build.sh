#!/usr/bin/env bash
# Builds the documentation site into build/site/html. Start with build/site/html/index.html, in any browser; it needs no
# server and no network. The packages of requirements.txt are installed from PyPI into build/site/venv if python3 lacks
# them.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/site python=${PYTHON:-python3}
mkdir -p "$out"
if ! "$python" -c 'import sphinx, myst_parser, furo, latex2mathml, ziamath, griffe' 2> /dev/null; then
  python=$out/venv/bin/python
  if ! cmp -s docs/site/requirements.txt "$out/venv/requirements.txt"; then
    /usr/bin/python3 -m venv "$out/venv"
    "$python" -m pip install -q --disable-pip-version-check -r docs/site/requirements.txt
    cp docs/site/requirements.txt "$out/venv/"
  fi
fi
rm -rf "$out/html" "$out/doctrees"
"$python" -B docs/site/build_pages.py "$out/pages"
"$python" -B -m sphinx --fail-on-warning --keep-going -q -b html -c docs/site -d "$out/doctrees" "$out/pages" "$out/html"
echo "$out/html/index.html"
