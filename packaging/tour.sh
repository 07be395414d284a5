#!/usr/bin/env bash
# The tour of the README with small models, on an installed qkv: packaging/test_in_debian.sh runs it in a bare Debian.
#   tour.sh EXAMPLES [PYTHON]     EXAMPLES is the folder examples/ of the repository; with PYTHON also the module
set -euo pipefail
text=$(realpath "$1")/grammar python=${2:-}
small=(--decoder-layers 1 --d-model 64 --heads 2 --ffn 128)
cd "$(mktemp -d)"

qkv --version
qkv train translate --train "$text"/train.en "$text"/train.de --dev "$text"/dev.en "$text"/dev.de --out runs/m30k \
  --preset tiny --vocab-size 1000 --batch-tokens 1024 --max-steps 40 --eval-every 20
head -n 40 "$text/test.en" > test.en
head -n 40 "$text/test.de" > test.de
qkv translate runs/m30k --beam 5 < test.en > hyp.de
[ "$(wc -l < hyp.de)" -eq 40 ]
qkv score bleu --ref test.de < hyp.de
qkv attend runs/m30k "A dog runs across the field." --html attention.html > /dev/null
grep -q '</html>' attention.html
qkv inspect runs/m30k > /dev/null
qkv quantize runs/m30k --int8 > /dev/null
qkv train lm --text "$text/train.en" --out runs/lm "${small[@]}" --batch-tokens 1024 --max-steps 20
qkv generate runs/lm --prompt "The dog" --max-tokens 20

# Two processes of this machine, connected by the plugin that comes with the program.
export QKV_LOCAL_SIZE=2 QKV_LOCAL_DIRECTORY=$PWD/ranks
mkdir -m 700 ranks
for rank in 0 1; do
  QKV_LOCAL_RANK=$rank qkv train lm --text "$text/test.en" --out runs/ranks "${small[@]}" \
    --batch-tokens 256 --max-steps 4 --shards 2 --threads 1 > "rank-$rank.log" 2>&1 &
done
wait
[ -s runs/ranks/metrics.jsonl ] || { cat rank-*.log >&2; exit 1; }

[ -n "$python" ] || exit 0
"$python" -m qkv --version
"$python" - << 'END'
import time
start = time.perf_counter()
import numpy
numpy_time, start = time.perf_counter() - start, time.perf_counter()
import qkv
print(f"import numpy {numpy_time * 1000:.0f} ms, import qkv {(time.perf_counter() - start) * 1000:.0f} ms, version {qkv.__version__}")
assert qkv.Translator("runs/m30k").translate(["The dog sees the cat."])[0].text
assert qkv.Generator("runs/lm").generate("The dog", max_tokens=5)
q, k, v = numpy.random.default_rng(0).standard_normal((3, 1, 2, 5, 4), numpy.float32)
assert qkv.attention(q, k, v, causal=True).shape == (1, 2, 5, 4)
END
