// The public layers and functions of qkv/layers.h with random sizes, configurations, rows and matrices.
#include "qkv/layers.h"
#include "tests/properties/random_arguments.h"

namespace qkv::testing {
namespace {

namespace layers = qkv::layers;

// A matrix of random numbers whose memory is as large as its size says, if it is small.
template <class Real>
struct RandomMatrix {
  RandomMatrix(Arguments& a, int64_t rows, int64_t cols) {
    constexpr int64_t kMost = 1 << 12;
    const int64_t stride = a.one_in(10) ? a.size(2 * std::clamp<int64_t>(cols, 1, kMost)) : cols;
    if (rows > 0 && cols > 0 && stride > 0 && rows < kMost && cols < kMost && stride < kMost)
      values.resize(to_size(rows * std::max(stride, cols)));
    for (Real& x : values) x = static_cast<Real>(a.one_in(50) ? a.real() : a.random().normal());
    matrix = {values.empty() ? nullptr : values.data(), rows, cols, stride};
  }
  std::vector<Real> values;
  Matrix<Real> matrix;
};

ModelConfig random_config(Arguments& a) {
  const int64_t heads = 1 + a.up_to(2);
  ModelConfig c = layers::sizes(heads * (1 + a.up_to(3)) * 2, heads, 1 + a.up_to(8), 1 + a.up_to(1));
  c.max_length = 12;
  ItemInputs items;
  const ModelConfig before = c;
  visit_fields(c, items, RandomFields(a, {"encoder_layers", "decoder_layers"}, 60));
  if (c.max_length > 64 && c.max_length < int64_t{1} << 25) c.max_length = before.max_length;  // large tables
  return c;
}

layers::Rows random_rows(Arguments& a, int64_t rows) {
  const int64_t half = std::clamp<int64_t>(rows, 0, 100) / 2;
  if (a.one_in(8))
    return layers::Rows::packed(
        {static_cast<int32_t>(a.up_to(2)), static_cast<int32_t>(a.up_to(9)) - 3, static_cast<int32_t>(a.up_to(12))});
  if (a.one_in(8)) return {{}, {static_cast<int32_t>(a.up_to(9)) - 2, 3}, a.size(9)};
  if (a.one_in(3)) return layers::Rows::packed({0, static_cast<int32_t>(half), static_cast<int32_t>(rows)});
  if (a.one_in(3)) return layers::Rows::padded({static_cast<int32_t>(half), 1}, half);
  return {};
}

template <class Real>
layers::Module<Real> random_module(Arguments& a) {
  switch (a.up_to(8)) {
    case 0:
      return layers::Linear<Real>(a.size(9), a.size(9), a.one_in(2));
    case 1:
      return layers::LayerNorm<Real>(a.size(9), a.real(), a.one_in(2));
    case 2:
      return layers::RMSNorm<Real>(a.size(9), a.real());
    case 3:
      return layers::FeedForward<Real>(random_config(a));
    case 4:
      return layers::MultiHeadAttention<Real>(random_config(a));
    case 5:
      return layers::EncoderLayer<Real>(random_config(a), a.one_in(2));
    case 6:
      return layers::DecoderLayer<Real>(random_config(a));
    case 7:
      return layers::Encoder<Real>(random_config(a), a.one_in(2));
    default:
      return layers::Transformer<Real>(random_config(a));
  }
}

template <class Real>
void call_module(Arguments& a) {
  layers::Module<Real> module = random_module<Real>(a);
  const auto parameters = module.parameters(a.one_in(2) ? layers::Names::own : layers::Names::torch);
  // The width of the inputs follows from a parameter.
  const int64_t width = a.one_in(10) ? a.size(9) : parameters.front().shape.back();
  const int64_t rows = a.size(12), other_rows = a.one_in(2) ? rows : a.size(12);
  std::vector<RandomMatrix<Real>> inputs;
  std::vector<Matrix<const Real>> views;
  for (int64_t i = 0, count = a.one_in(10) ? a.up_to(4) : 1 + a.up_to(1); i < count; i++)
    inputs.emplace_back(a, i == 0 ? rows : other_rows, width);
  for (const auto& input : inputs) views.push_back(input.matrix);
  layers::Call<Real> call;
  call.rows = random_rows(a, rows), call.memory_rows = random_rows(a, other_rows);
  call.causal = static_cast<Causal>(a.up_to(2));
  if (a.one_in(3)) call.dropout_seed = a.random().next();
  const Matrix<const Real> y = module.forward(views, call);
  const RandomMatrix<Real> dy(a, a.one_in(10) ? a.size(9) : y.rows, a.one_in(10) ? a.size(9) : y.cols);
  module.backward(dy.matrix);
  for (const std::string& kind : module.attention_kinds())
    module.attention_weights(a.one_in(10) ? a.text() : kind, a.one_in(4) ? a.size(3) : 0);
  std::vector<layers::NamedArray<const Real>> state;
  for (const auto& p : parameters)
    if (!a.one_in(30)) state.push_back({a.one_in(30) ? a.text() : p.name, p.shape, a.one_in(30) ? nullptr : p.data});
  module.load_state_dict(state);
}

template <class Real>
void call_embedding(Arguments& a) {
  layers::EmbeddingOptions options{static_cast<Positions>(a.up_to(7)), a.one_in(2), a.one_in(5) ? a.size(9) : 12};
  layers::Embedding<Real> embedding(a.size(9), a.size(9), options);
  std::vector<int32_t> ids(to_size(a.up_to(12)));
  for (int32_t& id : ids) id = static_cast<int32_t>(a.one_in(30) ? a.absurd_integer() : a.up_to(3));
  layers::Call<Real> call;
  call.rows = random_rows(a, std::ssize(ids));
  embedding.forward(ids, call);
}

template <class Real>
void call_function(Arguments& a) {
  const int64_t rows = a.size(9), cols = a.size(70);
  const auto same = [&](int64_t n, int64_t most) { return a.one_in(15) ? a.size(most) : n; };
  RandomMatrix<Real> x(a, rows, cols), y(a, same(rows, 9), same(cols, 70)), z(a, same(rows, 9), same(cols, 70));
  switch (a.up_to(3)) {
    case 0:
      return layers::softmax<Real>(x.matrix, y.matrix);
    case 1:
      return layers::softmax_backward<Real>(x.matrix, y.matrix, z.matrix);
    case 2:
      return layers::positional_encoding<Real>(x.matrix, static_cast<Positions>(a.up_to(7)));
    default: {
      std::vector<int32_t> labels(to_size(std::clamp<int64_t>(same(rows, 9), 0, 100)));
      for (int32_t& label : labels) label = static_cast<int32_t>(a.one_in(20) ? a.absurd_integer() : a.up_to(2));
      layers::cross_entropy<Real>(x.matrix, labels, a.one_in(3) ? a.real() : 0.1,
                                  a.one_in(2) ? y.matrix : Matrix<Real>());
    }
  }
}

TEST(RandomCalls, OfLayersSucceedOrThrow) {
  make_calls(calls(3000), [](Arguments& a) { call_module<float>(a); });
  make_calls(calls(1000), [](Arguments& a) { call_module<double>(a); });
}

TEST(RandomCalls, OfEmbeddingsAndFunctionsSucceedOrThrow) {
  make_calls(calls(1000), [](Arguments& a) { call_embedding<float>(a); });
  make_calls(calls(2000), [](Arguments& a) { call_function<float>(a); });
  make_calls(calls(1000), [](Arguments& a) { call_function<double>(a); });
}

}  // namespace
}  // namespace qkv::testing
