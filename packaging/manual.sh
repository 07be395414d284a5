#!/usr/bin/env bash
# Writes the manual pages of all commands, made from their help by help2man: qkv.1, qkv-train.1, qkv-train-lm.1, …
#   packaging/manual.sh PROGRAM FOLDER
set -euo pipefail
program=$(realpath "$1") folder=$2
common=$(dirname "$0")/manual.h2m  # sections of all pages
mkdir -p "$folder"

# page COMMAND...: writes the page of a command, and those of the commands below it.
page() {
  local help name version all=() below
  help=$("$program" "$@" --help)
  name=$(IFS=- && echo "qkv${*:+-$*}")
  version=$("$program" --version)
  [[ $help != *--help-all* ]] || all=(--help-option=--help-all)
  help2man --locale=C.UTF-8 --no-info --no-discard-stderr "${all[@]}" --version-string="${version% (*}" --include="$common" \
    --include=<(printf '[name]\n%s \\- %s\n' "$name" "$(head -n 1 <<< "${help#qkv: }")") \
    --output="$folder/$name.1" "$program $*"
  [[ $help == *"Usage: qkv${*:+ $*} COMMAND"* ]] || return 0
  for below in $(sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' <<< "$help"); do page "$@" "$below"; done
}

page
