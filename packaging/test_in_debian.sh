#!/usr/bin/env bash
# Installs the files of a release in bare Debians, each by one command, and runs packaging/tour.sh there; removes the
# .deb packages again, and lets lintian check them. Prints the size of what was installed, and the seconds of the
# installation and of the tour.
#   packaging/test_in_debian.sh FOLDER [SUITE [KIND...]]   default: bookworm and trixie; wheel, deb, library, sdist, lint
# FOLDER is that of packaging/release.sh. Needs root, debootstrap and pip. Each test has a root of its own. Packages of
# PyPI are fetched before, for the Python of the suite; the roots have no access to PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
source packaging/roots.sh
need_root

files=$(realpath "$1")
suites=(${2:-bookworm trixie})
kinds=("${@:3}")
[ ${#kinds[@]} -gt 0 ] || kinds=(wheel deb library sdist lint)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
architecture=$(dpkg --print-architecture) processor=$(uname -m)  # the files of this machine are tested
declare -A pythons=([bookworm]=3.11 [trixie]=3.13)

# run COMMAND: in the root of this test.
run() {
  QKV_MOUNTS="$files:/files $PWD/examples:/tour/examples $PWD/packaging:/tour/packaging $PWD/tests/packaging:/tour/user $work/pypi-$suite:/pypi" \
  QKV_ENV="PIP_ROOT_USER_ACTION=ignore PIP_NO_INDEX=1 PIP_FIND_LINKS=/pypi ${QKV_BUILD_ENV:-}" in_root "$root" bash -ec "$1"
}

# Runs a command that installs, and prints its seconds and the growth of the root.
install() {
  local before start=$SECONDS
  before=$(du -sxm "$root" | cut -f 1)
  run "$1" > "$work/install.log" 2>&1 || { tail -n 30 "$work/install.log" >&2; return 1; }
  echo "$suite $kind: installed in $((SECONDS - start)) s, $(($(du -sxm "$root" | cut -f 1) - before)) MB"
}

# tour PYTHON [BIN]: BIN is the folder of the program, if it is not on the path.
tour() {
  local start=$SECONDS
  run "PATH=${2:+$2:}\$PATH /tour/packaging/tour.sh /tour/examples $1"
  echo "$suite $kind: tour in $((SECONDS - start)) s"
}

no_compiler() { run '! command -v cc g++ gcc' > /dev/null; }

test_wheel() {
  install_in "$root" python3-venv
  install 'python3 -m venv /venv && /venv/bin/pip install /files/qkv-*_'"$processor.whl"
  no_compiler
  tour /venv/bin/python /venv/bin
}

test_deb() {
  install_in "$root"
  install "apt-get install -y /files/qkv_*+deb${number}_${architecture}.deb /files/python3-qkv_*+deb${number}_${architecture}.deb"
  no_compiler
  tour python3
  run 'apt-get purge -y qkv python3-qkv' > /dev/null
  [ -z "$(run 'find /usr /etc /var/lib -name "*qkv*"')" ] || { run 'find /usr /etc /var/lib -name "*qkv*"' >&2; return 1; }
}

# The development packages, with both libraries, by CMake and pkg-config, and the plugin for MPI.
test_library() {
  install_in "$root" g++ cmake ninja-build pkg-config
  install "apt-get install -y /files/{qkv,libqkv0.1,libqkv-dev,qkv-mpi}_*+deb${number}_${architecture}.deb"
  for component in static shared; do
    run "cmake -G Ninja -S /tour/user/find_package -B /tmp/$component -DQKV_COMPONENT=$component > /dev/null
      cmake --build /tmp/$component > /dev/null && /tmp/$component/user"
  done
  run 'g++ -std=c++20 /tour/user/main.cc $(pkg-config --cflags --libs qkv) -o /tmp/user && /tmp/user'
  run 'cd /tmp && mpirun --allow-run-as-root --oversubscribe -n 2 qkv train lm --text /tour/examples/grammar/test.en \
    --out lm --decoder-layers 1 --d-model 64 --heads 2 --ffn 128 --batch-tokens 256 --max-steps 4 --shards 2 --threads 1
    test -s lm/metrics.jsonl'
}

test_sdist() {
  install_in "$root" python3-venv
  install 'tar -xOf /files/qkv-*.tar.gz --wildcards "*/install.sh" > /tmp/install.sh && bash /tmp/install.sh
    python3 -m venv /venv && /venv/bin/pip install /files/qkv-*.tar.gz'
  tour /venv/bin/python /venv/bin
}

test_lint() {
  install_in "$root" lintian
  run "lintian --allow-root --fail-on error --tag-display-limit 0 /files/*+deb${number}_${architecture}.deb"
}

for suite in "${suites[@]}"; do
  python3 -m pip download -q -d "$work/pypi-$suite" --only-binary :all: --python-version "${pythons[$suite]}" \
    --platform "manylinux_2_28_$processor" --platform "manylinux_2_27_$processor" --platform "manylinux2014_$processor" \
    numpy nanobind-backend nanobind scikit-build-core
  for kind in "${kinds[@]}"; do
    root=$work/$suite-$kind
    make_root "$suite" "$root"
    number=$(. "$root/etc/os-release" && echo "$VERSION_ID")
    "test_$kind"
    rm -rf "$root"
    echo "$suite $kind: passed"
  done
done
