// Rows of labeled texts: what is accepted has rows of the same number of fields, which can be read in any order.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "data/examples/example_file.h"
#include "fuzz/reader.h"
#include "text/unicode.h"

namespace {

using qkv::fuzz::require;

void check_row(const qkv::ExampleFile& file, const qkv::ExampleRow& row) {
  require(std::ssize(row.fields) == file.fields(), "every row has the same number of fields");
  for (const std::string& field : row.fields)
    require(qkv::find_invalid_utf8(field) == std::string::npos, "fields are UTF-8");
}

// Reads the rows from the last one to the first, a few at once.
void check_rows(const qkv::ExampleFile& file) {
  constexpr int64_t kAtOnce = 16;
  int64_t line = INT64_MAX;
  for (int64_t end = file.rows(); end > 0; end -= kAtOnce) {
    std::vector<int64_t> rows;
    for (int64_t row = end; row > std::max<int64_t>(end - kAtOnce, 0); row--) rows.push_back(row - 1);
    for (const qkv::ExampleRow& row : file.read(rows)) {
      check_row(file, row);
      require(row.line < line && row.line > 0, "rows are in the order of their lines");
      line = row.line;
    }
  }
}

}  // namespace

void qkv::fuzz::fuzz_examples(std::string_view bytes) {
  const MemoryFile memory(bytes);
  const auto check = [&](const std::vector<std::string>& columns, ExampleArrays arrays) {
    attempt([&] {
      const ExampleFile file(memory.path(), columns, arrays);
      must_succeed([&] {
        check_rows(file);
        for (int64_t i = 0; i < file.fields(); i++) file.name_of_field(static_cast<size_t>(i));
      });
    });
  };
  check({}, ExampleArrays::fields);
  check({}, ExampleArrays::last);
  check({"2", "1"}, ExampleArrays::fields);
  check({"a", "b"}, ExampleArrays::last);
}
