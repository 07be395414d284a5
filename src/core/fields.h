// Options as JSON: one list of fields, visit_fields, writes, reads and overrides a struct of options.
//
//   enum class Norm { layer, rms };
//   constexpr std::array<std::string_view, 2> names_of(Norm) { return {"layer", "rms"}; }  // by value, from 0
//
//   struct Options { int64_t width = 512; Norm norm = Norm::layer; };
//   template <class Visitor>
//   void visit_fields(Options& options, Visitor&& visit) {
//     visit("width", options.width, "components of a token's vector");
//     visit("norm", options.norm, "kind of normalisation");
//   }
//
// A member is a bool, int64_t, double, std::string, a list of strings or an enum with names_of.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace qkv {

template <class Enum>
inline constexpr auto kEnumNames = names_of(Enum{});

template <class Enum>
std::string_view name_of(Enum value) {
  return kEnumNames<Enum>[static_cast<size_t>(value)];
}

// Prints the fields it visits as one JSON object, a field a line.
class FieldWriter {
 public:
  void operator()(std::string_view name, bool value, std::string_view = {});
  void operator()(std::string_view name, int64_t value, std::string_view = {});
  void operator()(std::string_view name, double value, std::string_view = {});  // throws Error if not finite
  void operator()(std::string_view name, const std::string& value, std::string_view = {});
  void operator()(std::string_view name, const std::vector<std::string>& value, std::string_view = {});
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum value, std::string_view = {}) { add(name, quote(name_of(value))); }

  std::string text() const;

 private:
  static std::string quote(std::string_view text);
  void add(std::string_view name, const std::string& value);

  std::string lines_;
};

enum class Missing { refused, kept };  // of fields that the JSON does not name: an Error, or they keep their values

// Sets the fields it visits from one JSON object.
class FieldReader {
 public:
  FieldReader(const std::string& text, const std::string& where);
  ~FieldReader();

  void operator()(std::string_view name, bool& member, std::string_view = {});
  void operator()(std::string_view name, int64_t& member, std::string_view = {});
  void operator()(std::string_view name, double& member, std::string_view = {});
  void operator()(std::string_view name, std::string& member, std::string_view = {});
  void operator()(std::string_view name, std::vector<std::string>& member, std::string_view = {});
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum& member, std::string_view = {}) {
    member = static_cast<Enum>(choose(name, kEnumNames<Enum>, static_cast<size_t>(member)));
  }

  // After the visit: throws Error if the object has names that were not visited, or lacks some that were.
  void finish(Missing missing) const;

 private:
  const nlohmann::json* find(std::string_view name);
  size_t choose(std::string_view name, std::span<const std::string_view> names, size_t otherwise);

  std::string where_;
  std::unique_ptr<nlohmann::json> object_;
  std::vector<std::string_view> visited_, missing_;
};

// JSON text with every field, in the order of visit_fields.
template <class Options>
std::string json_from_fields(Options options) {
  FieldWriter writer;
  visit_fields(options, writer);
  return writer.text();
}

// Sets every field of options from JSON text; on Error options stay as they were. Error names `where` and the field:
// unknown (with the nearest known name), missing, of a wrong type, an integer beyond int64_t, an unknown choice.
template <class Options>
void fields_from_json(Options& options, const std::string& text, const std::string& where, Missing missing) {
  Options read = options;
  FieldReader reader(text, where);
  visit_fields(read, reader);
  reader.finish(missing);
  options = std::move(read);
}

// The one of `names` that takes the fewest single-character edits to become `name`; "" if none is close.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace qkv
