// The gradients of every module, with respect to inputs and parameters, against finite differences in float64; and
// float32 against float64.
#include <gtest/gtest.h>

#include "tests/model/api/module_case.h"
#include "tests/support/kernels.h"

namespace qkv::layers {
namespace {

using testing::relative_error;

// Two sequences each: of 4 and 2 queries, of 3 and 5 keys.
const Rows kQueries = Rows::packed({0, 4, 6}), kKeys = Rows::packed({0, 3, 8});
constexpr int64_t kQueryRows = 6, kKeyRows = 8;

Rows padded_queries() { return Rows::padded({2, 3}, 3); }  // 6 rows, 5 of them in a sequence
Rows padded_keys() { return Rows::padded({4, 1}, 4); }

template <class Real>
Call<Real> cross_call(const Rows& rows = kQueries, const Rows& memory = kKeys) {
  Call<Real> call;
  call.rows = rows;
  call.memory_rows = memory;
  return call;
}

size_t size_of(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  for (const int64_t n : shape) size *= n;
  return to_size(size);
}

// Checks all gradients of Σ dy ∘ forward(inputs).
void expect_gradients(Module<double>& module, std::vector<InputRows<double>> inputs, const Call<double>& call) {
  randomize(module, 100);
  const std::vector<double> y = values_of(module.forward(matrices(inputs), call));
  const int64_t rows = inputs.back().rows == kKeyRows && inputs.size() > 1 ? inputs.front().rows : inputs.back().rows;
  const InputRows<double> dy(rows, std::ssize(y) / rows, 99);
  const auto loss = [&] { return testing::dot(values_of(module.forward(matrices(inputs), call)), dy.values); };

  module.clear_gradients();
  std::vector<std::vector<double>> dx;
  for (const auto& gradient : module.backward(dy.matrix())) dx.push_back(values_of(gradient));
  ASSERT_EQ(dx.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    SCOPED_TRACE("input " + std::to_string(i));
    testing::expect_gradient(inputs[i].values, dx[i], loss);
  }
  // The bias of keys has no influence on the weights, so it is compared with those of queries and values as one array.
  const auto gradients = module.gradients(Names::torch);
  for (size_t i = 0; i < gradients.size(); i++) {
    SCOPED_TRACE(gradients[i].name);
    const NamedArray<double> p = module.parameters(Names::torch)[i];
    EXPECT_EQ(p.name, gradients[i].name);
    const std::vector<double> gradient(gradients[i].data, gradients[i].data + size_of(p.shape));
    testing::expect_gradient({p.data, size_of(p.shape)}, gradient, loss);
  }
}

std::vector<InputRows<double>> one_input(int64_t width = 8) { return {{kQueryRows, width, 1}}; }
std::vector<InputRows<double>> two_inputs() { return {{kQueryRows, 8, 1}, {kKeyRows, 8, 2}}; }
std::vector<InputRows<double>> three_inputs() { return {{kQueryRows, 8, 1}, {kKeyRows, 8, 2}, {kKeyRows, 8, 3}}; }

TEST(ModuleGradients, OfLinear) {
  Linear<double> with(5, 3), without(5, 3, false);
  expect_gradients(with, one_input(5), {});
  expect_gradients(without, one_input(5), {});
}

TEST(ModuleGradients, OfNorms) {
  LayerNorm<double> layer(8), without_bias(8, 1e-3, false);
  RMSNorm<double> rms(8);
  for (Module<double>* module : std::initializer_list<Module<double>*>{&layer, &without_bias, &rms})
    expect_gradients(*module, one_input(), {});
}

TEST(ModuleGradients, OfFeedForwardWithEveryActivation) {
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh})
    for (const bool gated : {false, true}) {
      ModelConfig config = small_layers();
      config.activation = activation;
      config.gated_ffn = gated;
      config.ffn_bias = !gated;
      FeedForward<double> module(config);
      expect_gradients(module, one_input(), {});
    }
}

TEST(ModuleGradients, OfAttentionWithOneTwoAndThreeInputs) {
  for (const auto& inputs : {one_input(), two_inputs(), three_inputs()}) {
    SCOPED_TRACE(inputs.size());
    for (const bool padded : {false, true}) {
      MultiHeadAttention<double> module(small_layers());
      expect_gradients(module, inputs,
                       padded ? cross_call<double>(padded_queries(), padded_keys()) : cross_call<double>());
    }
  }
}

TEST(ModuleGradients, OfAttentionVariants) {
  ModelConfig grouped = small_layers();
  grouped.attention.heads = 4;
  grouped.attention.key_value_heads = 2;
  grouped.attention.input_bias = grouped.attention.output_bias = false;
  ModelConfig rotary = small_layers();
  rotary.positions = Positions::rotary;
  rotary.attention.query_key_norm = true;
  rotary.norm.kind = NormKind::rms;
  ModelConfig alibi = small_layers();
  alibi.positions = Positions::alibi;
  alibi.attention.window = 2;
  alibi.attention.softcap = 3;
  ModelConfig relative = small_layers();
  relative.attention.relative_buckets = 8;
  relative.attention.relative_distance = 16;
  for (const ModelConfig& config : {grouped, rotary, alibi, relative})
    for (const Causal causal : {Causal::none, Causal::top_left}) {
      MultiHeadAttention<double> module(config);
      Call<double> call = cross_call<double>();
      call.causal = causal;
      expect_gradients(module, one_input(), call);
    }
}

