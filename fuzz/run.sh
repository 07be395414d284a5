#!/usr/bin/env bash
# fuzz/run.sh [TARGET...] [--seconds N | --inputs N]: builds the fuzz targets and runs those named, or all, as many at a
# time as there are cores, each for N seconds (10 by default) or N inputs. Inputs that reach new code are kept in
# build/fuzz/corpus/TARGET, and the next run starts from them; an input that breaks a reader goes to
# build/fuzz/findings/TARGET-*. `build/asan/fuzz/fuzz_TARGET FILE` runs one input again.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=() limit=-max_total_time=10
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds | --inputs)
      [[ "${2:-}" =~ ^[0-9]+$ ]] || { echo "fuzz/run.sh: $1 wants a number" >&2; exit 2; }
      [ "$1" = --seconds ] && limit="-max_total_time=$2" || limit="-runs=$2"
      shift 2 ;;
    -*) echo "fuzz/run.sh: unknown option $1" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
./install.sh clang-19 libclang-rt-19-dev libomp-19-dev lld-19
mkdir -p build/fuzz/{findings,logs}
build() {
  cmake --preset asan && cmake --build --preset asan --target fuzz
}
build > build/fuzz/logs/build.log 2>&1 || { cat build/fuzz/logs/build.log; exit 1; }
rm -rf build/fuzz/seeds  # which may have those of targets that are gone
build/asan/fuzz/fuzz_seeds build/fuzz/seeds
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls build/fuzz/seeds)

# How much memory a reader may take is in reader.cc; the limit here is that of the whole process.
run_target() {
  local log="build/fuzz/logs/$1.log" status=passed
  mkdir -p "build/fuzz/corpus/$1"
  "build/asan/fuzz/fuzz_$1" "$limit" -timeout=20 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
    "-artifact_prefix=build/fuzz/findings/$1-" "build/fuzz/corpus/$1" "build/fuzz/seeds/$1" > "$log" 2>&1 || status=failed
  echo "$1: $(awk '/^stat::number_of_executed_units/ { print $2 }' "$log") inputs, $status"
  [ $status = passed ] || { grep -E '^(==[0-9]|qkv: |SUMMARY|Test unit)|runtime error' "$log" | head -n 5; return 1; }
}
export -f run_target
# Short stacks and little quarantine make most targets half as fast again. Frames of functions that end by an exception
# stay in the list that finds use after return, which is searched for each call: a reader that refuses most inputs is ten
# times as slow with it. An input that is run alone has the defaults.
export limit ASAN_OPTIONS=malloc_context_size=1:quarantine_size_mb=16:detect_stack_use_after_return=0
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm  # what importers write is in memory
status=0
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I {} bash -c 'run_target {}' | tee build/fuzz/logs/summary || status=1
echo "$(grep -c " failed$" build/fuzz/logs/summary) failed, $(grep -c " passed$" build/fuzz/logs/summary) passed"
exit $status
