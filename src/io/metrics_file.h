// metrics.jsonl: the measurements of a training run, one JSON object per line, in the order of steps.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/system/file_descriptor.h"

namespace qkv {

// Appends to the file. Each line is written in one system call, so a reader (tail -f) always sees whole lines.
class MetricsWriter {
 public:
  explicit MetricsWriter(const std::string& path);

  // record: an object with an integer "step". Numbers that are not finite become null. Throws Error, naming the file.
  void append(const nlohmann::ordered_json& record);

 private:
  std::string path_;
  FileDescriptor file_;
};

// Prepares the file for a run that resumes after `step`: drops lines with a later "step", which will be written again,
// and a last line that a crash truncated. Returns the last record that is kept, if any; a missing file has none. The
// file is replaced atomically. Throws Error, naming the line, if an earlier line is not such an object.
std::optional<nlohmann::json> truncate_metrics_after(const std::string& path, int64_t step);

}  // namespace qkv
