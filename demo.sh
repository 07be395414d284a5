#!/usr/bin/env bash
# Installs what is missing, builds the program, trains a small model and shows what it does.
#   ./demo.sh              a translator, trained on examples/grammar, with a page that shows its attention weights
#   ./demo.sh recommend    a recommender, trained on a log of films that examples/films generates
set -euo pipefail
cd "$(dirname "$0")"

prepare() {
  echo "== 1. installing what is missing"
  ./install.sh
  echo "== 2. building"
  mkdir -p build
  cmake --preset release -DQKV_BUILD_TESTS=OFF > build/configure-release.log || { cat build/configure-release.log; exit 1; }
  cmake --build --preset release --target qkv_program
  qkv=build/release/qkv
  $qkv --version
}

translate() {
  local text=examples/grammar run=runs/demo sentence="The old teacher has not seen the small dog in the garden."
  echo "== 3. training English to German on $(wc -l < $text/train.en) sentence pairs (resumes if interrupted)"
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

  echo "== 5. attention weights"
  echo "   $sentence"
  $qkv attend $run "$sentence" --words
  $qkv attend $run "$sentence" --html $run/attention.html > /dev/null
  cat << END

Done. Open $run/attention.html in a browser to see every layer and head.
Try next:
  echo "The dog sees the cat." | $qkv translate $run
  $qkv attend $run "The dog sees the cat." --kind encoder --layer 1 --head 2
  $qkv inspect $run
  $qkv train translate --help        train on your own text: two line-aligned files
  ./demo.sh recommend
END
}

recommend() {
  local run=runs/demo-films films=runs/demo-films-log
  local crime="Silent Harbour, Part 1, Silent Harbour, Part 2, Silent Harbour, Part 3"
  local both="Golden Dragon, Part 1, Silent Harbour, Part 1, Golden Dragon, Part 2, Silent Harbour, Part 2"
  local next="Golden Dragon, Part 3"
  show() { $qkv recommend $run --titles $films/titles.csv --top "$1" --history "$2" "${@:3}"; }

  echo "== 3. generating a log of fictional users and films"
  python3 examples/films/generate.py --out $films
  head -4 $films/log.csv
  echo "== 4. training a recommender (resumes if interrupted)"
  $qkv train recommend --data $films/log.csv --out $run --preset films --ffn 64 --max-length 60 \
    --batch-tokens 4096 --max-epochs 40
  echo "== 5. evaluating: predict the last film of each user, compared with two simple baselines"
  $qkv evaluate $run

  echo "== 6. recommendations after the first three parts of a series:"
  echo "   $crime"
  show 5 "$crime"
  echo "== 7. recommendations after two interleaved series, with the effect of each event on the scores:"
  echo "   $both"
  show 5 "$both" --explain
  echo "== 8. the same history with one more event, which takes effect immediately: $next"
  show 5 "$both, $next"
  echo "== 9. only comedies and family films, and a list whose items differ more:"
  show 5 "$both" --catalogue $films/titles.csv --where "genre=comedy|family"
  show 5 "$both" --diversity 0.5
  echo "== 10. films similar to one: $next"
  $qkv recommend $run --titles $films/titles.csv --top 5 --similar "$next"
  cat << END

Done. Try next:
  $qkv recommend $run --user u0042 --titles $films/titles.csv --explain
  echo '{"history": ["f0000", "f0001"], "top": 3}' | $qkv recommend $run
  $qkv train recommend --help        train on your own log: a file with user, item and time
  docs/recommend.md                  the same with MovieLens
END
}

case "${1:-translate}" in
  translate | recommend) prepare; "${1:-translate}" ;;
  *) echo "usage: ./demo.sh [translate | recommend]" >&2; exit 2 ;;
esac
