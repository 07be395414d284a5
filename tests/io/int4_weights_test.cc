// 4-bit weights in a file: they survive in any order of tensors, layers that are computed together have them together,
// and errors name the tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/to_size.h"
#include "io/weights/quantized_weights.h"
#include "io/weights/weights.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/rewrite_tensors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::rewrite_tensors;
using testing::Tensor;

class Int4Weights : public ::testing::Test {
 protected:
  // Width 64. Feed-forward layers of 40 stay in 8 bits: 40 is no multiple of 16, nor of 64.
  Int4Weights() : path(directory / "model.safetensors") {
    config.d_model = 64;
    config.ffn = 40;
    config.attention.key_width = config.attention.value_width = 32;
    model = std::make_unique<Transformer<float>>(config);
    testing::randomize(model->parameters(), 1);
    quantize(model->parameters(), 4);
    save_quantized(path, model->parameters());
  }

  std::string error_after(const std::string& name, const std::function<void(Tensor&)>& change) const {
    save_quantized(path, model->parameters());
    rewrite_tensors(path, [&](std::vector<Tensor>& all) { change(*std::ranges::find(all, name, &Tensor::name)); });
    return error_of([&] { load_model(path, config); });
  }

  void expect_same_as_file() const {
    const auto loaded = load_model(path, config);
    const auto &wanted = model->parameters().all(), &found = loaded->parameters().all();
    for (size_t i = 0; i < wanted.size(); i++) {
      SCOPED_TRACE(wanted[i].name);
      const Int4Matrix &a = wanted[i].int4, &b = found[i].int4;
      ASSERT_EQ(a.blocks == nullptr, b.blocks == nullptr);
      if (!a.blocks) continue;
      ASSERT_EQ(a.bytes(), b.bytes());
      EXPECT_TRUE(std::equal(a.blocks, a.blocks + a.bytes(), b.blocks));
      if (!found[i].joined) continue;
      EXPECT_EQ(b.blocks, found[i - 1].int4.blocks + found[i - 1].int4.bytes());
    }
  }

  testing::TempDir directory;
  std::string path;
  ModelConfig config = testing::small_config();
  std::unique_ptr<Transformer<float>> model;
  const std::string q = "encoder.layers.0.self_attention.q.weight", k = "encoder.layers.0.self_attention.k.weight";
};

TEST_F(Int4Weights, AreThoseOfLinearLayersWhoseShapeFits) {
  for (const auto& p : model->parameters().all()) {
    const bool fits = p.least_bits == 4 && p.shape[0] % 16 == 0 && p.shape[1] % 64 == 0;
    EXPECT_EQ(p.int4.blocks != nullptr, fits) << p.name;
    EXPECT_EQ(p.int8.values.data != nullptr, p.least_bits <= 8 && !fits) << p.name;
  }
  EXPECT_GE(count_int4(model->parameters()), 12);
  EXPECT_GT(count_int8(model->parameters()), 2);
  EXPECT_TRUE(is_quantized(model->parameters()));
}

TEST_F(Int4Weights, SurviveAFile) { expect_same_as_file(); }

TEST_F(Int4Weights, SurviveAFileInAnyOrder) {
  rewrite_tensors(path, [](std::vector<Tensor>& all) { std::ranges::reverse(all); });
  expect_same_as_file();
}

TEST_F(Int4Weights, WrongTensorsAreRejected) {
  const std::string begin = path + ": tensor \"" + q + "\" ";
  EXPECT_EQ(error_after(q, [](Tensor& t) { std::swap(t.shape[0], t.shape[1]); }),
            begin + "must be U8 [4, 1, 576] (is U8 [1, 4, 576])");
  for (const uint16_t bits : {0x7C00, 0xFC00, 0x7E01})
    EXPECT_EQ(error_after(q, [&](Tensor& t) { std::memcpy(&t.bytes[576 + 62], &bits, 2); }),
              begin + "contains a scale that is not finite");
  const auto to_floats = [](Tensor& t) { t = {t.name, DType::f32, {64, 64}, std::vector<std::byte>(64 * 64 * 4)}; };
  EXPECT_EQ(error_after(k, to_floats), path + ": tensor \"" + k + "\" must have 4 bits, like the others of its layer");
  EXPECT_EQ(error_after(k, [](Tensor& t) { t.name += "x"; }),
            path + ": tensor \"" + k + "x\" is not part of the model");
}

}  // namespace
}  // namespace qkv
