// A JSON object of a request, whose members are read by name. Errors are HttpError 400 that name the member.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "qkv/field.h"

namespace qkv {

// A text, or a list of texts.
struct Texts {
  std::vector<std::string> texts = {};
  bool is_list = false;
};

// Reads a list of token ids. vocab: number of tokens of the model. Throws HttpError 400 that names the member.
std::vector<int32_t> token_ids(const nlohmann::json& list, std::string_view name, int64_t vocab);

class RequestObject {
 public:
  // Parses the body, which must be an object. The strict reader of core/json.h.
  static RequestObject parse(std::string_view body);
  explicit RequestObject(nlohmann::json object);

  // Whether the object has a member, which may be null.
  bool contains(std::string_view name) const { return object_.contains(name); }
  // Whether the object has a member that is not null.
  bool has(std::string_view name);
  // Returns the member, or null if it is absent.
  const nlohmann::json& get(std::string_view name);

  // Return the member, or `otherwise` if it is absent or null.
  std::string text(std::string_view name, std::string otherwise = "");
  int64_t integer(std::string_view name, int64_t otherwise, const Range& range);
  double number(std::string_view name, double otherwise, const Range& range);
  bool flag(std::string_view name, bool otherwise = false);
  // Returns the index of the member among the names of a choice (core/json.h).
  size_t choice(std::string_view name, std::span<const std::string_view> names, size_t otherwise);
  // Returns a string or a list of strings; neither being there is an empty list.
  Texts texts(std::string_view name);
  // Returns a list of token ids, or several; neither being there is an empty list.
  std::vector<std::vector<int32_t>> token_lists(std::string_view name, int64_t vocab);

  // Set an option from the member of its name, if there is one: visit_fields(options, object) sets all.
  void operator()(std::string_view name, bool& member, const Field&) { member = flag(name, member); }
  void operator()(std::string_view name, int64_t& member, const Field& f) { member = integer(name, member, f.range); }
  void operator()(std::string_view name, double& member, const Field& f) { member = number(name, member, f.range); }
  void operator()(std::string_view name, std::string& member, const Field&) { member = text(name, member); }
  void operator()(std::string_view name, uint64_t& member, const Field&);
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum& member, const Field&) {
    member = static_cast<Enum>(choice(name, names_of(member), static_cast<size_t>(member)));
  }
  template <class Value>
  void operator()(std::string_view name, std::optional<Value>& member, const Field& field) {
    if (!has(name)) return;
    Value value{};
    (*this)(name, value, field);
    member = std::move(value);
  }

  // Call after the members have been read: refuses those that no call has named.
  void refuse_others() const;

 private:
  nlohmann::json object_;
  std::vector<std::string_view> known_;
};

}  // namespace qkv
