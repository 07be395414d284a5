// The choice of a recipe: preset or run, file, values.
#include <gtest/gtest.h>

#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::TempFile;

TEST(RecipeChoice, WithoutAPresetItIsTheUsualOne) {
  EXPECT_EQ(translation_recipe({}).model, translation_preset("tiny").model);
  EXPECT_EQ(translation_recipe({.preset = "base"}).model, translation_preset("base").model);
  EXPECT_EQ(language_recipe({}).training, language_preset("lm-small").training);
  EXPECT_EQ(recommendation_recipe({}).training, recommendation_preset("auto").training);
  EXPECT_TRUE(recommendation_recipe({}).fit);
}

TEST(RecipeChoice, ValuesTakePrecedenceOverTheFile) {
  const TempFile file("values.json", R"({"d_model": 64, "dropout": 0.5})");
  const TranslationRecipe recipe = translation_recipe({"small", file.path(), {{"dropout", "0.25"}}});
  EXPECT_EQ(recipe.model.d_model, 64);
  EXPECT_EQ(recipe.model.attention.key_width, 16);
  EXPECT_EQ(recipe.model.dropout.residual, 0.25);
  EXPECT_EQ(recommendation_recipe({"", file.path(), {{"heads", "2"}}}).given,
            (std::set<std::string>{"d_model", "dropout", "heads"}));
}

TEST(RecipeChoice, NoValueFollowsAnotherThatIsGivenAsWell) {
  const RecipeValues values = {{"shared_embeddings", "true"}, {"joint_vocabulary", "false"}, {"freeze", "a,b"}};
  const TranslationRecipe recipe = translation_recipe({.values = values});
  EXPECT_TRUE(recipe.model.shared_embeddings);
  EXPECT_FALSE(recipe.text.joint_vocabulary);
  EXPECT_EQ(recipe.training.freeze, (std::vector<std::string>{"a", "b"}));
}

TEST(RecipeChoice, ErrorsNameTheFileOrTheValue) {
  EXPECT_EQ(error_of([] { translation_recipe({.preset = "huge"}); }),
            "unknown preset \"huge\" (choose from tiny, tiny-modern, small, base)");
  EXPECT_EQ(error_of([] { language_recipe({.preset = "gpt2", .init = "run"}); }),
            "training: preset must be empty with init, whose shape is kept (is gpt2)");
  EXPECT_EQ(error_of([] { translation_recipe({.config = "none.json"}); }),
            "none.json: cannot be opened: No such file or directory");
  const TempFile file("values.json", R"({"droput": 0.5})");
  EXPECT_EQ(error_of([&] { recommendation_recipe({.config = file.path()}); }),
            file.path() + ": unknown name \"droput\"; did you mean \"dropout\"?");
  EXPECT_EQ(error_of([] { language_recipe({.values = {{"ffn", "x"}}}); }), "recipe: ffn must be an integer (is \"x\")");
}

}  // namespace
}  // namespace qkv
