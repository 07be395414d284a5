#include "data/examples/example_parser.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/ascii.h"
#include "core/fail.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

using nlohmann::json;

// A list of the names that columns usually have.
struct UsualNames {
  std::initializer_list<std::string_view> texts;
  bool negatives;                                  // whether names of negatives follow
  std::initializer_list<std::string_view> values;  // the first of these, else of kScoreNames, that is there is last
};
const UsualNames kUsualNames[] = {
    {{"anchor", "positive"}, true, {"score", "label"}},
    {{"query", "positive"}, true, {"score", "label"}},
    {{"sentence1", "sentence2"}, false, {"score", "label"}},
    {{"text1", "text2"}, false, {"label", "score"}},
    {{"premise", "hypothesis"}, false, {"label", "score"}},
    {{"query", "text"}, false, {"relevance", "label", "score"}},
    {{"text"}, false, {"label", "labels", "category", "class"}},
    {{"sentence"}, false, {"label", "labels", "category", "class"}},
};
constexpr std::string_view kScoreNames[] = {"score", "label", "similarity", "similarity_score", "relevance", "margin"};

using ColumnNames = std::span<const std::string_view>;

// Returns the place of a name in a list, with or without capital letters. usual: in lower case.
auto find_usual(ColumnNames names, std::string_view usual) {
  return std::ranges::find_if(names, [&](std::string_view name) { return equals_ignoring_case(name, usual); });
}

// Returns the names, as they are spelled, of the first list whose texts are all there; empty if there is none.
std::vector<std::string> usual_columns(ColumnNames names) {
  const auto has = [&](std::string_view usual) { return find_usual(names, usual) != names.end(); };
  const auto usual =
      std::ranges::find_if(kUsualNames, [&](const UsualNames& list) { return std::ranges::all_of(list.texts, has); });
  if (usual == std::end(kUsualNames)) return {};
  std::vector<std::string> chosen;
  for (const std::string_view text : usual->texts) chosen.emplace_back(*find_usual(names, text));
  for (const std::string_view name : names)
    if (usual->negatives && is_negative_name(name)) chosen.emplace_back(name);
  std::vector<std::string_view> values(usual->values);
  values.insert(values.end(), std::begin(kScoreNames), std::end(kScoreNames));
  if (const auto value = std::ranges::find_if(values, has); value != values.end())
    chosen.emplace_back(*find_usual(names, *value));
  return chosen;
}

// Returns the first names, for an error message.
std::string found_names(ColumnNames names) {
  constexpr size_t kEnough = 100;  // bytes
  std::string text;
  for (const std::string_view name : names) {
    if (text.size() >= kEnough) return text + ", ...";
    text += (text.empty() ? "" : ", ") + excerpt(name);
  }
  return text.empty() ? "none" : text;
}

bool is_column_number(std::string_view entry) {
  return !entry.empty() && entry.find_first_not_of("0123456789") == entry.npos;
}

// Returns the index of the column that an entry names or numbers.
size_t place_of(std::string_view entry, ColumnNames first, const Place& where) {
  if (!is_column_number(entry)) {
    const auto place = std::ranges::find(first, entry);
    if (place == first.end())
      fail("{}: no column {} in the first line (found {})", where.text(), excerpt(entry), found_names(first));
    return to_size(place - first.begin());
  }
  size_t number = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc() || number < 1 || number > first.size())
    fail("{}: no column {} among the {} columns", where.text(), excerpt(entry), first.size());
  return number - 1;
}

bool has_outside_quotes(std::string_view line, char separator) {
  bool quoted = false;
  for (const char c : line) {
    quoted ^= c == '"';
    if (!quoted && c == separator) return true;
  }
  return false;
}

