// metrics.jsonl of a run that is resumed.
#include <limits>
#include <nlohmann/json.hpp>

#include "fuzz/reader.h"
#include "io/metrics_file.h"
#include "tests/support/temp_dir.h"

void qkv::fuzz::fuzz_metrics(std::string_view bytes) {
  static const testing::TempDir directory;  // the file is replaced by a shorter one
  const std::string path = directory / "metrics.jsonl";
  for (const int64_t step : {int64_t{1}, std::numeric_limits<int64_t>::max()})
    attempt([&] {
      testing::spill(path, std::string(bytes));
      const auto last = truncate_metrics_after(path, step);
      require(!last || ((*last)["step"].get<int64_t>() >= 0 && (*last)["step"].get<int64_t>() <= step),
              "the last record has a step that is kept");
    });
}
