#!/usr/bin/env bash
# From nothing to a translator, in some minutes on two cores: installs what is missing, builds, trains a small model on
# the text in examples/grammar, translates sentences it has never seen, and draws what it attends to.
set -euo pipefail
cd "$(dirname "$0")"
text=examples/grammar
run=runs/demo
sentence="The old teacher has not seen the small dog in the garden."

echo "== 1. installing what is missing"
./install.sh
echo "== 2. building"
mkdir -p build
cmake --preset release -DQKV_BUILD_TESTS=OFF > build/configure-release.log || { cat build/configure-release.log; exit 1; }
cmake --build --preset release --target qkv_program
qkv=build/release/qkv
$qkv --version

echo "== 3. training English to German on $(wc -l < $text/train.en) sentence pairs (a second run goes on from the first)"
$qkv train translate --train $text/train.en $text/train.de --dev $text/dev.en $text/dev.de --out $run \
  --preset tiny --encoder-layers 2 --decoder-layers 2 --dropout 0.1 --vocab-size 4000 --batch-tokens 2048 \
  --learning-rate 4e-3 --warmup-steps 300 --max-steps 900 --eval-every 300

echo "== 4. translating $(wc -l < $text/test.en) unseen sentences"
$qkv translate $run --beam 5 < $text/test.en > $run/test.hyp
$qkv score bleu --ref $text/test.de < $run/test.hyp
for i in 1 400 800; do
  printf '   %s\n   %s\n   reference: %s\n\n' "$(sed -n ${i}p $text/test.en)" "$(sed -n ${i}p $run/test.hyp)" \
    "$(sed -n ${i}p $text/test.de)"
done

echo "== 5. what it attends to"
echo "   $sentence"
$qkv attend $run "$sentence" --words
$qkv attend $run "$sentence" --html $run/attention.html > /dev/null
cat << END

Done. Open $run/attention.html in a browser to see every layer and head.
Try next:
  echo "The dog sees the cat." | $qkv translate $run
  $qkv attend $run "The dog sees the cat." --kind encoder --layer 1 --head 2
  $qkv inspect $run
  $qkv train translate --help        your own text: two line-aligned files are all it needs
END
