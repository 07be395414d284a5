#include "import/config_fields.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

// The first of an activation's names is the one that is written.
constexpr std::array<std::pair<const char*, Activation>, 6> kActivations = {
    {{"relu", Activation::relu},
     {"gelu", Activation::gelu},
     {"silu", Activation::silu},
     {"swish", Activation::silu},
     {"gelu_new", Activation::gelu_tanh},
     {"gelu_pytorch_tanh", Activation::gelu_tanh}}};

Activation read_activation(const Settings& settings, const std::string& field, const std::string& otherwise) {
  const std::string found = otherwise.empty() ? settings.text(field) : settings.text(field, otherwise);
  for (const auto& [name, activation] : kActivations)
    if (found == name) return activation;
  fail("{}: {} must be one of relu, gelu, silu, swish, gelu_new, gelu_pytorch_tanh (is {})", settings.where(), field,
       excerpt(found));
}

std::string name_of_activation(Activation activation) {
  for (const auto& [name, known] : kActivations)
    if (known == activation) return name;
  return "";
}

}  // namespace

template <class T>
void ConfigFields::write(const std::string& name, const T& value) {
  (*to_)[name] = value;
}

void ConfigFields::operator()(const std::string& name, int64_t& member) {
  from_ ? void(member = from_->integer(name)) : write(name, member);
}
void ConfigFields::operator()(const std::string& name, int64_t& member, int64_t otherwise) {
  from_ ? void(member = from_->integer(name, otherwise)) : write(name, member);
}
void ConfigFields::operator()(const std::string& name, double& member, double otherwise) {
  from_ ? void(member = from_->number(name, otherwise)) : write(name, member);
}
void ConfigFields::operator()(const std::string& name, bool& member, bool otherwise) {
  from_ ? void(member = from_->flag(name, otherwise)) : write(name, member);
}
void ConfigFields::operator()(const std::string& name, Activation& member, const char* otherwise) {
  from_ ? void(member = read_activation(*from_, name, otherwise)) : write(name, name_of_activation(member));
}

void ConfigFields::at_most(const std::string& name, int64_t& member, int64_t most) {
  (*this)(name, member);
  if (from_ && member > most) fail("{}: {} must be at most {} (is {})", from_->where(), name, most, member);
}

void require_flag(const Settings& config, const char* name, bool value) {
  if (config.flag(name, value) != value) fail("{}: {} must be {} (is {})", config.where(), name, value, !value);
}

void set_head_width(const Settings& config, const char* width, const char* heads, ModelConfig& m) {
  if (m.attention.heads < 1 || m.d_model % m.attention.heads != 0)
    fail("{}: {} must divide {} ({} is {}, {} is {})", config.where(), heads, width, heads, m.attention.heads, width,
         m.d_model);
  m.attention.key_width = m.attention.value_width = m.d_model / m.attention.heads;
}

}  // namespace qkv
