#include "io/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/file_descriptor.h"
#include "core/json.h"
#include "io/atomic_file.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{1} << 30;

json parse_record(std::string_view line, const std::string& where) {
  json record = parse_json(line, where);
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() ||
      record["step"].get<int64_t>() < 0)
    fail("{}: must be a JSON object with a non-negative integer \"step\"", where);
  return record;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::string& path)
    : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_APPEND)) {
  if (!file_) fail_file(path_, "cannot be opened for appending");
}

void MetricsWriter::append(const nlohmann::ordered_json& record) {
  const std::string line = record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (!write_all(file_.get(), std::as_bytes(std::span(line)))) fail_file(path_, "cannot be written");
}

std::optional<json> truncate_metrics_after(const std::string& path, int64_t step) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  const std::string content = read_file(path, kMaxBytes);
  std::string kept;
  std::optional<json> last;
  size_t number = 1;
  for (size_t begin = 0; begin < content.size(); number++) {
    const size_t end = content.find('\n', begin);
    if (end == content.npos) break;  // truncated: a whole line ends in a line break
    const std::string_view line(content.data() + begin, end + 1 - begin);
    json record = parse_record(line, fmt::format("{}:{}", path, number));
    if (record["step"] <= step) {
      kept += line;
      last = std::move(record);
    }
    begin = end + 1;
  }
  if (kept != content) write_file_atomic(path, kept);
  return last;
}

}  // namespace qkv
