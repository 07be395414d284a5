// nn.MultiheadAttention: outputs, weights and gradients.
#include <gtest/gtest.h>

#include "core/to_size.h"
#include "layers/attention.h"
#include "tests/support/torch_case.h"

namespace qkv {
namespace {

using testing::kTorchTolerance;
using testing::PaddedSequences;
using testing::relative_error;
using testing::Rows;
using testing::TorchSetUp;

// Returns the weights A of each sequence and head, [B, H, T, S], with zeros at padding.
template <class Real>
std::vector<Real> all_weights(const MultiHeadAttention<Real>& layer, const Sequences& sequences, Causal causal,
                              const typename MultiHeadAttention<Real>::Saved& saved, int64_t T, int64_t S) {
  std::vector<Real> all(to_size(sequences.count * 4 * T * S));
  Real* next = all.data();
  for (int64_t b = 0; b < sequences.count; b++)
    for (int64_t h = 0; h < 4; h++, next += T * S)
      layer.weights(sequences, causal, saved, b, h, {next, T, sequences.k_end[b] - sequences.k_begin[b], S});
  return all;
}

template <class Real>
void expect_self_attention() {
  TorchSetUp set_up("mha_self");
  auto& [file, sites, arena, c] = set_up;
  ParameterList<Real> list;
  const MultiHeadAttention<Real> layer(list, "mha", file.config(), AttentionScope::local, sites);
  file.load(list);

  Rows<Real> x(file, "in.x"), gradient(file, "grad_out");
  const PaddedSequences sequences(x.T, x.T, file.lengths("mask.key_padding"));
  typename MultiHeadAttention<Real>::Saved saved;
  file.expect<Real>("out", layer.forward(x.matrix(), x.matrix(), sequences.view(), Causal::top_left, c, saved));
  EXPECT_LE(relative_error(all_weights(layer, sequences.view(), Causal::top_left, saved, x.T, x.T),
                           file.values<Real>("weights")),
            kTorchTolerance<Real>);
  layer.backward(gradient.matrix(), gradient.matrix(), false, {}, sequences.view(), Causal::top_left, c, saved);
  file.expect<Real>("grad_in.x", gradient.matrix());
  file.expect_gradients(list);
}

TEST(MultiHeadAttention, AgreesWithTorchOnItself) {
  expect_self_attention<double>();
  expect_self_attention<float>();
}

// PyTorch computes keys and values from two inputs, this layer from one, z. So z concatenates both, [key | value], and
// the weights have blocks of zeros: W_Q = [Q 0], W_K = [K 0], W_V = [0 V], W_O = [O; 0].
template <class Real>
void expect_cross_attention() {
  TorchSetUp set_up("mha_cross");
  auto& [file, sites, arena, c] = set_up;
  ParameterList<Real> list;
  constexpr int64_t d = 32;
  ModelConfig config = file.config();
  config.d_model = 2 * d;
  const MultiHeadAttention<Real> layer(list, "mha", config, AttentionScope::cross, sites);
  list.allocate();
  list.allocate_gradients();
  const auto parameter = [&](size_t i) { return list.all()[i]; };  // W_Q, W_K, W_V, b_Q, b_K, b_V, W_O, b_O

  // Row i of the blocks Q, K and V below one another, which PyTorch calls in_proj_weight.
  const auto block_row = [](Matrix<Real> qkv, int64_t i) {
    const int64_t begin = i < 2 * d ? 0 : d;
    return qkv.row_range(i, i + 1).col_range(begin, begin + d);
  };
  const Matrix<Real> W_qkv{parameter(0).value, 3 * d, 2 * d}, dW_qkv{parameter(0).gradient, 3 * d, 2 * d};
  const std::vector<Real> W = file.values<Real>("param.mha.in_proj_weight");
  for (int64_t i = 0; i < 3 * d; i++) std::copy_n(&W[to_size(i * d)], d, block_row(W_qkv, i).data);
  const auto load = [&](size_t i, const std::string& name) {
    const std::vector<Real> values = file.values<Real>(name);
    std::copy(values.begin(), values.end(), parameter(i).value);
  };
  load(3, "param.mha.in_proj_bias");
  load(6, "param.mha.out_proj.weight");
  load(7, "param.mha.out_proj.bias");

  Rows<Real> query(file, "in.query"), key(file, "in.key"), value(file, "in.value"), gradient(file, "grad_out");
  const auto place = [](Matrix<const Real> from, Matrix<Real> to) {
    for (int64_t n = 0; n < from.rows; n++) std::copy_n(from.row(n), from.cols, to.row(n));
  };
  const Matrix<Real> x = arena.zeros<Real>(query.B * query.T, 2 * d), z = arena.zeros<Real>(key.B * key.T, 2 * d);
  const Matrix<Real> dy = arena.zeros<Real>(x.rows, 2 * d), dz = arena.zeros<Real>(z.rows, 2 * d);
  place(query.matrix(), x.col_range(0, d));
  place(key.matrix(), z.col_range(0, d));
  place(value.matrix(), z.col_range(d, 2 * d));
  place(gradient.matrix(), dy.col_range(0, d));

  const PaddedSequences sequences(query.T, key.T, file.lengths("mask.key_padding"));
  typename MultiHeadAttention<Real>::Saved saved;
  const Matrix<Real> y = layer.forward(x, z, sequences.view(), Causal::none, c, saved);
  file.expect<Real>("out", y.col_range(0, d));
  EXPECT_LE(relative_error(all_weights(layer, sequences.view(), Causal::none, saved, query.T, key.T),
                           file.values<Real>("weights")),
            kTorchTolerance<Real>);
  layer.backward(dy, dy, false, dz, sequences.view(), Causal::none, c, saved);
  file.expect<Real>("grad_in.query", dy.col_range(0, d));
  file.expect<Real>("grad_in.key", dz.col_range(0, d));
  file.expect<Real>("grad_in.value", dz.col_range(d, 2 * d));
  const Matrix<Real> dW = arena.matrix<Real>(3 * d, d);
  for (int64_t i = 0; i < 3 * d; i++) place(block_row(dW_qkv, i), dW.row_range(i, i + 1));
  file.expect<Real>("grad.mha.in_proj_weight", dW);
  file.expect<Real>("grad.mha.in_proj_bias", Matrix<Real>(parameter(3).gradient, 1, 3 * d));
  file.expect<Real>("grad.mha.out_proj.weight", Matrix<Real>(parameter(6).gradient, d, d));
  file.expect<Real>("grad.mha.out_proj.bias", Matrix<Real>(parameter(7).gradient, 1, d));
}

TEST(MultiHeadAttention, AgreesWithTorchOnKeysAndValuesFromElsewhere) {
  expect_cross_attention<double>();
  expect_cross_attention<float>();
}

}  // namespace
}  // namespace qkv
