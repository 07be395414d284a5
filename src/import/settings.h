// A JSON object of settings that somebody else defined: members are asked for by name, and those nobody asks for are
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
  // Throws Error, beginning with `where`, if the text is not a JSON object.
  Settings(std::string_view text, std::string where);
  ~Settings();

  const std::string& where() const { return where_; }
  // The member; null if it is missing or null.
  const nlohmann::json* find(const std::string& name) const;

  // Throw Error, naming the member, if it has another type. Without `otherwise` also if it is missing.
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double number(const std::string& name) const;
  double number(const std::string& name, double otherwise) const;
  bool flag(const std::string& name, bool otherwise) const;
  std::string text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& otherwise) const;

 private:
  [[noreturn]] void wrong(const std::string& name, const char* wanted) const;

  std::string where_;
  std::unique_ptr<const nlohmann::json> object_;
};

}  // namespace qkv
