#!/usr/bin/env bash
# Makes all files of a release from the commit that is checked out, up to the upload: the wheel, the source distribution,
# the .deb packages of each Debian, the list of bundled software (SPDX) and SHA256SUMS. The same commit gives the same
# bytes, as long as Debian's packages of the build stay the same.
#   packaging/release.sh [FOLDER [SUITE...]]      default: build/release-files bookworm trixie
# Needs root, debootstrap, git and pip. It builds each suite in a root of its own, the wheel on bookworm, and fetches
# packages of Debian and PyPI. QKV_BUILD_PACKAGES are additional packages of the roots, and QKV_BUILD_MOUNTS and
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
trap 'rm -rf "$work"' EXIT

check() {
  [ -z "$(git status --porcelain)" ] || { echo "release: the working tree has changes that are not committed" >&2; return 1; }
  grep -q "^qkv ($version)" debian/changelog \
    || { echo "release: debian/changelog does not begin with version $version of CMakeLists.txt" >&2; return 1; }
  [ -z "$(ls -A "$out" 2> /dev/null)" ] || { echo "release: $out is not empty" >&2; return 1; }
}

# build SUITE: its files, in $work/SUITE/out.
build() {
  local suite=$1 root=$work/$1 source=/srv/qkv-$version kind=
  [ "$suite" != bookworm ] || kind=wheel
  echo "== $suite"
  make_root "$suite" "$root"
  git archive --prefix="srv/qkv-$version/" HEAD | tar -C "$root" -x
  cp -r "$work/tools" "$root/srv/tools"
  install_in "$root" build-essential ${QKV_BUILD_PACKAGES:-}
  in_root "$root" apt-get build-dep -y -q --no-install-recommends "$source" >> "$root/install.log" 2>&1 \
    || { tail "$root/install.log" >&2; return 1; }
  local number
  number=$(. "$root/etc/os-release" && echo "$VERSION_ID")
  QKV_MOUNTS="${QKV_BUILD_MOUNTS:-}" \
  QKV_ENV="SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) PYTHONPATH=/srv/tools ${QKV_BUILD_ENV:-}" \
    in_root "$root" bash -c "cd $source && nice packaging/build.sh $version+deb$number /srv/out $kind"
  rm "$root/srv/out/build.log"
  mv "$root/srv/out/"* "$out/"
  rm -rf "$root"
}

check
mkdir -p "$out"
python3 -m pip install -q --root-user-action ignore --target "$work/tools" --no-deps --only-binary :all: --python-version 3.11 \
  -r packaging/requirements.txt
for suite in "${suites[@]}"; do build "$suite"; done
(cd "$out" && LC_ALL=C sha256sum -- * > SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
ls -l "$out"
