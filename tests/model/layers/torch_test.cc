// nn.MultiheadAttention: outputs, weights and gradients of self-attention. tests/model/api/torch_test.cc has three
// inputs.
#include <gtest/gtest.h>

#include "core/to_size.h"
#include "model/layers/attention.h"
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

}  // namespace
}  // namespace qkv
