#!/bin/bash
# Writes the runs in this folder: make.sh QKV. README.md says what each run is. Needs text/tokenizer.model, which the
# README describes.
set -euo pipefail
qkv=$(realpath "$1")
cd "$(dirname "$0")"
export QKV_ISA=portable
rm -rf translator language recommender encoder imported-translator

small="--d-model 8 --heads 2 --ffn 16 --max-length 24 --threads 2 --save-every 0 --average 2"
translator="--train text/train.en text/train.de --dev text/dev.en text/dev.de $small --encoder-layers 1
  --decoder-layers 1 --batch-tokens 200 --eval-every 8 --learning-rate 0.02 --warmup-steps 4"
language="--text text/train.en $small --decoder-layers 1 --moments int8 --schedule inverse_sqrt
  --batch-tokens 96 --eval-every 8 --learning-rate 0.02 --warmup-steps 4"
recommender="--data log/log.csv --features log/titles.csv --feature-columns item,genre,title:words --time-gaps true
  --d-model 8 --heads 2 --ffn 16 --max-length 12 --threads 2 --decoder-layers 1 --batch-tokens 64 --eval-every 6
  --learning-rate 0.02 --warmup-steps 4 --save-every 0 --average 2 --moments bfloat16 --transitions false
  --schedule inverse_sqrt --dropout 0.1 --attention-dropout 0.1 --ffn-dropout 0.1"

"$qkv" train translate $translator --source-tokenizer text/tokenizer.model --out translator --max-steps 16 2> /dev/null
"$qkv" train lm $language --out language --max-steps 16 2> /dev/null
"$qkv" train recommend $recommender --out recommender --max-steps 12 2> /dev/null
rm ./*/checkpoints/lock

"$qkv" import ../bert/sentence encoder > /dev/null
"$qkv" export translator exported > /dev/null
"$qkv" import exported imported-translator > /dev/null
rm -r exported
