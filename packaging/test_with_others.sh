#!/usr/bin/env bash
# Tests the wheel in one process with NumPy 1.26 and 2, scikit-learn and PyTorch, imported in both orders, in forked and
# in spawned workers, and prints the time of its import.
#   packaging/test_with_others.sh WHEEL [PYTHON [TORCH]]
# PYTHON is the interpreter, by default python3. TORCH is a folder of packages (site-packages) that contains PyTorch for
# it; without it PyTorch is not tested. Needs PyPI.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
wheel=$(realpath "$1") python=${2:-python3} torch=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# environment NUMPY PACKAGE...: a virtual environment with the wheel.
environment() {
  "$python" -m venv "$work/$1"
  "$work/$1/bin/pip" install -q --disable-pip-version-check "$wheel" "$@"
}

with_others() { "$work/$1/bin/python" "$here/with_others.py" "${@:2}"; }

for numpy in 'numpy<2' 'numpy>=2'; do
  environment "$numpy" scikit-learn
  with_others "$numpy" qkv sklearn
  with_others "$numpy" sklearn qkv
done
if [ -n "$torch" ]; then
  echo "$torch" > "$(echo "$work/numpy>=2"/lib/python*/site-packages)/torch.pth"
  for order in 'qkv torch sklearn' 'torch qkv sklearn' 'sklearn torch qkv' 'qkv sklearn torch'; do
    with_others 'numpy>=2' $order
  done
fi
code='import time, numpy; start = time.perf_counter(); import qkv; print(round(1000 * (time.perf_counter() - start), 1))'
echo "milliseconds of import qkv, after numpy, of eleven processes:" \
  $(for _ in {1..11}; do "$work/numpy<2/bin/python" -c "$code"; done | sort -n)
