// metrics.jsonl of a run that is resumed.
#include "io/metrics.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "fuzz/reader.h"

void qkv::fuzz::fuzz_metrics(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto last = truncate_metrics_after(file.path(), std::numeric_limits<int64_t>::max());
  require(!last || (*last)["step"].get<int64_t>() >= 0, "the last record has a step");
}
