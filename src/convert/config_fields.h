// The fields of a config.json of transformers. An architecture lists its fields once, and the list both reads the file
// and writes it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "convert/settings.h"
#include "qkv/config.h"

namespace qkv {

// A config.json that is being read or written. fields(name, member) copies a field of the file to the member or the
// member to the file; `otherwise` is the value of a field that a file leaves out. Reading throws Error, naming the
// field, for one that has another type, or is missing and has no default. Writing throws Error, beginning with `where`,
// for a value that transformers does not have.
class ConfigFields {
 public:
  explicit ConfigFields(const Settings& from) : from_(&from) {}
  ConfigFields(nlohmann::json& to, std::string where) : to_(&to), where_(std::move(where)) {}

  void operator()(const std::string& name, int64_t& member);
  void operator()(const std::string& name, int64_t& member, int64_t otherwise);
  void operator()(const std::string& name, double& member, double otherwise);
  void operator()(const std::string& name, bool& member, bool otherwise);
  void operator()(const std::string& name, Activation& member, const char* otherwise = "");

  // Number of layers, at most 1,000: tensors are listed by it.
  void layers(const std::string& name, int64_t& member) { at_most(name, member, 1000); }
  // Number of positions.
  void positions(const std::string& name, int64_t& member, int64_t most = 1 << 20) { at_most(name, member, most); }

  // The file where it is read, and the object where it is written; the other one is null.
  const Settings* from() const { return from_; }
  nlohmann::json* to() { return to_; }

 private:
  void at_most(const std::string& name, int64_t& member, int64_t most);
  template <class T>
  void write(const std::string& name, const T& value);

  const Settings* from_ = nullptr;
  nlohmann::json* to_ = nullptr;
  std::string where_;  // the file of the model that is written, for errors
};

// A name that transformers has for an activation.
struct ActivationName {
  std::string_view name;
  Activation activation;
};

// Returns all of them. The first of an activation's names is the one that is written.
std::span<const ActivationName> activations_of_transformers();

// Returns the activation with this name, or nothing.
std::optional<Activation> activation_named(std::string_view name);

// Returns the first name of an activation in the list. Throws Error, beginning with `where` and naming the activations
// of the list, if it has none.
std::string name_of_activation(Activation activation, std::span<const ActivationName> list, const std::string& where);

// Throws Error, naming the flag, unless it has the value; a flag that is missing has it.
void require_flag(const Settings& config, const char* name, bool value);

// Sets the width of heads to d_model / heads. Throws Error, naming the two fields, if there is a remainder.
void set_head_width(const Settings& config, const char* width, const char* heads, ModelConfig& m);

}  // namespace qkv
