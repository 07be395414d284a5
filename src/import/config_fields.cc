#include "import/config_fields.h"

#include <array>
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

}  // namespace

Activation activation_of(const Settings& settings, const std::string& field, const std::string& otherwise) {
  const std::string found = otherwise.empty() ? settings.text(field) : settings.text(field, otherwise);
  for (const auto& [name, activation] : kActivations)
    if (found == name) return activation;
  fail("{}: {} is {}, wanted one of relu, gelu, silu, swish, gelu_new, gelu_pytorch_tanh", settings.where(), field,
       excerpt(found));
}

void check_layers(const Settings& settings, const std::string& field, int64_t layers) {
  constexpr int64_t kMost = 1000;
  if (layers > kMost) fail("{}: {} is {}, wanted at most {}", settings.where(), field, layers, kMost);
}

std::string name_of_activation(Activation activation) {
  for (const auto& [name, known] : kActivations)
    if (known == activation) return name;
  return "";
}

}  // namespace qkv
