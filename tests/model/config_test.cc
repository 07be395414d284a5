// config.json and the models that cannot be built.
#include "qkv/config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "core/fields.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

ModelConfig config_of(int64_t vocab) {
  ModelConfig config;
  config.source_vocab = config.target_vocab = vocab;
  return config;
}

TEST(Config, DefaultsAreValidOnceTheVocabulariesAreSet) {
  EXPECT_NO_THROW(check(config_of(1000)));
  EXPECT_EQ(error_of([] { check(ModelConfig()); }), "model: source_vocab must be between 1 and 16777216 (is 0)");
}

TEST(Config, SurvivesTheRoundTripThroughJson) {
  ModelConfig config = config_of(1000);
  config.activation = Activation::silu;
  config.norm.position = NormPosition::pre;
  config.norm.final = true;
  config.dropout.residual = 0.3;
  ModelConfig read;
  update_from_json(read, to_json(config), "");
  EXPECT_EQ(read, config);
}

TEST(Config, JsonContainsEveryField) {
  // Each field differs from its default, which a field that visit_fields lacks would keep.
  // clang-format off
  const ModelConfig config = {
      11, 11, 1, 2, 32, {2, 1, 15, 17, false, false, 8, 0.5, 30, 5, 4, true, true, "lg"}, 48, Activation::gelu, true, false, false,
      Positions::halves, {500, 2, RotaryScaling::yarn, 77, 2, 3, 1.5, 6, 50}, true, true, 24, 2,
      {NormKind::rms, NormPosition::pre, true, 0.001, false}, Sublayers::parallel, true, false, false, true, 30, TokenHead::dense, 99,
      {0.5, 0.25, 0.125}};
  // clang-format on
  ModelConfig read;  // without check(), which rejects parallel sublayers next to cross-attention
  update_from_json(read, to_json(config), "");
  EXPECT_EQ(read, config);
  ItemInputs items;
  std::vector<std::string> names;
  const std::set<std::string_view> groups = {"model", kTranslatorGroup, kEncoderGroup, kDecoderGroup, kTokenHeadGroup};
  visit_fields(read, items, [&](std::string_view name, auto&, const Field& field) {
    EXPECT_FALSE(field.help.empty()) << name;
    EXPECT_TRUE(groups.contains(field.group)) << name;
    names.emplace_back(name);
  });
  EXPECT_EQ(names.size(), 56u);
  EXPECT_EQ(std::vector(names.end() - 6, names.end()),
            (std::vector<std::string>{"item_features", "max_length", "gap_buckets", "dropout", "attention_dropout",
                                      "ffn_dropout"}));
}

TEST(Config, ErrorsNameTheFileAndTheField) {
  const auto read = [](const std::string& from, const std::string& to) {
    std::string text = to_json(config_of(1000));
    text.replace(text.find(from), from.size(), to);
    ModelConfig config;
    return error_of([&] { update_from_json(config, text, "config.json"); });
  };
  EXPECT_EQ(read("\"heads\": 8", "\"head\": 8"), "config.json: unknown name \"head\"; did you mean \"heads\"?");
  EXPECT_EQ(read("relu", "tanh"), "config.json: activation must be one of relu, gelu, silu, gelu_tanh (is \"tanh\")");
}

TEST(Config, AnUpdateKeepsTheFieldsThatItDoesNotName) {
  ModelConfig config = config_of(1000), expected = config;
  update_from_json(config, R"({"d_model": 256, "norm_position": "pre"})", "");
  expected.d_model = 256;
  expected.norm.position = NormPosition::pre;
  EXPECT_EQ(config, expected);
  EXPECT_EQ(error_of([&] { update_from_json(config, R"({"d_model": 1, "dropuot": 0})", "my.json"); }),
            "my.json: unknown name \"dropuot\"; did you mean \"dropout\"?");
  EXPECT_EQ(config, expected);
}

// The error of check() for a model of 1000 tokens after a change, without its prefix "model: ".
std::string error_after(const std::function<void(ModelConfig&)>& change, const ItemInputs& items = {}) {
  ModelConfig config = config_of(1000);
  change(config);
  const std::string error = error_of([&] { check(config, items); });
  return error.starts_with("model: ") ? error.substr(7) : "no prefix: " + error;
}

void without_encoder(ModelConfig& c) { c.encoder_layers = c.source_vocab = 0, c.shared_embeddings = false; }
void without_decoder(ModelConfig& c) {
  c.decoder_layers = c.target_vocab = 0, c.tied_output = c.shared_embeddings = false;
}