// Returns the end of a file's name from its last dot, in lower case and without that of a compressed file.
std::string extension_of(std::string_view path) {
  const std::string name = ascii_lower(path.substr(path.rfind('/') + 1));  // npos + 1 = 0
  std::string_view rest = name;
  for (const std::string_view compressed : {".gz", ".zst"})
    if (rest.ends_with(compressed)) rest.remove_suffix(compressed.size());
  const size_t dot = rest.rfind('.');
  return dot == rest.npos ? "" : std::string(rest.substr(dot));
}

bool is_object(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first != line.npos && line[first] == '{';
}

EventFormat comma_or_semicolon(std::string_view line, EventFormat otherwise) {
  if (has_outside_quotes(line, ',')) return EventFormat::csv;
  return has_outside_quotes(line, ';') ? EventFormat::semicolons : otherwise;
}

// Returns the format of a file by the end of its name and its first line.
EventFormat example_format(std::string_view extension, std::string_view line) {
  if (extension == ".csv") return comma_or_semicolon(line, EventFormat::csv);
  if (extension == ".tsv") return EventFormat::tabs;
  if (extension == ".jsonl" || extension == ".json" || extension == ".ndjson" || is_object(line))
    return EventFormat::json;
  if (extension == ".txt" || line.find('\t') != line.npos) return EventFormat::tabs;
  return comma_or_semicolon(line, EventFormat::tabs);
}

json parse_object(std::string_view line, const Place& where) {
  json value = parse_json(line, where.text());
  if (!value.is_object())
    fail("{}: expected a JSON object (found {} {})", where.text(), value.is_array() ? "an" : "a", value.type_name());
  return value;
}

// Returns whether a value can be one field.
bool is_field(const json& value) { return value.is_string() || value.is_number() || value.is_boolean(); }

std::string field_text(const json& value) {
  return value.is_string() ? value.get_ref<const std::string&>() : value.dump();
}

// Returns the member of this name. Throws Error unless it is there and can be one field or, if it may be an array,
// several.
const json& member_of(const json& object, const std::string& name, bool may_be_array, const Place& where) {
  const auto member = object.find(name);
  if (member == object.end()) fail("{}: the object has no member {}", where.text(), excerpt(name));
  if (may_be_array && member->is_array()) {
    const auto wrong = std::ranges::find_if_not(*member, is_field);
    if (wrong != member->end())
      fail("{}: element {} of {} must be a string, a number or a boolean (is {})", where.text(),
           wrong - member->begin() + 1, excerpt(name), wrong->type_name());
  } else if (!is_field(*member)) {
    fail("{}: {} must be a string, a number{} (is {})", where.text(), excerpt(name),
         may_be_array ? ", a boolean or an array of these" : " or a boolean", member->type_name());
  }
  return *member;
}

}  // namespace

bool is_score_name(std::string_view name) {
  return std::ranges::any_of(kScoreNames, [&](std::string_view score) { return equals_ignoring_case(name, score); });
}

bool is_negative_name(std::string_view spelled) {
  const std::string lower = ascii_lower(spelled);
  std::string_view name = lower;
  constexpr std::string_view kHard = "hard_", kNegative = "negative";
  if (name.starts_with(kHard)) name.remove_prefix(kHard.size());
  if (!name.starts_with(kNegative)) return false;
  name.remove_prefix(kNegative.size());
  if (name == "s") return true;
  if (name.starts_with('_')) name.remove_prefix(1);
  return name.find_first_not_of("0123456789") == name.npos;
}

ExampleParser::ExampleParser(const std::string& path, const std::vector<std::string>& columns, ExampleArrays arrays)
    : extension_(extension_of(path)), columns_(columns), arrays_(arrays) {}

bool ExampleParser::start(std::string_view line, const Place& where) {
  format_ = example_format(extension_, line);
  if (format_ != EventFormat::json) return start_table(line, where);
  start_json(line, where);
  return true;
}

