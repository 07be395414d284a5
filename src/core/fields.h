// Reads, writes and checks structs of options through the one list of their fields, visit_fields (qkv/field.h):
//
//   enum class Norm { layer, rms };
//   constexpr std::array<std::string_view, 2> names_of(Norm) { return {"layer", "rms"}; }  // by value, from 0
//
//   struct Options { int64_t width = 512; Norm norm = Norm::layer; };
//   template <class Visitor>
//   void visit_fields(Options& options, Visitor&& visit) {
//     visit("width", options.width, {"Components of a token's vector", "model", at_least(1)});
//     visit("norm", options.norm, {"Kind of normalization", "model"});
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/to_size.h"
#include "qkv/field.h"

namespace qkv {

template <class Enum>
inline constexpr auto kEnumNames = names_of(Enum{});

template <class Enum>
std::string_view name_of(Enum value) {
  return kEnumNames<Enum>[to_size(value)];
}

// Writes the fields that it visits as one JSON object, one field per line.
class FieldWriter {
 public:
  void operator()(std::string_view name, bool value, const Field& = {});
  void operator()(std::string_view name, int64_t value, const Field& = {});
  void operator()(std::string_view name, uint64_t value, const Field& = {});
  void operator()(std::string_view name, double value, const Field& = {});  // throws Error if not finite
  void operator()(std::string_view name, const std::string& value, const Field& = {});
  void operator()(std::string_view name, const std::vector<std::string>& value, const Field& = {});
  void operator()(std::string_view name, const std::vector<int64_t>& value, const Field& = {});
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum value, const Field& = {}) { add(name, quote(name_of(value))); }
  template <class Value>
  void operator()(std::string_view name, const std::optional<Value>& value, const Field& = {}) {
    value ? (*this)(name, *value) : add(name, "null");
  }

  std::string text() const;

 private:
  static std::string quote(std::string_view text);
  void add(std::string_view name, const std::string& value);

  std::string lines_;
};

// Fields that the JSON does not name are an Error, or keep their values.
enum class Missing { refused, kept };

// Sets the fields that it visits from one JSON object.
class FieldReader {
 public:
  FieldReader(const std::string& text, const std::string& where);
  ~FieldReader();

  void operator()(std::string_view name, bool& member, const Field& = {});
  void operator()(std::string_view name, int64_t& member, const Field& = {});
  void operator()(std::string_view name, uint64_t& member, const Field& = {});
  void operator()(std::string_view name, double& member, const Field& = {});
  void operator()(std::string_view name, std::string& member, const Field& = {});
  void operator()(std::string_view name, std::vector<std::string>& member, const Field& = {});
  void operator()(std::string_view name, std::vector<int64_t>& member, const Field& = {});
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum& member, const Field& = {}) {
    member = static_cast<Enum>(choose(name, kEnumNames<Enum>, to_size(member)));
  }
  template <class Value>
  void operator()(std::string_view name, std::optional<Value>& member, const Field& = {}) {
    if (is_null(name)) {
      member.reset();
      return;
    }
    Value value = member.value_or(Value());
    if ((*this)(name, value); has(name)) member = std::move(value);
  }

  // Call after the visit. Throws Error if the object has names that were not visited, or lacks some that were.
  void finish(Missing missing) const;

 private:
  const nlohmann::json* find(std::string_view name);
  bool has(std::string_view name) const;
  bool is_null(std::string_view name);  // the object has the name, with the value null
  size_t choose(std::string_view name, std::span<const std::string_view> names, size_t otherwise);

  std::string where_;
  std::unique_ptr<nlohmann::json> object_;
  std::vector<std::string_view> visited_, missing_;
};

// Throws Error, naming the field, for a number outside its range: "beam must be between 1 and 16 (is 40)".
class RangeChecker {
 public:
  explicit RangeChecker(std::string_view where = {}) : where_(where) {}

  void operator()(std::string_view name, int64_t value, const Field& field) const;
  void operator()(std::string_view name, uint64_t value, const Field& field) const;
  void operator()(std::string_view name, double value, const Field& field) const;
  void operator()(std::string_view name, const std::vector<int64_t>& values, const Field& field) const;
  template <class Value>
  void operator()(std::string_view name, const std::optional<Value>& value, const Field& field) const {
    if (value) (*this)(name, *value, field);
  }
  template <class Value>
  void operator()(std::string_view, const Value&, const Field&) const {}  // no number, no range

 private:
  std::string_view where_;
};

// Throws Error for the first field outside its range; the text begins with `where`, such as "training: ".
template <class Options>
void check_ranges(Options options, std::string_view where = {}) {
  visit_fields(options, RangeChecker(where));
}

// Returns JSON text with every field, in the order of visit_fields.
template <class Options>
std::string json_from_fields(Options options) {
  FieldWriter writer;
  visit_fields(options, writer);
  return writer.text();
}

// Sets the fields of options from JSON text. Throws Error, naming `where` and the field, for a name that is unknown
// (with the nearest known name) or missing, a value of a wrong type, an integer beyond 64 bits and an unknown choice;
// options then stay as they were.
template <class Options>
void fields_from_json(Options& options, const std::string& text, const std::string& where, Missing missing) {
  Options read = options;
  FieldReader reader(text, where);
  visit_fields(read, reader);
  reader.finish(missing);
  options = std::move(read);
}

}  // namespace qkv
