#include "data/examples/example_writer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/ascii.h"
#include "core/fail.h"
#include "text/lines.h"

namespace qkv {
namespace {

EventFormat written_format(const std::string& path) {
  const std::string name = ascii_lower(path);
  if (name.ends_with(".csv")) return EventFormat::csv;
  if (name.ends_with(".tsv")) return EventFormat::tabs;
  if (name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".ndjson")) return EventFormat::json;
  fail("{}: the name of a file of rows to write must end in .csv, .tsv or .jsonl", path);
}

}  // namespace

ExampleWriter::ExampleWriter(const std::string& path, std::vector<std::string> names)
    : path_(path), names_(std::move(names)), format_(written_format(path)) {}

std::string ExampleWriter::header() const {
  if (format_ == EventFormat::json) return "";
  return line(std::vector<std::string_view>(names_.begin(), names_.end()), path_);
}

std::string ExampleWriter::line(std::span<const std::string_view> texts, std::string_view where) const {
  if (format_ == EventFormat::json) {
    nlohmann::ordered_json object;
    for (size_t i = 0; i < names_.size(); i++) object[names_[i]] = texts[i];
    return object.dump() + "\n";
  }
  const bool is_csv = format_ == EventFormat::csv;
  std::string line;
  for (const std::string_view text : texts) {
    if (text.find_first_of(is_csv ? "\n" : "\t\r\n") != text.npos)
      fail("{}: a text has a line break{}, which {} cannot hold; write rows to a name that ends in .jsonl", where,
           is_csv ? "" : " or a tab", path_);
    if (!line.empty()) line += is_csv ? ',' : '\t';
    line += is_csv ? csv_field(std::string(text)) : std::string(text);
  }
  return line + "\n";
}

}  // namespace qkv
