// An object in a JSON file of another project, with its place for errors: "tokenizer.json: model".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

class JsonObject {
 public:
  // Throws Error, beginning with `where`, for a value that is no object, and for a member that is not in the list.
  JsonObject(const nlohmann::json& value, std::string where, std::initializer_list<std::string_view> members);

  // Returns the member, or a null pointer if it is missing or null.
  const nlohmann::json* find(const std::string& name) const;
  std::string at(std::string_view name) const;  // the place of a member
  const std::string& where() const { return where_; }

  // Return a member, or `otherwise` if it is missing. Throw Error, naming the member, if it has another type, or if it
  // is missing and there is no `otherwise`.
  bool flag(const std::string& name, bool otherwise) const;
  std::string text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  const nlohmann::json& array(const std::string& name) const;

  [[noreturn]] void wrong(const std::string& name, std::string_view expected) const;
  static std::string describe(const nlohmann::json& value);

 private:
  const nlohmann::json& value_;
  const std::string where_;
};

// Returns the "type" of an object, "null" of none.
std::string type_of(const nlohmann::json* value);

// Returns the steps of a part of a tokenizer.json with their places: those in the member `list` of a Sequence, also of
// one in another, or the one there is. Throws Error for more than 64 steps.
std::vector<std::pair<const nlohmann::json*, std::string>> steps_of(const nlohmann::json* value,
                                                                    const std::string& where, const std::string& list);

}  // namespace qkv
