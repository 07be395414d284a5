// Fields of somebody else's config.json, listed once and visited by one that reads them and by one that writes them:
// visit(name, member), or visit(name, member, otherwise) for one that may be missing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "import/settings.h"
#include "qkv/config.h"

namespace qkv {

// An activation by the name that transformers has for it. Throws Error, naming field and value, for another one.
Activation activation_of(const Settings& settings, const std::string& field, const std::string& otherwise = "");
std::string name_of_activation(Activation activation);

// Throws Error, naming the field, for more layers than a model may have. Tensors are listed by this number.
void check_layers(const Settings& settings, const std::string& field, int64_t layers);

class FieldsFrom {
 public:
  explicit FieldsFrom(const Settings& settings) : settings_(settings) {}

  void operator()(const std::string& name, int64_t& member) const { member = settings_.integer(name); }
  void operator()(const std::string& name, int64_t& member, int64_t otherwise) const {
    member = settings_.integer(name, otherwise);
  }
  void operator()(const std::string& name, double& member, double otherwise) const {
    member = settings_.number(name, otherwise);
  }
  void operator()(const std::string& name, bool& member, bool otherwise) const {
    member = settings_.flag(name, otherwise);
  }
  void operator()(const std::string& name, Activation& member, const char* otherwise = "") const {
    member = activation_of(settings_, name, otherwise);
  }

 private:
  const Settings& settings_;
};

class FieldsTo {
 public:
  explicit FieldsTo(nlohmann::json& object) : object_(object) {}

  template <class T, class... Otherwise>
  void operator()(const std::string& name, const T& member, const Otherwise&...) const {
    if constexpr (std::is_same_v<T, Activation>)
      object_[name] = name_of_activation(member);
    else
      object_[name] = member;
  }

 private:
  nlohmann::json& object_;
};

}  // namespace qkv
