// metrics.jsonl: what a training run measured, one JSON object a line, in the order of its steps.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/file_descriptor.h"

namespace qkv {

// Appends to the file. A line is handed to the system whole and at once, so that a reader (tail -f) never waits for it.
class MetricsWriter {
 public:
  explicit MetricsWriter(const std::string& path);

  // record: an object with an integer "step". A number that is not finite becomes null. Throws Error naming the file.
  void append(const nlohmann::ordered_json& record);

 private:
  std::string path_;
  FileDescriptor file_;
};

// Before a run resumes after `step`: drops what it will measure again, the lines with a later "step", and a last line
// that a crash cut short. Gives the last record kept, if there is one; a missing file has none. The file is replaced
// as a whole. Throws Error naming the line if one before the last is not such an object.
std::optional<nlohmann::json> truncate_metrics_after(const std::string& path, int64_t step);

}  // namespace qkv