bool ExampleParser::start_table(std::string_view line, const Place& where) {
  Fields fields;
  split(line, where, fields);
  const ColumnNames first = fields.values;
  width_ = first.size();
  const std::vector<std::string> usual = usual_columns(first);
  const auto is_name = [&](std::string_view column) {
    return !is_column_number(column) && std::ranges::find(first, column) != first.end();
  };
  const bool header = !usual.empty() || std::ranges::any_of(columns_, is_name);
  for (const std::string& column : columns_.empty() ? usual : columns_)
    places_.push_back(place_of(column, first, where));
  for (size_t i = 0; places_.size() < width_ && columns_.empty() && usual.empty(); i++) places_.push_back(i);
  for (size_t i = 0; header && i < places_.size(); i++) names_.emplace_back(first[places_[i]]);
  for (size_t i = 0; header && i < width_; i++)
    if (std::ranges::find(places_, i) == places_.end()) unused_.emplace_back(first[i]);
  return !header;
}

void ExampleParser::start_json(std::string_view line, const Place& where) {
  if (const size_t begin = line.find_first_not_of(" \t"); begin != line.npos && line[begin] == '[')
    fail("{}: expected one JSON object per line (found an array; \"jq -c .[] FILE\" converts it)", where.text());
  names_ = columns_;
  if (!columns_.empty()) return;
  const json object = parse_object(line, where);
  std::vector<std::string_view> members;
  for (const auto& [name, value] : object.get_ref<const json::object_t&>()) members.emplace_back(name);
  std::ranges::stable_sort(members, {}, &std::string_view::size);  // negative_2 is before negative_10
  names_ = usual_columns(members);
  for (const std::string_view member : members)
    if (std::ranges::find(names_, member) == names_.end()) unused_.emplace_back(member);
  if (names_.empty())
    fail("{}: cannot determine which members are the columns; set columns to their names (found {})", where.text(),
         found_names(members));
}

std::vector<std::string> ExampleParser::fields_of(std::string_view line, const Place& where) const {
  return format_ == EventFormat::json ? json_fields(line, where) : table_fields(line, where);
}

// Splits a line of a table.
void ExampleParser::split(std::string_view line, const Place& where, Fields& fields) const {
  if (!split_fields(line, format_, where, fields))
    fail("{}: a quoted field is not closed on its line; give texts with line breaks as JSON lines", where.text());
}

std::vector<std::string> ExampleParser::table_fields(std::string_view line, const Place& where) const {
  Fields fields;
  split(line, where, fields);
  if (fields.values.size() != width_)
    fail("{}: expected {} columns as in the first line (found {})", where.text(), width_, fields.values.size());
  std::vector<std::string> chosen;
  for (const size_t place : places_) chosen.emplace_back(fields.values[place]);
  return chosen;
}

std::vector<std::string> ExampleParser::json_fields(std::string_view line, const Place& where) const {
  const json object = parse_object(line, where);
  const bool expand = arrays_ == ExampleArrays::fields;
  std::vector<const json*> values;
  size_t count = 0;
  for (size_t i = 0; i < names_.size(); i++) {
    values.push_back(&member_of(object, names_[i], expand || i + 1 == names_.size(), where));
    count += expand && values[i]->is_array() ? values[i]->size() : 1;
  }
  std::vector<std::string> fields;
  fields.reserve(count);
  for (const json* value : values)
    if (expand && value->is_array())
      std::ranges::transform(*value, std::back_inserter(fields), field_text);
    else
      fields.push_back(field_text(*value));
  return fields;
}

std::vector<size_t> ExampleParser::column_numbers() const {
  std::vector<size_t> numbers;
  for (const size_t place : places_) numbers.push_back(place + 1);
  return numbers;
}

uint64_t ExampleParser::hash() const {
  uint64_t hash = hash_mix(to_size(format_), to_size(arrays_));
  for (const size_t place : places_) hash = hash_mix(hash, place);
  for (const std::string& name : names_) hash = hash_mix(hash, hash_bytes(name));
  return hash;
}

}  // namespace qkv
