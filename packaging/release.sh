#!/usr/bin/env bash
# Makes all files of a release from the commit that is checked out, up to the upload: the wheels, the source distribution,
# the .deb packages of each Debian, the lists of bundled software (SPDX) and SHA256SUMS, for x86-64 and 64-bit Arm. The
# same commit gives the same bytes, as long as Debian's packages of the build stay the same.
#   packaging/release.sh [FOLDER [SUITE...]]      default: build/release-files bookworm trixie
# Needs root, debootstrap, git, pip, x86-64 and a kernel with binfmt_misc. It builds each suite for each processor in a root
# of its own, the wheels on bookworm, and fetches packages of Debian and PyPI. QKV_ARCHITECTURES are the processors, by
# default "amd64 arm64". QKV_BUILD_PACKAGES are additional packages of the roots, and QKV_BUILD_MOUNTS and
# QKV_BUILD_ENV their mounts and variables, for example those of ccache.
set -euo pipefail
cd "$(dirname "$0")/.."
source packaging/roots.sh
need_root

out=$(realpath -m "${1:-build/release-files}")
suites=("${@:2}")
[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)
version=$(sed -n 's/^project(qkv VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
work=$(mktemp -d)
trap 'stop_emulator; rm -rf "$work"' EXIT

check() {
  [ -z "$(git status --porcelain)" ] || { echo "release: the working tree has changes that are not committed" >&2; return 1; }
  grep -q "^qkv ($version)" debian/changelog \
    || { echo "release: debian/changelog does not begin with version $version of CMakeLists.txt" >&2; return 1; }
  [ -z "$(ls -A "$out" 2> /dev/null)" ] || { echo "release: $out is not empty" >&2; return 1; }
}

# Fetches the tools of PyPI for the Python of bookworm: fetch_tools ARCHITECTURE PROCESSOR, as Debian and as wheels say.
fetch_tools() {
  python3 -m pip install -q --root-user-action ignore --target "$work/tools-$1" --no-deps --only-binary :all: \
    --python-version 3.11 --platform "manylinux_2_28_$2" --platform "manylinux2014_$2" -r packaging/requirements.txt
}

# build SUITE ARCHITECTURE: its files, in $out.
build() {
  local suite=$1 architecture=$2 root=$work/$1-$2 source=/srv/qkv-$version kind=
  [ "$suite" != bookworm ] || kind=wheel
  echo "== $suite $architecture"
  make_root "$suite" "$root"
  git archive --prefix="srv/qkv-$version/" HEAD | tar -C "$root" -x
  cp -r "$work/tools-$architecture" "$root/srv/tools"
  install_in "$root" build-essential ${QKV_BUILD_PACKAGES:-}
  if [ "$architecture" = arm64 ]; then
    add_arm "$root"
  else
    install_build_dependencies "$root"
  fi
  local number
  number=$(. "$root/etc/os-release" && echo "$VERSION_ID")
  QKV_MOUNTS="${QKV_BUILD_MOUNTS:-}" \
  QKV_ENV="SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) PYTHONPATH=/srv/tools ${QKV_BUILD_ENV:-}" \
    in_root "$root" bash -c "cd $source && nice packaging/build.sh $version+deb$number /srv/out $architecture $kind"
  rm "$root/srv/out/build.log"
  mv "$root/srv/out/"* "$out/"
  rm -rf "$root"
}

check
mkdir -p "$out"
fetch_tools amd64 x86_64
fetch_tools arm64 aarch64
for suite in "${suites[@]}"; do
  for architecture in ${QKV_ARCHITECTURES:-amd64 arm64}; do build "$suite" "$architecture"; done
done
(cd "$out" && LC_ALL=C sha256sum -- * > SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
ls -l "$out"
