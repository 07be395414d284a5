// An encoder learns to predict masked tokens; its run embeds texts, can be resumed and trained further, and what cannot
// be trained is refused.
#include "qkv/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "io/runs/run.h"
#include "qkv/embedder.h"
#include "qkv/import.h"
#include "tests/support/bert_case.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "tests/train/training_cases.h"

namespace qkv::testing {
namespace {

// Lines of one word, several times: a masked word is the others'.
std::string write_repeated_words(const TempDir& directory) {
  Random random(1, Stream::test);
  std::string text;
  for (int i = 0; i < 400; i++) {
    const char word = static_cast<char>('a' + random.below(12));
    for (int n = 0; n < 4 + i % 5; n++) text += fmt::format("{}{}", n > 0 ? " " : "", word);
    text += '\n';
  }
  spill(directory / "words.txt", text);
  return directory / "words.txt";
}

EncoderRecipe small_encoder(const std::string& json = "{}") {
  EncoderRecipe recipe = encoder_preset("encoder-tiny");
  merge_recipe_json(recipe, R"({"d_model": 32, "heads": 2, "ffn": 64, "encoder_layers": 2, "max_length": 16,
      "lines": true, "vocab_size": 30, "batch_tokens": 256, "learning_rate": 0.01, "warmup_steps": 10,
      "max_steps": 150, "eval_every": 50})",
                    "");
  merge_recipe_json(recipe, json, "");
  return recipe;
}

// Trains and returns the perplexity of the last evaluation.
double perplexity_of(const EncoderFiles& files, const EncoderRecipe& recipe, const std::string& out) {
  double perplexity = -1;
  TrainingObserver observer;
  observer.on_evaluation = [&](const EvaluationReport& r) { perplexity = r.candidates.front().measures.back().value; };
  EXPECT_TRUE(train_encoder(files, recipe, out, observer));
  return perplexity;
}

TEST(Encoder, LearnsMaskedWordsAndEmbedsTexts) {
  const TempDir directory;
  const std::string text = write_repeated_words(directory), out = directory / "run";
  EXPECT_LT(perplexity_of({{text}}, small_encoder(), out), 1.2);
  EXPECT_LT(perplexity_of({{text}}, small_encoder(R"({"whole_words": true, "mask_span": 2, "token_head": "output"})"),
                          directory / "words"),
            1.6);
  const Embedder embedder(out);
  const Embeddings vectors = embedder.embed({"a a a a", "a a a", "b b b b"});
  const auto distance = [&](size_t i, size_t j) {
    double sum = 0;
    for (int64_t k = 0; k < vectors.width; k++) {
      const auto at = [&](size_t n) { return vectors.values[n * 32 + to_size(k)]; };
      sum += (at(i) - at(j)) * (at(i) - at(j));
    }
    return sum;
  };
  EXPECT_LT(distance(0, 1), distance(0, 2));
}

// tests/golden/masked/make_training.py trains the same models in float64, on batches and masks of its own. Rounding to
// float32 changes a loss by less than 1e-7; ModernBERT's layers without biases amplify it over the steps, to 3e-6.
TEST(Encoder, LossesOfFiftyStepsAreThoseOfPyTorch) {
  constexpr double kTolerance = 1e-5;
  const std::string golden = QKV_GOLDEN_DIR "/masked/", text = golden + "letters.txt";
  const auto expected = nlohmann::json::parse(slurp(golden + "training.json"));
  for (const auto& [name, losses] : expected.at("losses").items()) {
    const TempDir directory;
    const std::string own = golden + name, start = directory / "start";
    import_model(std::filesystem::exists(own) ? own : BertCase(name).path(), start, listed_tokens());
    EncoderRecipe recipe = encoder_fine_tuning(start);
    merge_recipe_json(recipe, expected.at("recipe").dump(), "");
    merge_recipe_json(recipe, R"({"lines": true, "eval_every": 0, "dropout": 0, "attention_dropout": 0})", "");
    std::vector<double> found;
    TrainingObserver observer;
    observer.on_step = [&](const StepReport& r) { found.push_back(r.loss); };
    EXPECT_TRUE(train_encoder({.text = {text}, .dev = {text}, .init = start}, recipe, directory / "run", observer));
    ASSERT_EQ(found.size(), losses.size()) << name;
    for (size_t i = 0; i < found.size(); i++) {
      const double loss = losses[i];
      EXPECT_NEAR(found[i], loss, kTolerance * loss) << name << ", step " << i + 1;
    }
  }
}

