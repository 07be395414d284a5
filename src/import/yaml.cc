#include "import/yaml.h"

#include <yaml.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int kYamlDepth = 16;
constexpr int64_t kYamlValues = 1 << 16;

// A parser of libyaml, which passes one event at a time and copies nothing else of the text.
class YamlEvents {
 public:
  YamlEvents(std::string_view text, const std::string& where) : where_(where) {
    if (find_invalid_utf8(text) != std::string_view::npos) fail("{}: not valid UTF-8", where);
    if (!yaml_parser_initialize(&parser_)) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
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
  std::string_view scalar() const {
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }
  bool is_plain() const { return event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE; }

  [[noreturn]] void wrong(std::string_view what) const {
    fail("{}: line {}: {}", where_, event_.start_mark.line + 1, what);
  }

 private:
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
      const std::string key(events_.scalar());
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
      return events_.is_plain() ? plain_value(events_.scalar()) : json(std::string(events_.scalar()));
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
    std::string piece(events.scalar());
    events.expect(YAML_SCALAR_EVENT, "an id must be a number");
    size_t id = 0;
    const std::string_view digits = events.scalar();
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
