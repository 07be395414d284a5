#include "data/examples/example_file.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/fail.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kExampleChunk = 64;  // lines

}  // namespace

ExampleFile::ExampleFile(const std::string& path, const std::vector<std::string>& columns, ExampleArrays arrays)
    : path_(path),
      parser_(path, columns, arrays),
      lines_(path, kExampleChunk, [this](int64_t number, std::string_view line) { check(number, line); }) {
  if (rows() == 0) fail("{}: contains no rows{}", path, header_line_ > 0 ? " after its header" : "");
}

void ExampleFile::check(int64_t number, std::string_view line) {
  if (number % kExampleChunk == 1) rows_before_.push_back(rows_before_.back());
  if (line.empty()) return;
  const Place where{path_, number};
  if (!std::exchange(started_, true) && !parser_.start(line, where)) {
    header_line_ = number;
    return;
  }
  const int64_t fields = std::ssize(parser_.fields_of(line, where));
  if (fields == 0) fail("{}: the row has no fields, only empty arrays", where.text());
  if (fields_ == 0) fields_ = fields;
  if (fields != fields_) fail("{}: expected {} fields as in the first row (found {})", where.text(), fields_, fields);
  rows_before_.back()++;
}

std::string ExampleFile::name_of_field(size_t field) const {
  if (names().empty()) return fmt::format("column {}", field + 1);
  if (std::ssize(names()) != fields_) return fmt::format("field {}", field + 1);
  return fmt::format("column {}", excerpt(names()[field]));
}

std::vector<ExampleRow> ExampleFile::read(std::span<const int64_t> rows) const {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return rows[i]; });
  std::vector<ExampleRow> read(rows.size()), chunk_rows;
  int64_t chunk = -1;
  for (const size_t i : order) {
    const int64_t of_row = std::ranges::upper_bound(rows_before_, rows[i]) - rows_before_.begin() - 1;
    if (std::exchange(chunk, of_row) != of_row) chunk_rows = lines_of_rows(chunk);
    const ExampleRow& line = chunk_rows.at(to_size(rows[i] - rows_before_[to_size(chunk)]));
    const Place where{path_, line.line};
    read[i].fields = parser_.fields_of(line.fields[0], where);
    read[i].line = line.line;
  }
  return read;
}

// Returns the rows of a chunk, each as one field, its line.
std::vector<ExampleRow> ExampleFile::lines_of_rows(int64_t chunk) const {
  std::vector<ExampleRow> rows;
  int64_t number = chunk * kExampleChunk;
  for (std::string& line : lines_.read(chunk)) {
    number++;
    if (!line.empty() && number != header_line_) rows.push_back({{std::move(line)}, number});
  }
  return rows;
}

std::string ExampleFile::fingerprint() const { return fmt::format("{:016x}", hash_mix(lines_.hash(), parser_.hash())); }

}  // namespace qkv
