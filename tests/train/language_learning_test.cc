// Language models learn all of a text that is not random. Tests with sanitizers leave this out: it trains for minutes
// there, with code that other tests run as well.
#include <gtest/gtest.h>

#include "qkv/generator.h"
#include "tests/support/errors.h"
#include "tests/support/generate_options.h"
#include "tests/train/small_language.h"

namespace qkv::testing {
namespace {

// A random digit has log2 10 = 3.32 bits in each document of eleven bytes; the rest is determined.
TEST(Language, LearnsAllThatIsNotRandom) {
  const TempDir directory;
  const std::string text = write_text(directory);
  for (const char* unit : {"characters", "bytes"}) {
    LanguageRecipe recipe = small_language();
    set_recipe_option(recipe, "unit", unit);
    const std::string out = directory / unit;
    const double bits = train_small_language(text, recipe, out);
    EXPECT_GT(bits, 0.9 * 3.32 / 11) << unit;
    EXPECT_LT(bits, 1.3 * 3.32 / 11) << unit;

    const Generator generator(out);
    const Generation found = generator.generate("7:", greedy());
    EXPECT_EQ(found.text, "hhhhhhhhh");
    EXPECT_EQ(found.end, GenerationEnd::document);
    EXPECT_EQ(found.tokens.size(), 9u);
    EXPECT_EQ(generator.generate("7:", greedy(256, {"xx", "hhh"})).text, "");
    std::string emitted;
    GenerateOptions options = greedy(5, {"hx"});
    options.on_text = [&](std::string_view piece) { emitted += piece; };
    EXPECT_EQ(generator.generate("7:", options).end, GenerationEnd::length);
    EXPECT_EQ(emitted, "hhhhh");
  }
}

TEST(Language, LearnsSentencePiecesOfTheText) {
  const TempDir directory;
  const std::string text = write_text(directory);
  LanguageRecipe recipe = small_language();
  merge_recipe_json(recipe, R"({"unit": "pieces", "vocab_size": 300})", "");
  const std::string out = directory / "run";
  EXPECT_LT(train_small_language(text, recipe, out), 1.3 * 3.32 / 11);
  EXPECT_EQ(Generator(out).generate("7:", greedy()).text, "hhhhhhhhh");

  // Another model with the same pieces.
  const LanguageFiles files = {{text}, {}, out + "/tokenizer.model"};
  recipe.training.max_steps = 1;
  EXPECT_TRUE(train_language_model(files, recipe, directory / "other", {}));
  EXPECT_TRUE(slurp(out + "/tokenizer.model") == slurp((directory / "other") + "/tokenizer.model"));
  set_recipe_option(recipe, "unit", "bytes");
  EXPECT_EQ(error_of([&] { train_language_model(files, recipe, directory / "third", {}); }),
            "training: a tokenizer requires unit = pieces (unit is bytes)");
}

TEST(Language, ModernArchitecturesLearnTheText) {
  const TempDir directory;
  LanguageRecipe recipe = small_language();
  merge_recipe_json(recipe, R"({"norm": "rms", "positions": "rotary", "gated_ffn": true, "activation": "silu",
      "heads": 4, "key_value_heads": 2, "query_key_norm": true, "window": 12, "dropout": 0.05})",
                    "");
  EXPECT_LT(train_small_language(write_text(directory), recipe, directory / "run"), 1.3 * 3.32 / 11);
  EXPECT_EQ(Generator(directory / "run").generate("3:", greedy()).text, "ddddddddd");
}

}  // namespace
}  // namespace qkv::testing
