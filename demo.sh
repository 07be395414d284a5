#!/usr/bin/env bash
# Installs what is missing, builds the program, trains a small model and shows what it does.
#   ./demo.sh              a translator, trained on examples/grammar, with a page that shows its attention weights
#   ./demo.sh recommend    a recommender, trained on a log of films that examples/films generates
#   ./demo.sh serve        an HTTP server with both, and what to ask it
set -euo pipefail
cd "$(dirname "$0")"
text=examples/grammar run=runs/demo films=runs/demo-films-log films_run=runs/demo-films steps=0

step() { echo "== $((++steps)). $1"; }

prepare() {
  step "installing what is missing"
  ./install.sh
  step "building"
  mkdir -p build
  cmake --preset release -DQKV_BUILD_TESTS=OFF > build/configure-release.log || { cat build/configure-release.log; exit 1; }
  cmake --build --preset release --target qkv_program
  qkv=build/release/qkv
  $qkv --version
}

train_translator() {
  step "training English to German on $(wc -l < $text/train.en) sentence pairs (resumes if interrupted)"
  $qkv train translate --train $text/train.en $text/train.de --dev $text/dev.en $text/dev.de --out $run \
    --preset tiny --encoder-layers 2 --decoder-layers 2 --dropout 0.1 --vocab-size 4000 --batch-tokens 2048 \
    --learning-rate 4e-3 --warmup-steps 300 --max-steps 900 --eval-every 300
}

train_recommender() {
  step "generating a log of fictional users and films"
  python3 examples/films/generate.py --out $films
  head -4 $films/log.csv
  step "training a recommender (resumes if interrupted)"
  $qkv train recommend --data $films/log.csv --out $films_run --preset films --ffn 64 --max-length 60 \
    --batch-tokens 4096 --max-epochs 40
}

translate() {
  local sentence="The old teacher has not seen the small dog in the garden."
  train_translator

  step "translating $(wc -l < $text/test.en) unseen sentences"
  $qkv translate $run --beam 5 < $text/test.en > $run/test.hyp
  $qkv score bleu --ref $text/test.de < $run/test.hyp
  for i in 1 400 800; do
    printf '   %s\n   %s\n   reference: %s\n\n' "$(sed -n ${i}p $text/test.en)" "$(sed -n ${i}p $run/test.hyp)" \
      "$(sed -n ${i}p $text/test.de)"
  done

  step "translating a paragraph, sentence by sentence"
  sed -n 1,3p $text/test.en | paste -sd " " | tee -a /dev/stderr | $qkv translate $run

  step "attention weights"
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
  ./demo.sh serve
END
}

recommend() {
  local crime="Silent Harbour, Part 1, Silent Harbour, Part 2, Silent Harbour, Part 3"
  local both="Golden Dragon, Part 1, Silent Harbour, Part 1, Golden Dragon, Part 2, Silent Harbour, Part 2"
  local next="Golden Dragon, Part 3"
  show() { $qkv recommend $films_run --titles $films/titles.csv --top "$1" --history "$2" "${@:3}"; }

  train_recommender
  step "evaluating: predict the last film of each user, compared with two simple baselines"
  $qkv evaluate $films_run

  step "recommendations after the first three parts of a series:"
  echo "   $crime"
  show 5 "$crime"
  step "recommendations after two interleaved series, with the effect of each event on the scores:"
  echo "   $both"
  show 5 "$both" --explain
  step "the same history with one more event, which takes effect immediately: $next"
  show 5 "$both, $next"
  step "only comedies and family films, and a list whose items differ more:"
  show 5 "$both" --catalogue $films/titles.csv --where "genre=comedy|family"
  show 5 "$both" --diversity 0.5
  step "films similar to one: $next"
  $qkv recommend $films_run --titles $films/titles.csv --top 5 --similar "$next"
  cat << END

Done. Try next:
  $qkv recommend $films_run --user u0042 --titles $films/titles.csv --explain
  echo '{"history": ["f0000", "f0001"], "top": 3}' | $qkv recommend $films_run
  $qkv train recommend --help        train on your own log: a file with user, item and time
  docs/recommend.md                  the same with MovieLens
END
}

serve() {
  train_translator
  train_recommender
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  local url=http://localhost:$port
  step "serving both models"
  cat << END

Open $url/ in a browser: translate with live attention, and recommend. In another terminal:
  curl -s $url/v1/translate -H 'content-type: application/json' -d '{"text": "The dog sees the cat."}'
  curl -s $url/v1/recommend -H 'content-type: application/json' \\
    -d '{"history": ["Silent Harbour, Part 1", "Silent Harbour, Part 2"], "top": 3}'
  curl -s $url/translate -d q='The dog sees the cat.' -d source=en -d target=de
  curl -s $url/metrics | grep qkv_requests
docs/serve.md describes all routes. Each request is a line of the log below. Ctrl-C finishes what has arrived, and ends
the server.

END
  exec $qkv serve en-de=$run films=$films_run --titles films=$films/titles.csv --listen 127.0.0.1:"$port"
}

case "${1:-translate}" in
  translate | recommend | serve) prepare; "${1:-translate}" ;;
  *) echo "usage: ./demo.sh [translate | recommend | serve]" >&2; exit 2 ;;
esac
