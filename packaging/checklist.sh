#!/usr/bin/env bash
# Makes a release up to the upload: checks what must hold, runs all tests, builds the files, tests them in bare Debians,
# verifies their checksums, and tags the commit. Nothing leaves the machine.
#   packaging/checklist.sh            all of it, as root; takes some hours
#   packaging/checklist.sh --check    only the checks, which take seconds
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^project(qkv VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
date=$(sed -n 's/^date-released: //p' CITATION.cff)
files=build/release-files
failed=0

# item NAME COMMAND...: prints whether the command succeeds, and otherwise its last line.
item() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $name"
  else
    echo "FAILED  $name: $(tail -n 1 <<< "$output")"
    failed=1
  fi
}

complain() {
  echo "$1"
  return 1
}

clean_tree() {
  local changes
  changes=$(git status --porcelain | head -n 1)
  [ -z "$changes" ] || complain "commit or remove \"${changes:3}\""
}

one_version() {
  local python=python3
  "$python" -c 'import pytest, yaml' 2> /dev/null || python=/usr/bin/python3
  "$python" -m pytest -q -p no:cacheprovider tests/policy_test.py
}

changelog() {
  local heading
  heading=$(grep -m 1 '^## ' CHANGELOG.md)
  [ "$heading" = "## [$version] - $date" ] || complain "CHANGELOG.md begins with \"$heading\", expected \"## [$version] - $date\""
}

address() {
  ! grep -hE '@[A-Za-z0-9.-]*\.example>' debian/control debian/changelog | head -n 1 | grep . \
    || complain "debian/control and debian/changelog name a placeholder, expected an address that receives mail"
}

kept_runs() {
  [ -f "tests/golden/releases/$version/expected.json" ] \
    || complain "tests/golden/releases/$version is missing; run tests/golden/releases/make.py with the program of this commit"
}

free_tag() {
  local commit
  commit=$(git rev-parse -q --verify "refs/tags/v$version^{commit}") || return 0
  [ "$commit" = "$(git rev-parse HEAD)" ] || complain "v$version is the tag of ${commit:0:12}, expected none or this commit"
}

echo "qkv $version, $date"
item "everything is committed" clean_tree
item "files for users are valid and state one version" one_version
item "the changelog has this version" changelog
item "the maintainers can be reached" address
item "runs of this version are kept" kept_runs
item "the tag is free" free_tag
[ "$failed" -eq 0 ] || exit 1
[ "${1:-}" != --check ] || exit 0

FULL=1 .ci/run
rm -rf "$files"
packaging/release.sh "$files"
packaging/test_in_debian.sh "$files"
(cd "$files" && sha256sum --quiet -c SHA256SUMS)
clean_tree
git rev-parse -q --verify "refs/tags/v$version" > /dev/null || git tag -a "v$version" -m "qkv $version"
echo "ready: $(find "$files" -type f | wc -l) files in $files, tag v$version"
echo "upload: git push origin v$version, and the files with SHA256SUMS; then increase the version in CMakeLists.txt"
