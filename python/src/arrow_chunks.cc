#include "arrow_chunks.h"

#include <fmt/format.h>

#include <string_view>

#include "qkv/error.h"

namespace qkv::python {
namespace {

constexpr int64_t kMostColumns = 100'000;

}  // namespace

ArrowChunks::ArrowChunks(std::string name, ArrowArrayStream& stream, void (*after_call)())
    : name_(std::move(name)), after_call_(after_call) {
  stream_.take(stream);
  if (!stream_.value.get_schema || !stream_.value.get_next)
    throw Error(fmt::format("{}: the Arrow stream lacks a function", name_));
  check_stream(stream_.value.get_schema(&stream_.value, &schema_.value));
  check_schema();
}

ArrowChunks::ArrowChunks(std::string name, ArrowSchema& schema, ArrowArray& array)
    : name_(std::move(name)), single_(true) {
  schema_.take(schema);
  chunk_.take(array);
  check_schema();
}

void ArrowChunks::check_schema() const {
  if (!schema_.value.format) throw Error(fmt::format("{}: the Arrow schema has no format", name_));
  const int64_t n = schema_.value.n_children;
  if (n < 0 || n > kMostColumns || (n > 0 && !schema_.value.children))
    throw Error(fmt::format("{}: an Arrow schema of {} columns is invalid", name_, n));
  for (int64_t i = 0; i < n; i++)
    if (!schema_.value.children[i]) throw Error(fmt::format("{}: the Arrow schema lacks column {}", name_, i));
}

void ArrowChunks::check_stream(int status) {
  after_call_();
  if (status == 0) return;
  const char* text = stream_.value.get_last_error ? stream_.value.get_last_error(&stream_.value) : nullptr;
  const std::string_view message = text ? text : "";
  throw Error(fmt::format("{}: the Arrow stream failed with status {}: {}", name_, status,
                          shown(message.substr(0, message.find('\n')))));
}

bool ArrowChunks::is_table() const { return std::string_view(schema_.value.format) == "+s"; }

std::vector<std::string> ArrowChunks::columns() const {
  if (!is_table())
    throw Error(
        fmt::format("{} is a column of the Arrow type \"{}\", expected a table", name_, shown(schema_.value.format)));
  std::vector<std::string> names;
  for (int64_t i = 0; i < schema_.value.n_children; i++) {
    const char* column = schema_.value.children[i]->name;
    names.emplace_back(column ? column : "");
  }
  return names;
}

bool ArrowChunks::next() {
  if (single_) {
    single_ = false;
    check_chunk();
    return true;
  }
  if (!stream_.value.release) return false;
  if (chunk_.value.release) first_row_ += chunk_.value.length;
  chunk_.reset();
  check_stream(stream_.value.get_next(&stream_.value, &chunk_.value));
  if (!chunk_.value.release) return false;
  check_chunk();
  return true;
}

// Checks what the columns of a table do not check.
void ArrowChunks::check_chunk() const {
  const ArrowArray& chunk = chunk_.value;
  if (chunk.length < 0 || chunk.offset < 0 || chunk.offset >= kMostArrowRows ||
      chunk.length >= kMostArrowRows - first_row_)
    throw Error(
        fmt::format("{}: an Arrow array of length {} and offset {} is invalid", name_, chunk.length, chunk.offset));
  if (!is_table()) return;
  if (chunk.n_children != schema_.value.n_children || (chunk.n_children > 0 && !chunk.children))
    throw Error(fmt::format("{}: an Arrow array has {} columns, and its schema {}", name_, chunk.n_children,
                            schema_.value.n_children));
  if (chunk.null_count == 0 || chunk.n_buffers < 1 || !chunk.buffers || !chunk.buffers[0]) return;
  const auto* valid = static_cast<const uint8_t*>(chunk.buffers[0]);
  for (int64_t i = 0; i < chunk.length; i++)
    if (const int64_t bit = chunk.offset + i; !(valid[bit / 8] >> (bit % 8) & 1))
      throw Error(fmt::format("{}, row {} (from 0): all columns are null", name_, first_row_ + i));
}

ArrowColumn ArrowChunks::column(size_t index) const {
  const ArrowArray& chunk = chunk_.value;
  const ArrowSchema& schema = *schema_.value.children[index];
  const std::string where = fmt::format("{}: column \"{}\"", name_, shown(schema.name ? schema.name : ""));
  if (!chunk.children[index]) throw Error(fmt::format("{} is missing in an Arrow array", where));
  return {schema, *chunk.children[index], chunk.offset, chunk.length, where, first_row_};
}

ArrowColumn ArrowChunks::column() const {
  if (is_table()) throw Error(fmt::format("{} is a table, expected a column of strings", name_));
  return {schema_.value, chunk_.value, 0, chunk_.value.length, name_, first_row_};
}

}  // namespace qkv::python
