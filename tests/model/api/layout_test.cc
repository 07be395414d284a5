// Packed, padded and single sequences have the same results, and weights, names and errors are what the header says.
#include <gtest/gtest.h>

#include "tests/model/api/module_case.h"
#include "tests/support/errors.h"

namespace qkv::layers {
namespace {

using testing::error_of;
using testing::expect_contains;

// Sequences of 2, 0 and 3 rows.
const std::vector<int32_t> kLengths = {2, 0, 3};
constexpr int64_t kWidth = 4;

// The rows of the sequences at their places in a padded batch, where all other rows are NaN.
InputRows<float> padded(const InputRows<float>& packed) {
  InputRows<float> all(std::ssize(kLengths) * kWidth, packed.d, 0);
  std::ranges::fill(all.values, std::nanf(""));
  auto next = packed.values.begin();
  for (size_t s = 0; s < kLengths.size(); s++) {
    std::copy_n(next, kLengths[s] * packed.d, all.values.begin() + static_cast<int64_t>(s) * kWidth * packed.d);
    next += kLengths[s] * packed.d;
  }
  return all;
}

// The rows of a padded result that belong to a sequence; the others must be 0.
std::vector<float> packed_rows(Matrix<const float> m) {
  std::vector<float> rows;
  for (int64_t n = 0; n < m.rows; n++) {
    const bool inside = n % kWidth < kLengths[to_size(n / kWidth)];
    for (int64_t i = 0; i < m.cols; i++)
      if (inside)
        rows.push_back(m(n, i));
      else
        EXPECT_EQ(m(n, i), 0) << "row " << n;
  }
  return rows;
}

TEST(Modules, HaveTheSameBitsPackedAndPadded) {
  Encoder<float> module(small_layers());
  const InputRows<float> x(5, 8, 1), dy(5, 8, 2);
  const auto y = values_of(module.forward({x.matrix()}, {.rows = Rows::packed({0, 2, 2, 5})}));
  const auto dx = values_of(module.backward(dy.matrix())[0]);
  const std::vector<float> dW(module.gradients()[0].data, module.gradients()[0].data + 64);

  module.clear_gradients();
  const InputRows<float> wide = padded(x);
  EXPECT_EQ(packed_rows(module.forward({wide.matrix()}, {.rows = Rows::padded(kLengths, kWidth)})), y);
  EXPECT_EQ(packed_rows(module.backward(padded(dy).matrix())[0]), dx);
  EXPECT_EQ(std::vector<float>(module.gradients()[0].data, module.gradients()[0].data + 64), dW);

  const Matrix<const float> last = x.matrix().row_range(2, 5);
  EXPECT_EQ(values_of(module.forward({last})), std::vector<float>(y.begin() + 2 * 8, y.end()));
}

TEST(Modules, GiveZerosForABatchOfPadding) {
  Encoder<float> module(small_layers());
  const InputRows<float> x(8, 8, 1);
  const std::vector<float> zeros(64);
  EXPECT_EQ(values_of(module.forward({x.matrix()}, {.rows = Rows::padded({0, 0}, 4)})), zeros);
  EXPECT_EQ(values_of(module.backward(x.matrix())[0]), zeros);
}

TEST(Modules, AddUpGradientsOfBackwardPasses) {
  Linear<float> module(8, 8);
  const InputRows<float> x(5, 8, 1), dy(5, 8, 2);
  module.forward({x.matrix()});
  module.backward(dy.matrix());
  const std::vector<float> once(module.gradients()[0].data, module.gradients()[0].data + 64);
  module.backward(dy.matrix());
  for (size_t i = 0; i < 64; i++) EXPECT_NEAR(module.gradients()[0].data[i], 2 * once[i], 1e-5);
  module.clear_gradients();
  EXPECT_EQ(module.gradients()[0].data[0], 0);
}

TEST(Modules, ReturnTheWeightsOfEachAttention) {
  Transformer<float> module(small_layers());
  const InputRows<float> source(7, 8, 1), target(5, 8, 2);
  module.forward({source.matrix(), target.matrix()},
                 {.rows = Rows::packed({0, 2, 5}), .memory_rows = Rows::packed({0, 4, 7})});
  EXPECT_EQ(module.attention_kinds(), (std::vector<std::string>{"encoder", "self", "cross"}));
  for (const std::string& kind : module.attention_kinds()) {
    EXPECT_EQ(module.attention_layers(kind), 2);
    const AttentionWeights<float> found = module.attention_weights(kind, 1);
    EXPECT_EQ(found.sequences, 2);
    EXPECT_EQ(found.heads, 2);
    EXPECT_EQ(found.queries, kind == "encoder" ? 4 : 3);
    EXPECT_EQ(found.keys, kind == "self" ? 3 : 4);
    for (int64_t row = 0; row < 2 * 2 * found.queries; row++) {
      double sum = 0;
      for (int64_t j = 0; j < found.keys; j++) sum += static_cast<double>(found.values[to_size(row * found.keys + j)]);
      const int64_t s = row / (2 * found.queries), i = row % found.queries;
      const int64_t length = kind == "encoder" ? (s == 0 ? 4 : 3) : (s == 0 ? 2 : 3);
      EXPECT_NEAR(sum, i < length ? 1 : 0, 1e-5) << kind << " row " << row;
    }
  }
  EXPECT_EQ(error_of([&] { module.attention_weights("cross", 2); }), "Transformer: layer must be from 0 to 1 (is 2)");
  expect_contains(error_of([&] { module.attention_weights("both"); }), "choose from: encoder, self, cross");
}

TEST(Modules, ReadTheNamesOfPyTorch) {
  DecoderLayer<float> module(sizes(8, 2, 12));
  std::vector<std::string> names;
  for (const auto& p : module.parameters(Names::torch)) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
                       "self_attn.out_proj.bias", "norm1.weight", "norm1.bias", "multihead_attn.in_proj_weight",
                       "multihead_attn.in_proj_bias", "multihead_attn.out_proj.weight", "multihead_attn.out_proj.bias",
                       "norm2.weight", "norm2.bias", "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias",
                       "norm3.weight", "norm3.bias"}));
  EXPECT_EQ(module.parameters(Names::torch)[0].shape, (std::vector<int64_t>{24, 8}));
  EXPECT_EQ(module.parameters()[0].name, "self_attention.q.weight");
}