TEST(Encoder, InterruptedTrainingEndsWithTheSameBytes) {
  const TempDir directory;
  const TrainingCase c = encoder_case(directory);
  const std::string json = R"({"max_steps": 40, "eval_every": 15, "average": 2, "precision": "int8"})";  // two epochs
  with_threads(1, [&] { return steps_of(c, json, directory / "whole").size(); });
  with_threads(3, [&] {
    for (const size_t stop : {7, 20, 0}) steps_of(c, json, directory / "parts", stop);
    return 0;
  });
  expect_same_run(directory / "whole", directory / "parts");
  EXPECT_EQ(error_of([&] {
              steps_of(c, R"({"precision": "int8", "average": 2, "eval_every": 15, "mask_share": 0.2})",
                       directory / "parts");
            }),
            (directory / "parts") +
                ": mask_share was 0.15 when this run was started and is now 0.2; use the same value or another "
                "directory");
}

// Expects that parameters with these in their names, and no others, have the same bits in a run that another started.
void expect_same_parameters(const std::string& before, const std::string& after, const std::set<std::string>& frozen) {
  const EncoderRun a = load_run<EncoderRun>(before), b = load_run<EncoderRun>(after);
  std::map<std::string, std::vector<float>> values;
  for (const Parameter<float>& p : b.model->parameters().all()) values[p.name].assign(p.value, p.value + p.size());
  for (const Parameter<float>& p : a.model->parameters().all()) {
    const bool is_frozen =
        std::ranges::any_of(frozen, [&](const std::string& part) { return p.name.find(part) != std::string::npos; });
    EXPECT_EQ(values[p.name] == std::vector<float>(p.value, p.value + p.size()), is_frozen) << p.name;
  }
}

// Without its head, a run is what an import gives: training starts from all other weights.
TEST(Encoder, StartsFromARunWithOrWithoutAHead) {
  const TempDir directory;
  const std::string text = write_repeated_words(directory), out = directory / "run", bare = directory / "bare";
  const double perplexity = perplexity_of({{text}}, small_encoder(), out);
  EncoderRun run = load_run<EncoderRun>(out);
  EncoderRun headless{run.config, run.embedding, run.codec};
  headless.config.token_head = TokenHead::none;
  headless.config.tied_output = headless.config.output_bias = false;
  Transformer<float> model(headless.config);
  for (size_t i = 0; i < model.parameters().all().size(); i++) {
    const auto &from = run.model->parameters().all()[i], &to = model.parameters().all()[i];
    ASSERT_EQ(from.name, to.name);
    std::copy_n(from.value, from.size(), to.value);
  }
  create_run(RunDirectory(bare), headless, [&](const RunDirectory& to) {
    save_weights(to.model(), model.parameters(), model.parameters().values());
  });

  const auto tuned = [&](const std::string& init, const char* json) {
    EncoderRecipe recipe = encoder_fine_tuning(init);
    merge_recipe_json(recipe, R"({"max_steps": 60, "batch_tokens": 256, "lines": true, "warmup_steps": 0})", "");
    merge_recipe_json(recipe, json, "");
    return recipe;
  };
  // Two steps are too few for a new head, but not for one that was trained.
  EXPECT_LT(perplexity_of({.text = {text}, .init = out}, tuned(out, R"({"max_steps": 2})"), directory / "a"),
            1.1 * perplexity);
  EXPECT_LT(perplexity_of({.text = {text}, .init = bare},
                          tuned(bare, R"({"learning_rate": 0.01, "freeze": ["layers", "source_embedding"]})"),
                          directory / "b"),
            3);
  expect_same_parameters(bare, directory / "b", {"layers", "source_embedding"});
  expect_contains(error_of([&] {
                    EncoderRecipe recipe = tuned(bare, R"({"activation": "relu"})");
                    train_encoder({.text = {text}, .init = bare}, recipe, directory / "c", {});
                  }),
                  bare + ": activation is gelu, here relu; training from a run keeps it");
  EXPECT_EQ(error_of([&] {
              train_encoder({.text = {text}, .init = bare}, tuned(bare, R"({"vocab_size": 40})"), directory / "c", {});
            }),
            "training: vocab_size cannot be given with init, whose tokenizer is kept");
  expect_contains(error_of([&] {
                    EncoderRecipe recipe = tuned(out, R"({"dev_share": 0.3})");
                    train_encoder({.text = {text}, .init = out}, recipe, directory / "c", {});
                  }),
                  "was trained on all but the last 10 % of this text, of which the last 30 % are set aside here");
}

