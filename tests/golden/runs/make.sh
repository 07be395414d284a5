#!/bin/bash
# Writes the runs in this folder and the outputs expected of them: make.sh QKV, where QKV is the program as of commit
# caf6b75. README.md says what each run is. Needs text/tokenizer.model, which the README describes.
set -euo pipefail
qkv=$(realpath "$1")
cd "$(dirname "$0")"
export QKV_ISA=portable
rm -rf translator language recommender encoder imported-translator translator-int8 expected
mkdir expected

small="--d-model 8 --heads 2 --ffn 16 --max-length 24 --threads 2 --save-every 0 --average 2"
translator="--train text/train.en text/train.de --dev text/dev.en text/dev.de $small --encoder-layers 1
  --decoder-layers 1 --batch-tokens 200 --eval-every 8 --learning-rate 0.02 --warmup-steps 4"
language="--text text/train.en $small --decoder-layers 1 --moments int8 --schedule inverse_sqrt
  --batch-tokens 96 --eval-every 8 --learning-rate 0.02 --warmup-steps 4"
recommender="--data log/log.csv --features log/titles.csv --feature-columns item,genre,title:words --time-gaps true
  --d-model 8 --heads 2 --ffn 16 --max-length 12 --threads 2 --decoder-layers 1 --batch-tokens 64 --eval-every 6
  --learning-rate 0.02 --warmup-steps 4 --save-every 0 --average 2 --moments bfloat16
  --schedule inverse_sqrt"

# A trained run of some steps, and the sums of its files after as many more.
train() {  # NAME COMMAND STEPS OPTIONS
  "$qkv" train "$2" ${@:4} --out "$1" --max-steps "$3" 2> /dev/null
  cp -r "$1" resumed
  "$qkv" train "$2" ${@:4} --out resumed --max-steps $((2 * $3)) 2> /dev/null
  (cd resumed && sha256sum model.safetensors checkpoints/*) > "expected/$1.resumed.sha256"
  rm -r resumed
}
train translator translate 16 $translator --source-tokenizer text/tokenizer.model
train language lm 16 $language
train recommender recommend 12 $recommender

"$qkv" import ../bert/sentence encoder > /dev/null
"$qkv" export translator exported > /dev/null
"$qkv" import exported imported-translator > /dev/null
rm -r exported
cp -r translator served && rm -r served/{training,text}.json served/metrics.jsonl served/checkpoints
"$qkv" quantize served --int8 --out translator-int8 > /dev/null
rm -r served

for run in translator imported-translator translator-int8; do
  "$qkv" translate "$run" --input text/lines.en > "expected/$run.txt"
done
"$qkv" generate language --prompt "There is" --max-tokens 40 --seed 4 > expected/language.txt
"$qkv" recommend recommender --user u0005 > expected/recommender.txt
"$qkv" evaluate recommender --json > expected/recommender.evaluation.json
for run in encoder translator language; do "$qkv" embed "$run" --file text/lines.en > "expected/$run.vectors.txt"; done
