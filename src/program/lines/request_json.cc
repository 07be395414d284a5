#include "program/lines/request_json.h"

#include <set>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

constexpr size_t kLevels = 4;  // of arrays and objects with contents

// Builds the value from parser events. ordered_json itself compares each name with all others of its object, and its
// parser with a callback looks through an array after each object in it. A hash table can be made slow by its names.
class RequestBuilder {
 public:
  ordered_json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(ordered_json::binary_t&) { return false; }  // not in JSON text
  bool start_object(size_t) { return open(ordered_json::object()); }
  bool start_array(size_t) { return open(ordered_json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    check_levels();
    Level& level = open_.back();
    auto& members = level.value->get_ref<ordered_json::object_t&>();
    if (!level.names.insert(name).second) fail("the name {} stands twice in one object", excerpt(name));
    members.emplace_back(std::move(name), nullptr);
    return true;
  }

  bool parse_error(size_t, const std::string&, const ordered_json::exception&) { fail("not valid JSON"); }

 private:
  struct Level {
    ordered_json* value;  // an array or object, the last value of its parent
    std::set<std::string> names = {};
  };

  bool add(ordered_json value) {
    put(std::move(value));
    return true;
  }
  bool open(ordered_json value) {
    open_.push_back({put(std::move(value))});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  ordered_json* put(ordered_json value) {
    check_levels();
    if (open_.empty()) return &(root_ = std::move(value));
    Level& level = open_.back();
    if (level.value->is_array()) return &level.value->get_ref<ordered_json::array_t&>().emplace_back(std::move(value));
    return &(level.value->get_ref<ordered_json::object_t&>().back().second = std::move(value));
  }

  void check_levels() const {
    if (open_.size() > kLevels) fail("JSON must have at most {} levels", kLevels);
  }

  ordered_json root_;
  std::vector<Level> open_;
};

}  // namespace

ordered_json parse_request_json(std::string_view text) {
  // The parser takes a NUL for the end of the text, and would not see what follows.
  if (text.find('\0') != text.npos) fail("not valid JSON");
  RequestBuilder builder;
  ordered_json::sax_parse(text.begin(), text.end(), &builder);
  ordered_json json = builder.take();
  if (!json.is_object()) fail("not a JSON object");
  return json;
}

std::string json_text(const ordered_json& json) {
  return with_escaped_line_ends(json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string with_escaped_line_ends(std::string json) {
  constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"\u0085", "\\u0085"}, {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"}};
  std::string escaped;
  size_t begin = 0;  // of what is not yet in `escaped`
  for (size_t at = 0; at < json.size(); at++) {
    if (json[at] != '\xC2' && json[at] != '\xE2') continue;
    for (const auto& [end, escape] : kEscapes)
      if (std::string_view(json).substr(at).starts_with(end)) {
        escaped.append(json, begin, at - begin).append(escape);
        begin = at + end.size();
      }
  }
  if (begin == 0) return json;
  return escaped.append(json, begin);
}

std::string json_text_with_id(const std::string& id, const ordered_json& json) {
  std::string text = json_text(json);
  if (!id.empty()) text.insert(1, "\"id\":" + id + ",");
  return text;
}

}  // namespace qkv
