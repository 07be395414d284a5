// config.json and the models that cannot be built.
#include "qkv/config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "qkv/field.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;

ModelConfig small() {
  ModelConfig config;
  config.source_vocab = config.target_vocab = 1000;
  return config;
}

TEST(Config, TheDefaultsCanBeBuiltOnceVocabulariesAreKnown) {
  EXPECT_NO_THROW(check(small()));
  EXPECT_EQ(error_of([] { check(ModelConfig()); }), "model: source_vocab is 0, wanted 1 to 16777216");
}

TEST(Config, ComesBackFromJsonAsItWas) {
  ModelConfig config = small();
  config.activation = Activation::silu;
  config.norm.position = NormPosition::pre;
  config.norm.final = true;
  config.dropout.residual = 0.3;
  EXPECT_EQ(model_config_from_json(to_json(config), ""), config);
}

TEST(Config, JsonHoldsEveryField) {
  // A field that visit_fields forgot would keep its default. Each field here differs from it.
  // clang-format off
  const ModelConfig config = {
      11, 11, 1, 2, 32, {2, 1, 15, 17, false, false, 8, 30, true}, 48, Activation::gelu, true, false, false,
      Positions::halves, {500, 2, RotaryScaling::yarn, 77, 2, 3, 1.5, 6}, true, true,
      {NormKind::rms, NormPosition::pre, true, 0.001}, Sublayers::parallel, false, false, true, 7, 99, 66,
      {0.5, 0.25, 0.125}};
  // clang-format on
  ModelConfig read;  // without check(), which refuses gaps beside an encoder
  update_from_json(read, to_json(config), "");
  EXPECT_EQ(read, config);
  int fields = 0;
  visit_fields(read, [&](std::string_view, auto&, const Field& field) {
    EXPECT_FALSE(field.help.empty());
    fields++;
  });
  EXPECT_EQ(fields, 44);
}

TEST(Config, ErrorsNameTheFileAndTheField) {
  const auto read = [](const std::string& from, const std::string& to) {
    std::string text = to_json(small());
    text.replace(text.find(from), from.size(), to);
    return error_of([&] { model_config_from_json(text, "config.json"); });
  };
  EXPECT_EQ(read("\"heads\": 8", "\"head\": 8"), "config.json: unknown name \"head\"; did you mean \"heads\"?");
  EXPECT_EQ(read("\"heads\": 8", "\"heads\": 0"), "config.json: model: heads is 0, wanted 1 to 16777216");
  EXPECT_EQ(read("relu", "tanh"), "config.json: activation must be one of relu, gelu, silu, gelu_tanh (is \"tanh\")");
}

TEST(Config, AFieldThatIsMissingTakesItsDefault) {
  ModelConfig config = small();
  config.d_model = 64;
  std::string text = to_json(config);
  const std::string heads = "  \"heads\": 8,\n", sublayers = "  \"sublayers\": \"sequential\",\n";
  for (const std::string& line : {heads, sublayers}) {
    const size_t place = text.find(line);
    ASSERT_NE(place, std::string::npos);
    text.erase(place, line.size());
  }
  EXPECT_EQ(model_config_from_json(text, ""), config);
}

TEST(Config, AnOverrideKeepsWhatItDoesNotName) {
  ModelConfig config = small(), wanted = small();
  update_from_json(config, R"({"d_model": 256, "norm_position": "pre"})", "");
  wanted.d_model = 256;
  wanted.norm.position = NormPosition::pre;
  EXPECT_EQ(config, wanted);
  EXPECT_EQ(error_of([&] { update_from_json(config, R"({"d_model": 1, "dropuot": 0})", "my.json"); }),
            "my.json: unknown name \"dropuot\"; did you mean \"dropout\"?");
  EXPECT_EQ(config, wanted);
}

