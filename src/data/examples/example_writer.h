// The lines of a file of rows of texts that ExampleFile reads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/log/event_fields.h"

namespace qkv {

class ExampleWriter {
 public:
  // names: of the columns. The format depends on the end of the path: .csv, .tsv, or .jsonl, .json or .ndjson for JSON
  // lines. Throws Error for another one.
  ExampleWriter(const std::string& path, std::vector<std::string> names);

  // Returns the line with the names; "" for JSON lines.
  std::string header() const;

  // Returns the line of a row. texts: valid UTF-8, one for each name. Throws Error for a text that a table cannot hold:
  // one with a line break or, between tabs, a tab. where: begins the message.
  std::string line(std::span<const std::string_view> texts, std::string_view where) const;

 private:
  std::string path_;
  std::vector<std::string> names_;
  EventFormat format_;
};

}  // namespace qkv
