#!/usr/bin/env bash
# Installs what qkv needs from Debian, and the packages that are named, if they are not there yet. Needs root, or sudo.
set -euo pipefail
of_release=(libboost-dev libprotobuf-dev)  # Debian 13: sentencepiece.pc asks for protobuf-lite.pc
[ "$(. /etc/os-release && echo "${VERSION_ID:-}")" != 12 ] || of_release=(libboost1.81-dev)  # its default is older
packages=(g++ cmake ninja-build pkg-config libdnnl-dev libhwy-dev libsentencepiece-dev libzip-dev zlib1g-dev
          libzstd-dev libyaml-dev libexpat1-dev libmd4c-dev libicu-dev libssl-dev libcurl4-openssl-dev "${of_release[@]}"
          prometheus-cpp-dev ca-certificates libfmt-dev libcli11-dev nlohmann-json3-dev
          libgtest-dev python3 python3-pytest python3-dev python3-venv "$@")
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}"
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
"${sudo[@]}" apt-get update -q
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