TEST(Config, CheckRefusesWhatCannotBeBuilt) {
  const auto refused = [](const std::string& part, const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = small();
    change(config);
    expect_contains(error_of([&] { check(config); }), part);
  };
  refused("encoder_layers is -1", [](auto& c) { c.encoder_layers = -1; });
  refused("encoder_layers is 0 and source_vocab is 1000", [](auto& c) { c.encoder_layers = 0; });
  refused("encoder_layers is 0 and shared_embeddings", [](auto& c) { c.encoder_layers = c.source_vocab = 0; });
  const auto no_decoder = [](ModelConfig& c) { c.decoder_layers = c.target_vocab = 0, c.tied_output = false; };
  refused("decoder_layers is 0 and target_vocab is 1000", [](auto& c) { c.decoder_layers = 0; });
  refused("decoder_layers is 0 and tied_output is set", [](auto& c) { c.decoder_layers = c.target_vocab = 0; });
  refused("decoder_layers is 0 and shared_embeddings", no_decoder);
  refused("decoder_layers is 0 and output_bias is set", [&](auto& c) { no_decoder(c), c.output_bias = true; });
  refused("decoder_layers is 0 and zero_start is set", [&](auto& c) { no_decoder(c), c.zero_start = true; });
  refused("decoder_layers is 0 and item_features is set", [&](auto& c) { no_decoder(c), c.item_features = 3; });
  refused("encoder_layers and decoder_layers are 0", [](auto& c) { c.encoder_layers = c.decoder_layers = 0; });
  refused("decoder_layers is 1001", [](auto& c) { c.decoder_layers = 1001; });
  refused("d_model is -1", [](auto& c) { c.d_model = -1; });
  refused("heads * key_width is", [](auto& c) { c.attention.heads = c.attention.key_width = int64_t{1} << 24; });
  refused("ffn is 9223372036854775807", [](auto& c) { c.ffn = INT64_MAX; });
  refused("dropout is 1,", [](auto& c) { c.dropout.residual = 1; });
  refused("attention_dropout is -0.1,", [](auto& c) { c.dropout.attention = -0.1; });
  refused("ffn_dropout is nan,", [](auto& c) { c.dropout.ffn = std::numeric_limits<double>::quiet_NaN(); });
  refused("norm_epsilon is 0,", [](auto& c) { c.norm.epsilon = 0; });
  refused("final_norm is false", [](auto& c) { c.norm.position = NormPosition::pre; });
  refused("norm_position is query and final_norm", [](auto& c) { c.norm.position = NormPosition::query; });
  refused("positions are halves and d_model is 31", [](auto& c) { c.positions = Positions::halves, c.d_model = 31; });
  refused("positions are closed_halves and d_model is 2",
          [](auto& c) { c.positions = Positions::closed_halves, c.d_model = 2; });
  refused("positions are rotary and key_width is 63",
          [](auto& c) { c.positions = Positions::rotary, c.attention.key_width = 63; });
  refused("rotary_width is 3,", [](auto& c) { c.rotary.width = 3; });
  refused("rotary_width is 66, must be even and between 0 and key_width (64)", [](auto& c) { c.rotary.width = 66; });
  refused("rotary_width is -2,", [](auto& c) { c.rotary.width = -2; });
  refused("sublayers is parallel and norm_position is post", [](auto& c) { c.sublayers = Sublayers::parallel; });
  refused("sublayers is parallel_shared_norm, which needs encoder_layers (is 6) or decoder_layers (is 6) to be 0",
          [](auto& c) {
            c.norm.position = NormPosition::pre, c.norm.final = true, c.sublayers = Sublayers::parallel_shared_norm;
          });
  refused("key_value_heads is 3 and heads is 8", [](auto& c) { c.attention.key_value_heads = 3; });
  refused("key_value_heads is -1", [](auto& c) { c.attention.key_value_heads = -1; });
  refused("rotary_base is 0,", [](auto& c) { c.rotary.base = 0; });
  refused("rotary_scale is inf,", [](auto& c) { c.rotary.scale = std::numeric_limits<double>::infinity(); });
  refused("rotary_factor is 0,", [](auto& c) { c.rotary.factor = 0; });
  refused("rotary_context is 0,", [](auto& c) { c.rotary.context = 0; });
  refused("rotary_low is 4 and rotary_high 4,", [](auto& c) { c.rotary.low = 4; });
  refused("rotary_scaling is yarn and rotary_base is 1,",
          [](auto& c) { c.rotary.scaling = RotaryScaling::yarn, c.rotary.base = 1; });
  refused("positions are none and encoder_layers is 6", [](auto& c) { c.positions = Positions::none; });
  refused("window is -1,", [](auto& c) { c.attention.window = -1; });
  refused("softcap is nan,", [](auto& c) { c.attention.softcap = std::numeric_limits<double>::quiet_NaN(); });
  refused("gap_buckets is -1, wanted 0 to 1000", [](auto& c) { c.gap_buckets = -1; });
  refused("gap_buckets is 1001, wanted 0 to 1000", [](auto& c) { c.gap_buckets = 1001; });
  refused("gap_buckets is 66 and encoder_layers is", [](auto& c) { c.gap_buckets = 66; });
  refused("target_vocab 999, wanted equal", [](auto& c) { c.target_vocab = 999; });
}

}  // namespace
}  // namespace qkv