TEST(Config, CheckRejectsNumbersOutsideTheirRanges) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_after([](auto& c) { c.encoder_layers = -1; }), "encoder_layers must be between 0 and 1000 (is -1)");
  EXPECT_EQ(error_after([](auto& c) { c.decoder_layers = 1001; }),
            "decoder_layers must be between 0 and 1000 (is 1001)");
  EXPECT_EQ(error_after([](auto& c) { c.d_model = -1; }), "d_model must be between 1 and 16777216 (is -1)");
  EXPECT_EQ(error_after([](auto& c) { c.ffn = INT64_MAX; }),
            "ffn must be between 1 and 16777216 (is 9223372036854775807)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.key_value_heads = -1; }),
            "key_value_heads must be between 0 and 16777216 (is -1)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.window = -1; }), "window must be between 0 and 16777216 (is -1)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.scale = -1; }), "attention_scale must be at least 0 (is -1)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.relative_buckets = -1; }),
            "relative_buckets must be between 0 and 4096 (is -1)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.relative_distance = 0; }),
            "relative_distance must be between 1 and 65536 (is 0)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.softcap = kNan; }), "softcap must be at least 0 (is nan)");
  EXPECT_EQ(error_after([](auto& c) { c.dropout.residual = 1; }), "dropout must be at least 0 and below 1 (is 1)");
  EXPECT_EQ(error_after([](auto& c) { c.dropout.attention = -0.1; }),
            "attention_dropout must be at least 0 and below 1 (is -0.1)");
  EXPECT_EQ(error_after([](auto& c) { c.dropout.ffn = kNan; }), "ffn_dropout must be at least 0 and below 1 (is nan)");
  EXPECT_EQ(error_after([](auto& c) { c.norm.epsilon = 0; }), "norm_epsilon must be above 0 and below 1 (is 0)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.base = 0; }), "rotary_base must be above 0 (is 0)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.scale = kInf; }), "rotary_scale must be above 0 (is inf)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.factor = 0; }), "rotary_factor must be above 0 (is 0)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.context = 0; }), "rotary_context must be between 1 and 16777216 (is 0)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.width = -2; }), "rotary_width must be between 0 and 16777216 (is -2)");
  EXPECT_EQ(error_after(without_encoder, {.gap_buckets = -1}), "gap_buckets must be between 0 and 1000 (is -1)");
  EXPECT_EQ(error_after(without_encoder, {.gap_buckets = 1001}), "gap_buckets must be between 0 and 1000 (is 1001)");
}

TEST(Config, CheckRejectsFieldsOfASideThatTheModelLacks) {
  EXPECT_EQ(error_after([](auto& c) { c.encoder_layers = c.decoder_layers = 0; }),
            "encoder_layers and decoder_layers must not both be 0");
  EXPECT_EQ(error_after([](auto& c) { c.encoder_layers = 0; }),
            "source_vocab must be 0 if encoder_layers is 0 (is 1000)");
  EXPECT_EQ(error_after([](auto& c) { c.decoder_layers = 0; }),
            "target_vocab must be 0 if decoder_layers is 0 (is 1000)");
  EXPECT_EQ(error_after([](auto& c) { without_encoder(c), c.shared_embeddings = true; }),
            "shared_embeddings must be false if encoder_layers is 0 (is true)");
  EXPECT_EQ(error_after([](auto& c) { without_decoder(c), c.shared_embeddings = true; }),
            "shared_embeddings must be false if decoder_layers is 0 (is true)");
  EXPECT_EQ(error_after([](auto& c) { without_decoder(c), c.tied_output = true; }),
            "tied_output must be false if decoder_layers is 0 and token_head is none (is true)");
  EXPECT_EQ(error_after([](auto& c) { without_decoder(c), c.output_bias = true; }),
            "output_bias must be false if decoder_layers is 0 and token_head is none (is true)");
  EXPECT_EQ(error_after([](auto& c) { c.token_head = TokenHead::output; }),
            "token_head must be none unless decoder_layers is 0 (is output)");
  EXPECT_EQ(error_after([](auto& c) { without_decoder(c), c.zero_start = true; }),
            "zero_start must be false if decoder_layers is 0 (is true)");
  EXPECT_EQ(error_after(without_decoder, {.features = 3}),
            "item_features must be 0 unless the model is decoder-only (is 3)");
  EXPECT_EQ(error_after([](auto&) {}, {.gap_buckets = 66}),
            "gap_buckets must be 0 unless the model is decoder-only (is 66)");
}

