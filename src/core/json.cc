#include "core/json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

using nlohmann::json;

// The library's message without its prefix, its line and column, and the text it quotes from the file.
std::string reason(const json::exception& error) {
  if (dynamic_cast<const json::out_of_range*>(&error)) return "a number beyond the range of double";
  std::string message = error.what();
  if (const size_t begin = message.find(": "); begin != std::string::npos) message.erase(0, begin + 2);
  return message.substr(0, message.find("; last read"));
}

[[noreturn]] void fail_syntax(const std::string& where, size_t position, const json::exception& error) {
  fail("{}: not valid JSON at byte {}: {}", where, position, reason(error));
}

// Memory that values take, in bytes, their destruction included: one in an array that grows, one in an object with
// its name, and what an array, an object or a string has besides. The spare memory leaves room for what a reader makes
// of the value.
constexpr size_t kElement = 64, kMember = 112, kContent = 64;
constexpr size_t kSpareMemory = size_t{36} << 20;

// Builds the value from parser events. The parser itself keeps one bit a level, so depth never grows the call stack.
class Builder {
 public:
  Builder(size_t text_size, const std::string& where) : where_(where), memory_(text_size + kSpareMemory) {}

  json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) {
    spend(kContent + value.size());
    return add(std::move(value));
  }
  bool binary(json::binary_t&) { return false; }  // not in JSON text
  bool start_object(size_t) { return open(json::object()); }
  bool start_array(size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    spend(kMember + name.size());
    const auto [place, added] = open_.back()->get_ref<json::object_t&>().emplace(name, nullptr);
    if (!added) fail("{}: the name {} stands twice in one object", where_, excerpt(name));
    member_ = &place->second;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) {
    fail_syntax(where_, position, error);
  }

 private:
  bool add(json value) {
    put(std::move(value));
    return true;
  }

  bool open(json value) {
    if (open_.size() == kJsonDepth) fail("{}: JSON nested more than {} levels deep", where_, kJsonDepth);
    spend(kContent);
    open_.push_back(put(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  void spend(size_t bytes) {
    if (bytes > memory_)
      fail("{}: JSON of too many values, which take more memory than the text by over 36 MiB", where_);
    memory_ -= bytes;
  }

  json* put(json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &(*member_ = std::move(value));
    spend(kElement);
    return &open_.back()->get_ref<json::array_t&>().emplace_back(std::move(value));
  }

  const std::string& where_;
  size_t memory_;  // bytes that are left to spend
  json root_;
  std::vector<json*> open_;  // arrays and objects around the current place; an open one is the last of its parent
  json* member_ = nullptr;   // where the value of the last key goes
};

// Builds the value but for some lists in a member of the object, whose items it hands on.
class ListTaker {
 public:
  ListTaker(size_t text_size, const std::string& where, std::string_view object,
            std::span<const std::string_view> lists, FunctionRef<void(const JsonItem&)> take)
      : where_(where), builder_(text_size, where), object_(object), lists_(lists), take_(take) {}

  json take() { return builder_.take(); }

  bool null() { return inside() ? item({}) : builder_.null(); }
  bool boolean(bool value) { return inside() ? item({}) : builder_.boolean(value); }
  bool number_integer(int64_t value) {
    return inside() ? item({.kind = JsonItem::Kind::real, .real = static_cast<double>(value)})
                    : builder_.number_integer(value);
  }
  bool number_unsigned(uint64_t value) {
    return inside() ? item({.kind = JsonItem::Kind::number, .number = value, .real = static_cast<double>(value)})
                    : builder_.number_unsigned(value);
  }
  bool number_float(double value, const std::string& text) {
    return inside() ? item({.kind = JsonItem::Kind::real, .real = value}) : builder_.number_float(value, text);
  }
  bool string(std::string& value) {
    return inside() ? item({.kind = JsonItem::Kind::string, .text = value}) : builder_.string(value);
  }
  bool binary(json::binary_t&) { return false; }  // not in JSON text
  bool start_object(size_t count) {
    open();
    return within_ > 1 || builder_.start_object(count);
  }
  bool start_array(size_t count) {
    open();
    return within_ > 1 || builder_.start_array(count);
  }
  bool end_object() { return close() || builder_.end_object(); }
  bool end_array() { return close() || builder_.end_array(); }

  bool key(std::string& name) {
    if (within_ > 0) {
      if (within_ == 1) name_ = name;
      return true;
    }
    if (depth_ == 1) outer_ = name;
    if (depth_ == 2) inner_ = name;
    return builder_.key(name);
  }

  bool parse_error(size_t position, const std::string& token, const json::exception& error) {
    return builder_.parse_error(position, token, error);
  }

 private:
  bool inside() const { return within_ > 0; }

  bool item(JsonItem found) {
    found.list = inner_;
    found.name = name_;
    found.depth = to_size(within_);
    found.place = places_[std::min(within_, 2) - 1]++;
    take_(found);
    return true;
  }

  // An array or object begins: the list itself, in it, or elsewhere.
  void open() {
    if (depth_++ == kJsonDepth) fail("{}: JSON nested more than {} levels deep", where_, kJsonDepth);
    const bool list = depth_ == 3 && outer_ == object_ && std::ranges::find(lists_, inner_) != lists_.end();
    if (within_ == 0 && !list) return;
    within_++;
    places_[std::min(within_, 2) - 1] = 0;
    if (within_ == 1) name_.clear();
  }
  // Whether what ends is in a list.
  bool close() {
    depth_--;
    return within_ > 0 && --within_ > 0;
  }

  const std::string& where_;
  Builder builder_;
  std::string_view object_;
  std::span<const std::string_view> lists_;
  FunctionRef<void(const JsonItem&)> take_;
  std::string outer_, inner_, name_;  // the last keys of the object, of its members, of a list
  int depth_ = 0, within_ = 0;        // open arrays and objects; of these the list and what is in it
  std::array<size_t, 2> places_ = {};
};

// Takes the events of one array of strings.
class StringList {
 public:
  explicit StringList(const std::string& where) : where_(where) {}

  std::vector<std::string> take() { return std::move(strings_); }

  bool null() { return refuse(); }
  bool boolean(bool) { return refuse(); }
  bool number_integer(int64_t) { return refuse(); }
  bool number_unsigned(uint64_t) { return refuse(); }
  bool number_float(double, const std::string&) { return refuse(); }
  bool string(std::string& value) {
    if (!open_) return refuse();
    strings_.push_back(value);
    return true;
  }
  bool binary(json::binary_t&) { return false; }  // not in JSON text
  bool start_object(size_t) { return refuse(); }
  bool end_object() { return false; }
  bool key(std::string&) { return false; }
  bool start_array(size_t) { return open_ ? refuse() : (open_ = true); }
  bool end_array() { return true; }
  bool parse_error(size_t position, const std::string&, const json::exception& error) {
    fail_syntax(where_, position, error);
  }

 private:
  [[noreturn]] bool refuse() {
    if (!open_) fail("{}: not a JSON array of strings", where_);
    fail("{}: value {} is not a string", where_, strings_.size());
  }

  const std::string& where_;
  std::vector<std::string> strings_;
  bool open_ = false;
};

// Collects the members of one object that have the requested names.
class Members {
 public:
  Members(const std::string& where, std::span<const std::string> names, std::span<std::string> values)
      : where_(where), names_(names), values_(values), seen_(names.size()) {
    for (std::string& value : values) value.clear();
  }

  bool null() { return take({}); }
  bool boolean(bool) { return refuse(); }
  bool number_integer(int64_t value) { return take(std::to_string(value)); }
  bool number_unsigned(uint64_t value) { return take(std::to_string(value)); }
  bool number_float(double, const std::string& text) { return take(text); }
  bool string(std::string& value) { return take(value); }
  bool binary(json::binary_t&) { return false; }  // not in JSON text
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() { return depth_-- > 0; }
  bool end_array() { return depth_-- > 0; }

  bool key(std::string& name) {
    if (depth_ > 1) return true;
    const auto place = std::ranges::find(names_, name);
    member_ = to_size(place - names_.begin());
    if (place == names_.end()) return true;
    if (seen_[member_]) fail("{}: the name {} stands twice in one object", where_, excerpt(name));
    return seen_[member_] = true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) {
    fail_syntax(where_, position, error);
  }

 private:
  bool is_wanted() const {
    if (depth_ == 0) fail("{}: not a JSON object", where_);
    return depth_ == 1 && member_ < names_.size();
  }

  bool take(const std::string& text) {
    if (is_wanted()) values_[member_] = text;
    return true;
  }

  bool refuse() {
    if (is_wanted()) fail("{}: {} is neither a string nor a number", where_, excerpt(names_[member_]));
    return true;
  }

  bool open(bool object) {
    if (depth_ > 0 || !object) refuse();
    if (depth_++ == kJsonDepth) fail("{}: JSON nested more than {} levels deep", where_, kJsonDepth);
    return true;
  }

  const std::string& where_;
  std::span<const std::string> names_;
  std::span<std::string> values_;
  std::vector<bool> seen_;
  size_t member_ = 0;  // the last key of the object, by its place in names_
  int depth_ = 0;
};

template <class Handler>
void parse(std::string_view text, const std::string& where, Handler& handler) {
  // The parser takes a NUL for the end of the text, and would not see what follows.
  if (const size_t nul = text.find('\0'); nul != text.npos)
    fail("{}: not valid JSON at byte {}: a NUL byte", where, nul + 1);
  json::sax_parse(text.begin(), text.end(), &handler);
}

}  // namespace

json parse_json(std::string_view text, const std::string& where) {
  Builder builder(text.size(), where);
  parse(text, where, builder);
  return builder.take();
}

json parse_json_lists(std::string_view text, const std::string& where, std::string_view object,
                      std::span<const std::string_view> lists, FunctionRef<void(const JsonItem&)> take) {
  ListTaker taker(text.size(), where, object, lists, take);
  parse(text, where, taker);
  return taker.take();
}

std::vector<std::string> parse_json_strings(std::string_view text, const std::string& where) {
  StringList list(where);
  parse(text, where, list);
  return list.take();
}

void parse_json_members(std::string_view text, const std::string& where, std::span<const std::string> names,
                        std::span<std::string> values) {
  Members members(where, names, values);
  parse(text, where, members);
}

std::optional<size_t> find_choice(const nlohmann::json& value, std::span<const std::string_view> names) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.is_boolean() ? value.dump() : "";
  const auto found = std::ranges::find(names, text);
  return found == names.end() ? std::nullopt : std::optional(static_cast<size_t>(found - names.begin()));
}

std::string json_string(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string excerpt(std::string_view text) {
  constexpr size_t kLongest = 100;  // bytes
  return text.size() <= kLongest ? json_string(text) : json_string(text.substr(0, kLongest)) + "...";
}

}  // namespace qkv