TEST(ModuleGradients, OfAttentionWithMasks) {
  MultiHeadAttention<double> module(small_layers());
  const std::vector<double> added = testing::normal<double>(2 * 4 * 5, 5);  // [heads, 4, 5]
  std::vector<uint8_t> allowed(2 * 5, 1);                                   // [sequences, 5]
  allowed[1] = allowed[7] = 0;
  Call<double> call = cross_call<double>();
  call.mask.added = {added.data(), 0, 4 * 5, 5, 1};
  call.mask.allowed = {allowed.data(), 5, 0, 0, 1};
  expect_gradients(module, two_inputs(), call);
}

TEST(ModuleGradients, WithDropout) {
  ModelConfig config = small_layers();
  config.dropout = {0.2, 0.3, 0.25};
  EncoderLayer<double> module(config);
  Call<double> call = cross_call<double>();
  call.dropout_seed = 7;
  expect_gradients(module, one_input(), call);
}

TEST(ModuleGradients, OfLayersAndStacks) {
  ModelConfig post = small_layers(), pre = small_layers(), rotary = small_layers();
  post.norm.final = true;
  pre.norm.position = NormPosition::pre;
  rotary.positions = Positions::rotary;
  rotary.norm = {.kind = NormKind::rms, .position = NormPosition::sandwich, .final = true};
  rotary.gated_ffn = true;
  for (const ModelConfig& config : {post, pre, rotary})
    for (const bool padded : {false, true}) {
      const Call<double> call = padded ? cross_call<double>(padded_queries(), padded_keys()) : cross_call<double>();
      EncoderLayer<double> encoder_layer(config), causal_layer(config, true);
      Encoder<double> encoder(config), causal(config, true);
      for (Module<double>* module :
           std::initializer_list<Module<double>*>{&encoder_layer, &causal_layer, &encoder, &causal})
        expect_gradients(*module, one_input(), call);
      DecoderLayer<double> decoder_layer(config);
      Decoder<double> decoder(config);
      for (Module<double>* module : std::initializer_list<Module<double>*>{&decoder_layer, &decoder})
        expect_gradients(*module, two_inputs(), call);
    }
}

TEST(ModuleGradients, OfTransformer) {
  ModelConfig config = small_layers(1);
  config.norm.final = true;
  Transformer<double> module(config);
  Call<double> call = cross_call<double>(kQueries, kKeys);
  std::vector<InputRows<double>> inputs = {{kKeyRows, 8, 2}, {kQueryRows, 8, 1}};
  expect_gradients(module, inputs, call);
}

TEST(ModuleGradients, OfEmbedding) {
  for (const Positions positions : {Positions::none, Positions::learned, Positions::interleaved}) {
    Embedding<double> module(7, 4, {positions, true, 10});
    randomize(module, 3);
    const std::vector<int32_t> ids = {1, 6, 1, 0, 3, 5};
    const auto forward = [&] { return module.forward(std::span(ids), cross_call<double>(padded_queries())); };
    const InputRows<double> dy(6, 4, 9);
    forward();
    EXPECT_TRUE(module.backward(dy.matrix()).empty());
    for (size_t i = 0; i < module.parameters().size(); i++) {
      const NamedArray<double> p = module.parameters()[i], g = module.gradients()[i];
      const std::vector<double> gradient(g.data, g.data + size_of(g.shape));
      testing::expect_gradient({p.data, size_of(p.shape)}, gradient,
                               [&] { return testing::dot(values_of(forward()), dy.values); });
    }
  }
}

// The bound is that of float32 against PyTorch in tests/support/torch_case.h.
TEST(Modules, AgreeInFloatAndDouble) {
  Transformer<double> exact(small_layers());
  Transformer<float> module(small_layers());
  randomize(exact, 5);
  randomize(module, 5);
  const InputRows<double> source(kKeyRows, 8, 1), target(kQueryRows, 8, 2), dy(kQueryRows, 8, 3);
  const InputRows<float> source32(kKeyRows, 8, 1), target32(kQueryRows, 8, 2), dy32(kQueryRows, 8, 3);
  const auto y = values_of(exact.forward({source.matrix(), target.matrix()}, cross_call<double>()));
  const auto y32 = values_of(module.forward({source32.matrix(), target32.matrix()}, cross_call<float>()));
  EXPECT_LE(relative_error(y32, y), 1e-5);
  const auto dx = exact.backward(dy.matrix());
  const auto dx32 = module.backward(dy32.matrix());
  for (size_t i = 0; i < 2; i++) EXPECT_LE(relative_error(values_of(dx32[i]), values_of(dx[i])), 1e-5);
}

}  // namespace
}  // namespace qkv::layers
