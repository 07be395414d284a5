#include "convert/formats/yaml.h"

#include <unicode/utf8.h>
#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int kYamlDepth = 16;
constexpr int64_t kYamlValues = 1 << 16;

// Whether libyaml refuses a character, or takes it for the end of a line, as YAML 1.1 has it. For yaml-cpp, by which
// Marian reads and writes, these are ordinary characters.
bool is_foreign(UChar32 c) {
  return (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 || c == 0xFEFF || c == 0xFFFE || c == 0xFFFF;
}

// Characters that yaml-cpp before 0.8 writes in a byte more than they need.
constexpr std::pair<std::string_view, UChar32> kLongForms[] = {
    {"\xC1\xBF", 0x7F}, {"\xE0\x9F\xBF", 0x7FF}, {"\xF0\x8F\xBF\xBF", 0xFFFF}};

// A text of YAML as libyaml can read it: a foreign character becomes a mark, which the text has not, and four digits.
class YamlText {
 public:
  YamlText(std::string_view text, const std::string& where) {
    constexpr std::string_view kByteOrderMark = "\uFEFF";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    mark_ = unused_mark(text, where);
    text_.reserve(text.size());
    while (!text.empty()) text.remove_prefix(add_character(text, where));
  }

  const std::string& text() const { return text_; }

  // Returns a scalar with the characters that it had.
  std::string original(std::string_view scalar) const {
    std::string result;
    for (size_t at; (at = scalar.find(mark_)) != scalar.npos;) {
      result += scalar.substr(0, at);
      scalar.remove_prefix(at + mark_.size());
      UChar32 c = 0;
      std::from_chars(scalar.data(), scalar.data() + 4, c, 16);
      append_utf8(c, result);
      scalar.remove_prefix(4);
    }
    return result.append(scalar);
  }

 private:
  // A character of private use that the text neither holds nor spells by a number ("\U000F0012").
  static std::string unused_mark(std::string_view text, const std::string& where) {
    for (int i = 0; i < 100; i++) {
      std::string mark;
      append_utf8(0xF0000 + i / 10 * 16 + i % 10, mark);
      const std::string number = fmt::format("00{:02}", i);
      if (text.find(mark) == text.npos && text.find("F" + number) == text.npos && text.find("f" + number) == text.npos)
        return mark;
    }
    fail("{}: must leave one of the characters U+F0000 to U+F0099 unused", where);
  }

  static void append_utf8(UChar32 c, std::string& text) {
    char bytes[U8_MAX_LENGTH];
    int32_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, c);
    text.append(bytes, to_size(length));
  }

  // Adds the first character of a text, and returns its length.
  size_t add_character(std::string_view text, const std::string& where) {
    UChar32 c = -1;
    int64_t length = 0;
    U8_NEXT(text.data(), length, static_cast<int64_t>(text.size()), c);
    for (const auto& [form, code] : kLongForms)
      if (text.starts_with(form)) c = code, length = static_cast<int64_t>(form.size());
    if (c < 0) fail("{}: line {}: not valid UTF-8", where, std::ranges::count(text_, '\n') + 1);
    if (is_foreign(c))
      text_ += fmt::format("{}{:04X}", mark_, c);
    else
      append_utf8(c, text_);
    return to_size(length);
  }

  std::string mark_, text_;
};

// A parser of libyaml, which passes one event at a time.
class YamlEvents {
 public:
  YamlEvents(std::string_view text, const std::string& where) : text_(text, where), where_(where) {
    if (!yaml_parser_initialize(&parser_)) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text_.text().data()),
                                 text_.text().size());
  }
  ~YamlEvents() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;

  // Reads the next event.
  yaml_event_type_t next() {
    yaml_event_delete(&event_);
    event_ = {};
    if (!yaml_parser_parse(&parser_, &event_))
      fail("{}: line {}: not YAML: {}", where_, parser_.problem_mark.line + 1,
           parser_.problem ? parser_.problem : "cannot be read");
    if (event_.type == YAML_ALIAS_EVENT) wrong("aliases are not supported");
    return event_.type;
  }
  void expect(yaml_event_type_t type, const char* what) {
    if (next() != type) wrong(what);
  }

  yaml_event_type_t type() const { return event_.type; }
  std::string scalar() const {
    return text_.original({reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length});
  }
  bool is_plain() const { return event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE; }

  [[noreturn]] void wrong(std::string_view what) const {
    fail("{}: line {}: {}", where_, event_.start_mark.line + 1, what);
  }

 private:
  const YamlText text_;
  yaml_parser_t parser_ = {};
  yaml_event_t event_ = {};
  const std::string& where_;
};

