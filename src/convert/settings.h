// A JSON object of settings that another project defined. Members are read by name; members that are not read are
// ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace qkv {

class Settings {
 public:
  // Parses a text. Throws Error, beginning with `where`, if it is not a JSON object.
  Settings(std::string_view text, std::string where);
  ~Settings();

  const std::string& where() const { return where_; }
  // Returns the member, or a null pointer if it is missing or null.
  const nlohmann::json* find(const std::string& name) const;
  bool has(const std::string& name) const;  // also a member that is null
  const nlohmann::json& object() const { return *object_; }

  // Return a member, or `otherwise` if it is missing. Throw Error, naming the member, if it has another type, or if it
  // is missing and there is no `otherwise`.
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double number(const std::string& name) const;
  double number(const std::string& name, double otherwise) const;
  bool flag(const std::string& name, bool otherwise) const;
  std::string text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& otherwise) const;

 private:
  [[noreturn]] void wrong(const std::string& name, const char* expected) const;

  std::string where_;
  std::unique_ptr<const nlohmann::json> object_;
};

}  // namespace qkv