TEST(Encoder, RecordsTheVocabularyOfAGivenTokenizer) {
  const TempDir directory;
  const std::string text = write_repeated_words(directory), out = directory / "run";
  const auto recorded = [&](const EncoderFiles& files, EncoderRecipe recipe, const std::string& to) {
    merge_recipe_json(recipe, R"({"max_steps": 1, "eval_every": 0, "batch_tokens": 256, "lines": true})", "");
    train_encoder(files, recipe, to, {});
    EXPECT_TRUE(train_encoder(files, recipe, to, {}));  // resumed
    const RunDirectory run(to);
    return read_fields<EncoderConfig>(run, run.encoder());
  };
  EncoderRecipe recipe = small_encoder(R"({"lowercase": true})");
  EXPECT_EQ(recorded({{text}}, recipe, out).vocab_size, 30);
  const int64_t pieces = load_run<EncoderRun>(out).codec.size();
  recipe.given.erase("vocab_size");
  const EncoderFiles with_tokenizer{.text = {text}, .tokenizer = out + "/tokenizer.model"};
  EXPECT_EQ(recorded(with_tokenizer, recipe, directory / "with_tokenizer").vocab_size, pieces);

  std::filesystem::remove(out + "/encoder.json");  // an imported run has none
  const EncoderConfig tuned = recorded({.text = {text}, .init = out}, encoder_fine_tuning(out), directory / "tuned");
  EXPECT_EQ(tuned.vocab_size, pieces);
  EXPECT_TRUE(tuned.lowercase);
}

TEST(Encoder, RefusesWhatItCannotTrain) {
  const TempDir directory;
  const std::string text = write_repeated_words(directory), out = directory / "run";
  const auto error = [&](const char* json, const EncoderFiles& files) {
    const std::string message = error_of([&] { train_encoder(files, small_encoder(json), out, {}); });
    EXPECT_FALSE(std::filesystem::exists(out));
    return message;
  };
  const EncoderFiles files{{text}};
  EXPECT_EQ(error(R"({"mask_token_share": 0.8, "random_token_share": 0.3})", files),
            "training: mask_token_share and random_token_share must add up to at most 1 (add up to 1.1)");
  EXPECT_EQ(error(R"({"mask_share": 1})", files), "training: mask_share must be above 0 and below 1 (is 1)");
  EXPECT_EQ(error(R"({"vocab_size": 8})", files),
            "tokenizer: vocab_size 8: Vocabulary size is smaller than required_chars. 8 vs 17; the characters of the "
            "text and "
            "the special pieces need at least 17");
  EXPECT_EQ(error("{}", {}), "training: text must name at least one file");
  EXPECT_EQ(error("{}", {.text = {text}, .tokenizer = "x"}),
            "training: vocab_size cannot be given with a tokenizer model, which has its own");
  EXPECT_EQ(error("{}", {.text = {text}, .tokenizer = "x", .init = "y"}),
            "training: a tokenizer model cannot be given with init, whose tokenizer is kept");
  EXPECT_EQ(error(R"({"r_drop": 1})", files), "training: r_drop must be 0 for an encoder (is 1)");
  EXPECT_EQ(error(R"({"lora_rank": 2})", files), "training: lora_rank must be 0 for an encoder (is 2)");
  EXPECT_EQ(error(R"({"token_head": "none"})", files), "training: token_head must be output or dense (is none)");
  EXPECT_EQ(error(R"({"max_length": 2})", files),
            "batches: max_length and batch_tokens must be at least 3, for a token and the 2 around it (one is 2)");
  const std::string blank = directory / "blank.txt", latin = directory / "latin.txt";
  spill(blank, " \n  \n \n");
  EXPECT_EQ(error("{}", {.text = {text}, .dev = {blank}}), blank + ": has no token to mask in its 3 documents");
  EXPECT_EQ(error("{}", {.text = {blank}, .dev = {text}}),
            "tokenizer: 3 sentences, none of them with text to learn from");
  spill(latin, "caf\xE9\n");
  EXPECT_EQ(error("{}", {.text = {latin}}), latin + ": byte 4 is not valid UTF-8");

  steps_of(language_case(directory), R"({"max_steps": 1, "unit": "pieces", "vocab_size": 300})", directory / "lm");
  expect_contains(error_of([&] { encoder_recipe({.init = directory / "lm", .out = out}); }),
                  "is a language model; expected an encoder");
  const std::string tokenizer = (directory / "lm") + "/tokenizer.model";
  EncoderRecipe recipe = small_encoder();
  recipe.given.erase("vocab_size");
  EXPECT_EQ(error_of([&] { train_encoder({.text = {text}, .tokenizer = tokenizer}, recipe, out, {}); }),
            tokenizer + ": the vocabulary has no mask token (<mask> or [MASK])");
}

TEST(Encoder, PresetsAreModelsThatCanBeBuilt) {
  for (const char* name : {"encoder-tiny", "bert-base", "modernbert-base"}) {
    EncoderRecipe recipe = encoder_preset(name);
    recipe.model.source_vocab = 100;
    recipe.model.target_vocab = 0;
    EXPECT_NO_THROW(check(recipe.model)) << name;
    EXPECT_NO_THROW(check(recipe.training)) << name;
    EXPECT_NO_THROW(check(recipe.encoder)) << name;
  }
  EXPECT_EQ(error_of([] { encoder_preset("bert"); }),
            "unknown preset \"bert\" (choose from encoder-tiny, bert-base, modernbert-base)");
}

}  // namespace
}  // namespace qkv::testing
