#include "model/api/parameter_names.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

namespace qkv::layers {
namespace {

// Part of one of our names -> the same part of PyTorch's.
constexpr std::pair<std::string_view, std::string_view> kTorchParts[] = {{"self_attention", "self_attn"},
                                                                         {"cross_attention", "multihead_attn"},
                                                                         {"output", "out_proj"},
                                                                         {"first", "linear1"},
                                                                         {"second", "linear2"},
                                                                         {"self_attention_norm", "norm1"},
                                                                         {"cross_attention_norm", "norm2"}};

// The name that a parameter has in a module. The layers of a module that is one layer have no name themselves.
std::string own_name(const std::string& declared) { return declared.substr(declared.starts_with('.') ? 1 : 0); }

// Whether the layer of this prefix, such as "layers.0.", has cross-attention.
template <class Real>
bool has_cross(const ParameterList<Real>& list, const std::string& prefix) {
  return std::ranges::any_of(list.all(), [&](const Parameter<Real>& p) {
    return own_name(p.name).starts_with(prefix + "cross_attention_norm.");
  });
}

template <class Real>
std::string torch_name(const ParameterList<Real>& list, const std::string& own) {
  std::istringstream parts(own);
  std::string name;
  for (std::string part; std::getline(parts, part, '.');) {
    if (part == "feed_forward") continue;
    const std::string prefix = name.empty() ? name : name + ".";
    const auto* found = std::ranges::find(kTorchParts, part, &std::pair<std::string_view, std::string_view>::first);
    if (part == "feed_forward_norm") part = has_cross(list, prefix) ? "norm3" : "norm2";
    if (found != std::end(kTorchParts)) part = found->second;
    name = prefix + part;
  }
  return name;
}

// The place in a name of the parameter q that begins the joined weights or biases of q, k and v; or npos.
size_t find_queries(const std::string& name) {
  const size_t at = name.rfind("q.");
  const bool is_part = at != name.npos && (at == 0 || name[at - 1] == '.');
  return is_part && name.find('.', at + 2) == name.npos ? at : name.npos;
}

}  // namespace

template <class Real>
std::vector<NamedArray<Real>> named_arrays(const ParameterList<Real>& list, Names names, bool gradients) {
  std::vector<NamedArray<Real>> arrays;
  const auto& all = list.all();
  for (size_t i = 0; i < all.size(); i++) {
    const std::string own = own_name(all[i].name);
    NamedArray<Real> array{own, all[i].shape, gradients ? all[i].gradient : all[i].value};
    if (names == Names::torch) {
      array.name = torch_name(list, own);
      // The weights of q, k and v follow each other, and so do their biases: torch.nn.MultiheadAttention.
      if (const size_t at = find_queries(array.name); at != array.name.npos) {
        array.name = array.name.substr(0, at) + "in_proj_" + array.name.substr(at + 2);
        array.shape[0] += all[i + 1].shape[0] + all[i + 2].shape[0];
        i += 2;
      }
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

template std::vector<NamedArray<float>> named_arrays(const ParameterList<float>&, Names, bool);
template std::vector<NamedArray<double>> named_arrays(const ParameterList<double>&, Names, bool);

}  // namespace qkv::layers
