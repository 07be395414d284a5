#include "convert/config_fields.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr std::array<ActivationName, 6> kActivations = {{{"relu", Activation::relu},
                                                         {"gelu", Activation::gelu},
                                                         {"silu", Activation::silu},
                                                         {"swish", Activation::silu},
                                                         {"gelu_new", Activation::gelu_tanh},
                                                         {"gelu_pytorch_tanh", Activation::gelu_tanh}}};

// The names of a list, each once.
std::string listed(std::span<const ActivationName> list, const std::function<std::string_view(ActivationName)>& name) {
  std::vector<std::string_view> names;
  for (const ActivationName& each : list)
    if (std::ranges::find(names, name(each)) == names.end()) names.push_back(name(each));
  return fmt::format("{}", fmt::join(names, ", "));
}

Activation read_activation(const Settings& settings, const std::string& field, const std::string& otherwise) {
  const std::string found = otherwise.empty() ? settings.text(field) : settings.text(field, otherwise);
  if (const auto activation = activation_named(found)) return *activation;
  fail("{}: {} must be one of {} (is {})", settings.where(), field, listed(kActivations, &ActivationName::name),
       excerpt(found));
}

}  // namespace

std::span<const ActivationName> activations_of_transformers() { return kActivations; }

std::optional<Activation> activation_named(std::string_view name) {
  const auto found = std::ranges::find(kActivations, name, &ActivationName::name);
  return found == kActivations.end() ? std::nullopt : std::optional(found->activation);
}

std::string name_of_activation(Activation activation, std::span<const ActivationName> list, const std::string& where) {
  const auto found = std::ranges::find(list, activation, &ActivationName::activation);
  if (found == list.end())
    fail("{}: activation must be one of {} for transformers (is {})", where,
         listed(list, [](const ActivationName& each) { return name_of(each.activation); }), name_of(activation));
  return std::string(found->name);
}

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
  from_ ? void(member = read_activation(*from_, name, otherwise))
        : write(name, name_of_activation(member, kActivations, where_));
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
