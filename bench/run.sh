#!/usr/bin/env bash
# Builds and runs the benchmarks: the kernels alone and, given the folder that bench/peers/install.sh created and a file
# of lines in English, the comparisons of attention and training with PyTorch and of translation with CTranslate2.
# Writes to bench/RESULTS.md.
#   bench/run.sh [PEERS TEXT]
set -euo pipefail
[ $# -eq 0 ] || [ $# -eq 2 ] || { echo "usage: bench/run.sh [PEERS TEXT]" >&2; exit 1; }
peers=${1:+$(realpath "$1")}
text=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
./install.sh libbenchmark-dev
cmake --preset bench > /dev/null
cmake --build --preset bench
build/bench/bench/qkv_bench --benchmark_min_time=0.5
[ -n "$peers" ] || exit 0

cmake --install build/bench --prefix build/bench/prefix > /dev/null
"$peers/bin/pip" install -q scikit-build-core nanobind nanobind-backend
"$peers/bin/pip" install -q --no-build-isolation --no-deps --force-reinstall . \
  --config-settings=build-dir="$PWD/build/bench/python" --config-settings=cmake.define.QKV_USE_INSTALLED=ON \
  --config-settings=cmake.define.CMAKE_PREFIX_PATH="$PWD/build/bench/prefix"
for type in float32 bfloat16; do "$peers/bin/python" bench/peers/attention.py --dtype "$type" --write; done
"$peers/bin/python" bench/peers/train.py --torch "$peers/bin/python" --qkv build/bench/qkv --write
"$peers/bin/python" bench/peers/decode.py --peers "$peers/bin/python" --qkv build/bench/qkv --models build/bench/models \
  --text "$text" --write
