// A PyTorch module as a file: parameters, inputs, output, and every gradient. It ran in float64 and was rounded to
// float32; sequences of a batch are padded, and padded queries are computed like the others.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "io/weights/safetensors.h"
#include "model/layers/context.h"
#include "model/layers/parameter.h"
#include "qkv/attention.h"
#include "qkv/config.h"
#include "qkv/error.h"
#include "tests/support/numeric.h"
#include "tests/support/spoiled_arena.h"

namespace qkv::testing {

// Relative error of a whole tensor, ‖a − b‖ / ‖b‖. In double only the rounding of the file is left.
template <class Real>
constexpr double kTorchTolerance = sizeof(Real) == sizeof(float) ? 1e-5 : 0x1p-24;

inline void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != text.npos) text.replace(at, from.size(), to);
}

class TorchCase {
 public:
  explicit TorchCase(const std::string& name)
      : file_(Safetensors::open(QKV_GOLDEN_DIR "/torch/" + name + ".safetensors")) {}

  // d 32, 4 heads, feed-forward 64, no dropout, the norm and the activation of the file.
  ModelConfig config() const {
    const Metadata& m = file_.metadata();
    ModelConfig c;
    c.encoder_layers = c.decoder_layers = 2;
    c.d_model = 32;
    c.attention.heads = 4;
    c.attention.key_width = c.attention.value_width = 8;
    c.ffn = 64;
    c.dropout.residual = 0;
    c.norm.final = true;
    if (m.contains("norm_first") && m.at("norm_first") == "True") c.norm.position = NormPosition::pre;
    if (m.contains("activation") && m.at("activation") == "gelu") c.activation = Activation::gelu;
    return c;
  }

  // The shape of a tensor, such as [B, T, d].
  const std::vector<int64_t>& shape(const std::string& name) const { return find(name).shape; }

  template <class Real>
  std::vector<Real> values(const std::string& name) const {
    const TensorView& tensor = find(name);
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return {values.begin(), values.end()};
  }

  // How many places of each sequence a padding mask [B, T] leaves.
  std::vector<int32_t> lengths(const std::string& mask) const {
    const TensorView& tensor = find(mask);
    std::vector<int32_t> lengths(to_size(tensor.shape[0]));
    for (size_t i = 0; i < tensor.data.size(); i++)
      lengths[i / to_size(tensor.shape[1])] += tensor.data[i] == std::byte{0};
    return lengths;
  }

  // Our name of a parameter in PyTorch's words. `layer.` is the name of a layer that stands alone.
  std::string torch_name(std::string name) const {
    if (name.starts_with("layer.")) name.erase(0, std::strlen("layer."));
    const std::string prefix = name.substr(0, name.find("feed_forward_norm"));
    replace(name, "feed_forward_norm", file_.find("param." + prefix + "norm3.weight") ? "norm3" : "norm2");
    replace(name, "self_attention_norm", "norm1");
    replace(name, "cross_attention_norm", "norm2");
    replace(name, "self_attention", "self_attn");
    replace(name, "cross_attention", "multihead_attn");
    replace(name, "feed_forward.first", "linear1");
    replace(name, "feed_forward.second", "linear2");
    replace(name, ".output.", ".out_proj.");
    replace(name, ".q.", ".in_proj_");  // the weights of q, k and v follow each other, as do their biases
    return name;
  }

  template <class Real>
  void load(ParameterList<Real>& list) const {
    list.allocate();
    list.allocate_gradients();
    size_t loaded = 0;
    each_parameter(list, [&](const Parameter<Real>& p, const std::string& name) {
      const std::vector<Real> values = this->values<Real>("param." + name);
      std::copy(values.begin(), values.end(), p.value);
      loaded += values.size();
    });
    EXPECT_EQ(loaded, list.values().size());
  }

  template <class Real>
  void expect_gradients(const ParameterList<Real>& list) const {
    each_parameter(list, [&](const Parameter<Real>& p, const std::string& name) {
      const std::vector<Real> wanted = values<Real>("grad." + name);
      expect(std::vector<Real>(p.gradient, p.gradient + wanted.size()), wanted, "grad." + name);
    });
  }

  template <class Real>
  void expect(const std::string& name, Matrix<const Real> found) const {
    std::vector<Real> all;
    for (int64_t n = 0; n < found.rows; n++) all.insert(all.end(), found.row(n), found.row(n) + found.cols);
    expect(all, values<Real>(name), name);
  }

 private:
  template <class Real, class F>
  void each_parameter(const ParameterList<Real>& list, F&& f) const {
    for (const auto& p : list.all())
      if (p.name.find(".k.") == std::string::npos && p.name.find(".v.") == std::string::npos) f(p, torch_name(p.name));
  }
  template <class Real>
  static void expect(const std::vector<Real>& found, const std::vector<Real>& wanted, const std::string& name) {
    EXPECT_LE(relative_error(found, wanted), kTorchTolerance<Real>) << name;
  }
  const TensorView& find(const std::string& name) const {
    const TensorView* tensor = file_.find(name);
    if (!tensor) throw Error("no tensor " + name);
    return *tensor;
  }

  Safetensors file_;
};

// A batch of padded sequences, [B · T, d], from a tensor [B, T, d].
template <class Real>
struct Rows {
  Rows(const TorchCase& file, const std::string& name)
      : values(file.values<Real>(name)), B(file.shape(name)[0]), T(file.shape(name)[1]), d(file.shape(name)[2]) {}
  Matrix<Real> matrix() { return {values.data(), B * T, d}; }

  std::vector<Real> values;
  int64_t B, T, d;
};

// A case, and what building a layer and calling it need.
struct TorchSetUp {
  explicit TorchSetUp(const std::string& name) : file(name) {}

  TorchCase file;
  DropoutSites sites;
  SpoiledArena arena;
  Context context{arena};
};

// Every query of a padded sequence sees the keys of the same sequence that are not padding.
class PaddedSequences {
 public:
  PaddedSequences(int64_t T, int64_t S, const std::vector<int32_t>& key_lengths) {
    for (size_t b = 0; b < key_lengths.size(); b++) {
      const int32_t q = static_cast<int32_t>(static_cast<int64_t>(b) * T);
      const int32_t k = static_cast<int32_t>(static_cast<int64_t>(b) * S);
      q_begin_.push_back(q), q_end_.push_back(q + static_cast<int32_t>(T));
      k_begin_.push_back(k), k_end_.push_back(k + key_lengths[b]);
    }
  }
  Sequences view() const {
    return {static_cast<int64_t>(q_begin_.size()), q_begin_.data(), q_end_.data(), k_begin_.data(), k_end_.data()};
  }

 private:
  std::vector<int32_t> q_begin_, q_end_, k_begin_, k_end_;
};

}  // namespace qkv::testing
