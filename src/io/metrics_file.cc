#include "io/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/fail.h"
#include "core/function_ref.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "io/atomic_file.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr size_t kBlock = size_t{1} << 20;     // bytes that are read or written at a time
constexpr size_t kMaxLine = size_t{16} << 20;  // bytes

json parse_record(std::string_view line, const std::string& where) {
  json record = parse_json(line, where);
  if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() ||
      record["step"].get<int64_t>() < 0)
    fail("{}: must be a JSON object with a non-negative integer \"step\"", where);
  return record;
}

// Calls f(line, number) for each line, with its line break; bytes after the last one are no line. Takes the memory of a
// line, however large the file is. Returns the bytes of the file.
size_t for_lines(const std::string& path, FunctionRef<void(std::string_view, size_t)> f) {
  const FileDescriptor file = open_input(path);
  std::vector<char> block(kBlock);
  std::string text;  // that was read and is no whole line yet
  size_t bytes = 0, number = 1;
  while (const size_t count = read_some(file.get(), std::as_writable_bytes(std::span(block)), path)) {
    bytes += count;
    text.append(block.data(), count);
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
      f(std::string_view(text).substr(begin, end + 1 - begin), number++);
    text.erase(0, begin);
    if (text.size() > kMaxLine) fail("{}:{}: has more than {} bytes", path, number, kMaxLine);
  }
  return bytes;
}

// Replaces the file by one with the lines that are chosen.
void keep_lines(const std::string& path, FunctionRef<bool(std::string_view, size_t)> is_kept) {
  AtomicFile file(path);
  std::string text;
  for_lines(path, [&](std::string_view line, size_t number) {
    if (is_kept(line, number)) text += line;
    if (text.size() < kBlock) return;
    file.write(text);
    text.clear();
  });
  file.write(text);
  file.commit();
}

}  // namespace

MetricsWriter::MetricsWriter(const std::string& path)
    : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY)) {
  if (!file_) fail_file(path_, "cannot be opened for appending");
}

void MetricsWriter::append(const nlohmann::ordered_json& record) {
  const std::string line = record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (!write_all(file_.get(), std::as_bytes(std::span(line)))) fail_file(path_, "cannot be written");
}

std::optional<json> truncate_metrics_after(const std::string& path, int64_t step) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  const auto record_of = [&](std::string_view line, size_t number) {
    return parse_record(line, fmt::format("{}:{}", path, number));
  };
  std::optional<json> last;
  size_t kept = 0;  // bytes
  const size_t bytes = for_lines(path, [&](std::string_view line, size_t number) {
    json record = record_of(line, number);
    if (record["step"] > step) return;
    kept += line.size();
    last = std::move(record);
  });
  if (kept < bytes)
    keep_lines(path, [&](std::string_view line, size_t number) { return record_of(line, number)["step"] <= step; });
  return last;
}

}  // namespace qkv