TEST(Config, CheckRejectsProjectedEmbeddingsThatAreUsedAsOutput) {
  EXPECT_EQ(
      error_after([](auto& c) { c.embedding_width = 16; }),
      "tied_output must be false if embedding_width is not 0, because the output layer has width d_model (is true)");
  const auto project = [](auto& c) { without_encoder(c), c.embedding_width = 16, c.tied_output = false; };
  EXPECT_EQ(error_after(project, {.features = 2}), "item_features must be 0 if embedding_width is not 0 (is 2)");
  EXPECT_EQ(error_after(project, {.gap_buckets = 2}), "gap_buckets must be 0 if embedding_width is not 0 (is 2)");
  ModelConfig valid = config_of(1000);
  project(valid);
  EXPECT_NO_THROW(check(valid));
  EXPECT_EQ(error_after([](auto& c) { c.embedding_width = -1; }),
            "embedding_width must be between 0 and 16777216 (is -1)");
  EXPECT_EQ(error_after([](auto& c) { c.embedding_width = 3, c.tied_output = false, c.positions = Positions::halves; }),
            "embedding_width must be even and at least 4 if positions is halves (is 3)");
  EXPECT_EQ(error_after([](auto& c) { without_encoder(c), c.token_types = 2; }),
            "token_types must be 0 if encoder_layers is 0 (is 2)");
}

TEST(Config, CheckRejectsFieldsThatContradictEachOther) {
  EXPECT_EQ(error_after([](auto& c) { c.target_vocab = 999; }),
            "source_vocab and target_vocab must be equal if shared_embeddings is true (are 1000 and 999)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.key_value_heads = 3; }),
            "key_value_heads must divide heads (8) or be 0 (is 3)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.relative_buckets = 3; }),
            "relative_buckets must be 0 or at least 4 (is 3)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.relative_buckets = 32, c.attention.relative_distance = 16; }),
            "relative_distance must be above relative_buckets / 2 (16) (is 16)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.query_key_norm_over_heads = true; }),
            "query_key_norm_over_heads must be false if query_key_norm is false (is true)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.layer_pattern = "gL"; }),
            "layer_pattern must consist of the letters l, g and n (is \"gL\")");
  EXPECT_EQ(error_after([](auto& c) { c.attention.layer_pattern = "ggggggl"; }),
            "layer_pattern must have at most 6 letters, one for each layer (has 7)");
  EXPECT_EQ(error_after([](auto& c) { c.norm.first = false; }),
            "first_norm must be true unless norm_position is pre and sublayers is sequential (is false)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.heads = c.attention.key_width = int64_t{1} << 24; }),
            "heads * key_width must be between 1 and 16777216 (is 281474976710656)");
  EXPECT_EQ(error_after([](auto& c) { c.norm.position = NormPosition::pre; }),
            "final_norm must be true if norm_position is pre: nothing else normalizes the last sum (is false)");
  EXPECT_EQ(error_after([](auto& c) { c.norm.position = NormPosition::query; }),
            "final_norm must be true if norm_position is query: nothing else normalizes the last sum (is false)");
  EXPECT_EQ(error_after([](auto& c) { c.sublayers = Sublayers::parallel; }),
            "norm_position must be pre if sublayers is parallel (is post)");
  EXPECT_EQ(error_after([](auto& c) {
              c.norm.position = NormPosition::pre, c.norm.final = true;
              c.sublayers = Sublayers::parallel_shared_norm;
            }),
            "sublayers must be sequential in a model with an encoder and a decoder (is parallel_shared_norm)");
}

TEST(Config, CheckRejectsPositionsThatDoNotFitTheModel) {
  EXPECT_EQ(error_after([](auto& c) { c.positions = Positions::halves, c.d_model = 31; }),
            "d_model must be even and at least 4 if positions is halves (is 31)");
  EXPECT_EQ(error_after([](auto& c) { c.positions = Positions::closed_halves, c.d_model = 2; }),
            "d_model must be even and at least 4 if positions is closed_halves (is 2)");
  EXPECT_EQ(
      error_after([](auto& c) { c.positions = Positions::none; }),
      "positions must not be none in a model with an encoder and without relative_buckets, which would see a bag of "
      "tokens");
  EXPECT_EQ(error_after([](auto& c) { c.positions = Positions::rotary, c.attention.key_width = 63; }),
            "key_width must be even if positions is rotary and rotary_width is 0 (is 63)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.width = 3; }),
            "rotary_width must be even and at most key_width (64) (is 3)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.width = 66; }),
            "rotary_width must be even and at most key_width (64) (is 66)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.low = 4; }), "rotary_low must be below rotary_high (4) (is 4)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.scaling = RotaryScaling::yarn, c.rotary.base = 1; }),
            "rotary_base must be above 1 if rotary_scaling is yarn (is 1)");
  EXPECT_EQ(error_after([](auto& c) { c.rotary.local_base = 5; }),
            "rotary_local_base must be 0 if layer_pattern has no l (is 5)");
  EXPECT_EQ(error_after([](auto& c) { c.attention.layer_pattern = "lgn"; }),
            "layer_pattern must have no n unless positions is rotary (is \"lgn\")");
  EXPECT_EQ(error_after([](auto& c) { c.max_length = int64_t{1} << 20; }),
            "max_length * d_model must be between 1 and 8388608 (is 536870912)");
}

}  // namespace
}  // namespace qkv
