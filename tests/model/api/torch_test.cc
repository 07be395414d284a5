// Modules with the state_dict() of a PyTorch module: outputs and every gradient.
#include <gtest/gtest.h>

#include "qkv/layers.h"
#include "tests/support/torch_case.h"

namespace qkv::layers {
namespace {

using testing::kTorchTolerance;
using testing::relative_error;
using testing::TorchCase;

// PyTorch computes the padded rows of a query like others, and hides padded keys: a mask, not lengths.
class KeyPadding {
 public:
  KeyPadding(const TorchCase& file, const std::string& mask) : width_(file.shape(mask)[1]) {
    for (const int32_t length : file.lengths(mask))
      for (int64_t i = 0; i < width_; i++) allowed_.push_back(i < length);
  }
  AttentionMask<const uint8_t> view() const { return {allowed_.data(), width_, 0, 0, 1}; }

 private:
  int64_t width_;
  std::vector<uint8_t> allowed_;
};

template <class Real>
class TorchModule {
 public:
  TorchModule(const std::string& name, const std::string& prefix = "") : file(name), prefix_(prefix) {}

  Matrix<const Real> input(const std::string& name) {
    inputs_.push_back(std::make_unique<testing::Rows<Real>>(file, name));
    return inputs_.back()->matrix();
  }
  Rows rows(const std::string& name) const {
    const auto& shape = file.shape(name);
    return Rows::padded(std::vector<int32_t>(to_size(shape[0]), static_cast<int32_t>(shape[1])), shape[1]);
  }
  void load(Module<Real>& module) const {
    std::vector<std::vector<Real>> values;
    std::vector<NamedArray<const Real>> arrays;
    for (const auto& p : module.parameters(Names::torch)) {
      values.push_back(file.template values<Real>("param." + prefix_ + p.name));
      arrays.push_back({p.name, file.shape("param." + prefix_ + p.name), values.back().data()});
    }
    module.load_state_dict(arrays);
  }
  void expect_gradients(Module<Real>& module) const {
    for (const auto& p : module.gradients(Names::torch)) {
      const std::vector<Real> wanted = file.template values<Real>("grad." + prefix_ + p.name);
      EXPECT_LE(relative_error(std::vector<Real>(p.data, p.data + wanted.size()), wanted), kTorchTolerance<Real>)
          << p.name;
    }
  }

  TorchCase file;

 private:
  std::string prefix_;
  std::vector<std::unique_ptr<testing::Rows<Real>>> inputs_;
};

template <class Real>
void expect_attention() {
  TorchModule<Real> torch("mha_cross", "mha.");
  ModelConfig config = torch.file.config();
  MultiHeadAttention<Real> module(config);
  torch.load(module);
  const KeyPadding padding(torch.file, "mask.key_padding");
  Call<Real> call{.rows = torch.rows("in.query"), .memory_rows = torch.rows("in.key")};
  call.mask.allowed = padding.view();
  torch.file.template expect<Real>(
      "out", module.forward({torch.input("in.query"), torch.input("in.key"), torch.input("in.value")}, call));
  EXPECT_LE(relative_error(module.attention_weights().values, torch.file.template values<Real>("weights")),
            kTorchTolerance<Real>);
  const auto gradients = module.backward(torch.input("grad_out"));
  torch.file.template expect<Real>("grad_in.query", gradients[0]);
  torch.file.template expect<Real>("grad_in.key", gradients[1]);
  torch.file.template expect<Real>("grad_in.value", gradients[2]);
  torch.expect_gradients(module);
}

template <class Real>
void expect_layers(const std::string& variant) {
  SCOPED_TRACE(variant);
  {
    TorchModule<Real> torch("encoder_layer_" + variant);
    EncoderLayer<Real> module(torch.file.config());
    torch.load(module);
    const KeyPadding padding(torch.file, "mask.src_key_padding");
    Call<Real> call{.rows = torch.rows("in.src")};
    call.mask.allowed = padding.view();
    torch.file.template expect<Real>("out", module.forward({torch.input("in.src")}, call));
    torch.file.template expect<Real>("grad_in.src", module.backward(torch.input("grad_out"))[0]);
    torch.expect_gradients(module);
  }
  TorchModule<Real> torch("decoder_layer_" + variant);
  DecoderLayer<Real> module(torch.file.config());
  torch.load(module);
  const KeyPadding self(torch.file, "mask.tgt_key_padding"), cross(torch.file, "mask.memory_key_padding");
  Call<Real> call{.rows = torch.rows("in.tgt"), .memory_rows = torch.rows("in.memory")};
  call.mask.allowed = self.view();
  call.memory_mask.allowed = cross.view();
  torch.file.template expect<Real>("out", module.forward({torch.input("in.tgt"), torch.input("in.memory")}, call));
  const auto gradients = module.backward(torch.input("grad_out"));
  torch.file.template expect<Real>("grad_in.tgt", gradients[0]);
  torch.file.template expect<Real>("grad_in.memory", gradients[1]);
  torch.expect_gradients(module);
}

template <class Real>
void expect_transformer(const std::string& variant) {
  SCOPED_TRACE(variant);
  TorchModule<Real> torch("transformer_" + variant);
  Transformer<Real> module(torch.file.config());
  torch.load(module);
  const KeyPadding source(torch.file, "mask.src_key_padding"), target(torch.file, "mask.tgt_key_padding"),
      cross(torch.file, "mask.memory_key_padding");
  Call<Real> call{.rows = torch.rows("in.tgt"), .memory_rows = torch.rows("in.src")};
  call.source_mask.allowed = source.view();
  call.mask.allowed = target.view();
  call.memory_mask.allowed = cross.view();
  torch.file.template expect<Real>("out", module.forward({torch.input("in.src"), torch.input("in.tgt")}, call));
  const auto gradients = module.backward(torch.input("grad_out"));
  torch.file.template expect<Real>("grad_in.src", gradients[0]);
  torch.file.template expect<Real>("grad_in.tgt", gradients[1]);
  torch.expect_gradients(module);
}

TEST(Modules, AgreeWithTorch) {
  expect_attention<double>();
  expect_attention<float>();
  for (const char* variant : {"post_relu", "post_gelu", "pre_relu", "pre_gelu"}) {
    expect_layers<double>(variant);
    expect_layers<float>(variant);
    expect_transformer<double>(variant);
    expect_transformer<float>(variant);
  }
}

}  // namespace
}  // namespace qkv::layers