TEST(Modules, LoadAllParametersOrNone) {
  Linear<float> module(2, 1);
  const std::vector<float> weight = {3, 4}, bias = {5};
  using Arrays = std::vector<NamedArray<const float>>;
  const Arrays all = {{"bias", {1}, bias.data()}, {"weight", {1, 2}, weight.data()}};
  module.load_state_dict(all);
  EXPECT_EQ(module.parameters()[0].data[1], 4);
  EXPECT_EQ(module.parameters()[1].data[0], 5);

  const std::vector<float> other = {8, 9};
  const auto error = [&](const Arrays& arrays) { return error_of([&] { module.load_state_dict(arrays); }); };
  EXPECT_EQ(error({{"weight", {1, 2}, other.data()}}), "Linear: parameter bias is missing");
  EXPECT_EQ(error({{"weight", {2, 1}, other.data()}, all[0]}),
            "Linear: parameter weight has shape [2, 1], expected [1, 2]");
  EXPECT_EQ(error({{"weight", {1, 2}, other.data()}, {"weight", {1, 2}, other.data()}, all[0]}),
            "Linear: parameter weight occurs twice");
  EXPECT_EQ(error({{"weight", {1, 2}, other.data()}, {"gamma", {1}, other.data()}}),
            "Linear: no parameter is named \"gamma\"");
  EXPECT_EQ(module.parameters()[0].data[1], 4);
}

TEST(Modules, NameWhatIsWrong) {
  DecoderLayer<float> module(sizes(8, 2, 12));
  const InputRows<float> x(5, 8, 1), narrow(5, 4, 1);
  const Matrix<const float> m = x.matrix();
  EXPECT_EQ(error_of([&] { module.backward(m); }), "DecoderLayer: backward needs a forward pass first");
  EXPECT_EQ(error_of([&] { module.forward({m}); }), "DecoderLayer: expected 2 inputs, found 1");
  EXPECT_EQ(error_of([&] { module.forward({m, narrow.matrix()}); }), "DecoderLayer: memory has width 4, expected 8");
  EXPECT_EQ(error_of([&] {
              module.forward({m, m}, {.rows = Rows::packed({0, 2, 5})});
            }),
            "DecoderLayer: 2 sequences of queries, 1 of keys: expected the same number");
  EXPECT_EQ(error_of([&] {
              module.forward({m, m}, {.rows = Rows::packed({0, 3, 2, 5})});
            }),
            "DecoderLayer: offsets must not decrease (3 is followed by 2)");
  EXPECT_EQ(error_of([&] {
              module.forward({m, m}, {.rows = Rows::packed({0, 4})});
            }),
            "DecoderLayer: offsets must be from 0 to 5, the number of rows (are from 0 to 4)");
  EXPECT_EQ(error_of([&] {
              module.forward({m, m}, {.rows = Rows::padded({6}, 5)});
            }),
            "DecoderLayer: lengths must be from 0 to 5, the width of the batch (found 6)");
  module.forward({m, m});
  EXPECT_EQ(error_of([&] { module.backward(narrow.matrix()); }),
            "DecoderLayer: the gradient has shape [5, 4], expected that of the output, [5, 8]");

  ModelConfig rotary = sizes(8, 2, 12);
  rotary.positions = Positions::rotary;
  rotary.max_length = 4;
  MultiHeadAttention<float> attention(rotary);
  EXPECT_EQ(error_of([&] { attention.forward({m}); }),
            "MultiHeadAttention: sequences must have at most 4 tokens, the max_length (one has 5)");
  EXPECT_EQ(error_of([&] {
              attention.forward({m.row_range(0, 3), m.row_range(0, 3)});
            }),
            "MultiHeadAttention: k must not be given with rotary positions, alibi, a window or a relative bias");
  EXPECT_EQ(error_of([&] { Embedding<float>(7, 4).forward(std::vector<int32_t>{7}); }),
            "Embedding: ids must be from 0 to 6 (found 7)");
  EXPECT_EQ(error_of([&] { Linear<float>(0, 4); }), "Linear: in must be between 1 and 16777216 (is 0)");
  expect_contains(error_of([&] { sizes(8, 0, 12); }), "heads");
}

}  // namespace
}  // namespace qkv::layers