// Reads up to the beginning of the one mapping of a text.
void begin_mapping(YamlEvents& events) {
  events.expect(YAML_STREAM_START_EVENT, "must begin a stream");
  events.expect(YAML_DOCUMENT_START_EVENT, "must be a mapping");
  events.expect(YAML_MAPPING_START_EVENT, "must be a mapping");
}

void end_text(YamlEvents& events) {
  events.expect(YAML_DOCUMENT_END_EVENT, "must be one mapping");
  events.expect(YAML_STREAM_END_EVENT, "must be one document");
}

json plain_value(std::string_view text) {
  if (text.empty() || text == "~" || text == "null") return {};
  if (text == "true" || text == "false") return text == "true";
  const char *begin = text.data(), *end = begin + text.size();
  int64_t integer = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, integer); error == std::errc() && stop == end)
    return integer;
  double number = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, number);
      error == std::errc() && stop == end && std::isfinite(number))
    return number;
  return std::string(text);
}

class YamlReader {
 public:
  explicit YamlReader(YamlEvents& events) : events_(events) {}

  // The mapping whose beginning was read.
  json mapping(int depth) {
    json object = json::object();
    while (events_.next() != YAML_MAPPING_END_EVENT) {
      if (events_.type() != YAML_SCALAR_EVENT) events_.wrong("a key must be a scalar");
      const std::string key = events_.scalar();
      events_.next();
      if (!object.emplace(key, value(depth)).second)
        events_.wrong(fmt::format("the key {} appears twice", excerpt(key)));
    }
    return object;
  }

 private:
  json value(int depth) {
    if (++values_ > kYamlValues) events_.wrong(fmt::format("must have at most {} values", kYamlValues));
    if (depth > kYamlDepth) events_.wrong(fmt::format("must have at most {} levels", kYamlDepth));
    if (events_.type() == YAML_MAPPING_START_EVENT) return mapping(depth + 1);
    if (events_.type() == YAML_SCALAR_EVENT)
      return events_.is_plain() ? plain_value(events_.scalar()) : json(events_.scalar());
    json array = json::array();
    while (events_.next() != YAML_SEQUENCE_END_EVENT) array.push_back(value(depth + 1));
    return array;
  }

  YamlEvents& events_;
  int64_t values_ = 0;
};

}  // namespace

json parse_yaml(std::string_view text, const std::string& where) {
  YamlEvents events(text, where);
  begin_mapping(events);
  json object = YamlReader(events).mapping(1);
  end_text(events);
  return object;
}

std::vector<std::string> parse_yaml_vocabulary(std::string_view text, const std::string& where) {
  YamlEvents events(text, where);
  begin_mapping(events);
  std::vector<std::string> pieces;
  std::vector<char> taken;
  size_t count = 0;
  for (; events.next() != YAML_MAPPING_END_EVENT; count++) {
    if (events.type() != YAML_SCALAR_EVENT) events.wrong("a piece must be a scalar");
    std::string piece = events.scalar();
    events.expect(YAML_SCALAR_EVENT, "an id must be a number");
    size_t id = 0;
    const std::string digits = events.scalar();
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (error != std::errc() || stop != digits.data() + digits.size() || id >= kMaxPieces)
      events.wrong(
          fmt::format("the id of {} must be a number below {} (is {})", excerpt(piece), kMaxPieces, excerpt(digits)));
    if (id >= pieces.size()) pieces.resize(id + 1), taken.resize(id + 1);
    if (taken[id]) events.wrong(fmt::format("{} and {} both have the id {}", excerpt(pieces[id]), excerpt(piece), id));
    taken[id] = 1;
    pieces[id] = std::move(piece);
  }
  end_text(events);
  for (size_t id = 0; id < pieces.size(); id++)
    if (!taken[id]) fail("{}: no piece has the id {}", where, id);
  return pieces;
}

}  // namespace qkv
