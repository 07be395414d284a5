// A recommender learns which item follows which; runs can be resumed and do not depend on the number of threads.
#include "qkv/recommendation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "core/to_size.h"
#include "io/runs/run.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/train/small_recommender.h"

namespace qkv::testing {
namespace {

// Fifty users of 400 items, so that most items are in few batches.
TEST(Recommendation, SparseUpdatesGiveAlmostTheSameModel) {
  const TempDir directory;
  const std::string log = directory / "log.txt";
  std::string lines;
  Random random(7, Stream::test);
  for (int64_t user = 0; user < 200; user++)
    for (int64_t i = 0; i < 6; i++) lines += fmt::format("{} {}\n", user, random.below(400));
  spill(log, lines);
  for (const auto& [loss, scope] : {std::pair("sampled_softmax", "batch"), {"gbce", "token"}, {"bce", "batch"}}) {
    RecommendationRecipe recipe = small_recommender();
    merge_recipe_json(recipe,
                      R"({"dropout": 0.2, "ema_decay": 0.99, "max_epochs": 0, "max_steps": 40, "negatives": 4})", "");
    set_recipe_option(recipe, "loss", loss);
    set_recipe_option(recipe, "negative_scope", scope);
    const auto weights = [&](const std::string& sparse) {
      const std::string out = directory / fmt::format("{}-{}", loss, sparse);
      set_recipe_option(recipe, "sparse_updates", sparse);
      train_small_recommender(log, recipe, out);
      const RecommenderRun run = load_run<RecommenderRun>(out);
      const std::span<const float> values = run.model->parameters().values();
      return std::vector<float>(values.begin(), values.end());
    };
    EXPECT_LE(relative_error(weights("true"), weights("false")), 0.01) << loss;
  }
}

// Trains with limits that end long before anything is learned, or after it, and returns all messages.
std::vector<std::string> messages_of(const std::string& log, const RecommendationRecipe& recipe, const std::string& out,
                                     std::vector<EvaluationReport>* evaluations = nullptr) {
  std::vector<std::string> messages;
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { messages.push_back(line); };
  observer.on_evaluation = [&](const EvaluationReport& r) {
    if (evaluations) evaluations->push_back(r);
  };
  EXPECT_TRUE(train_recommender({{log}, {}, ""}, recipe, out, observer));
  return messages;
}

int64_t count_of(const std::vector<std::string>& messages, const std::string& text) {
  return std::ranges::count_if(messages, [&](const std::string& line) { return line.find(text) != line.npos; });
}

TEST(Recommendation, BaselinesAreReportedOnceBeforeTheFirstStepAndWithEveryEvaluation) {
  const TempDir directory;
  const std::string log = write_log(directory), out = directory / "run";
  RecommendationRecipe recipe = small_recommender();
  recipe.training.max_epochs = 2;
  std::vector<EvaluationReport> evaluations;
  EXPECT_EQ(count_of(messages_of(log, recipe, out, &evaluations), "baselines on dev:  popularity NDCG@10 "), 1);
  ASSERT_EQ(evaluations.size(), 2u);
  for (const EvaluationReport& evaluation : evaluations) {
    ASSERT_EQ(evaluation.baselines.size(), 2u);
    EXPECT_EQ(evaluation.baselines[0].name, "popularity");
    EXPECT_EQ(evaluation.baselines[1].name, "markov");
    EXPECT_GT(evaluation.baselines[1].measures[0].value, 0.3);  // one of three steps of the ring, and ties
  }
  recipe.training.max_epochs = 3;
  messages_of(log, recipe, out);  // resumed
  std::ifstream metrics(out + "/metrics.jsonl");
  int64_t lines = 0;
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    if (!record.contains("baselines")) continue;
    lines++;
    EXPECT_EQ(record["step"], 0);
    EXPECT_DOUBLE_EQ(record["baselines"]["markov"]["NDCG@10"].get<double>(),
                     evaluations[0].baselines[1].measures[0].value);
  }
  EXPECT_EQ(lines, 1);
}

TEST(Recommendation, TheBestStepIsThatOfTheScoreWithTransitions) {
  const TempDir directory;
  const std::string log = write_log(directory), out = directory / "run";
  RecommendationRecipe recipe = small_recommender();
  merge_recipe_json(recipe, R"({"transitions": true, "max_epochs": 6, "eval_every": 2, "ema_decay": 0.9})", "");
  std::vector<EvaluationReport> evaluations;
  const std::vector<std::string> messages = messages_of(log, recipe, out, &evaluations);
  double best = -1, without = -1;
  int64_t step = 0, disagreements = 0;
  for (const EvaluationReport& evaluation : evaluations) {
    double here = -1, here_without = -1;
    for (const auto& candidate : evaluation.candidates) {
      here = std::max(here, candidate.measures.front().value);
      here_without = std::max(here_without, candidate.measures.back().value);
    }
    EXPECT_EQ(evaluation.improved, here > best) << evaluation.step;
    disagreements += (here > best) != (here_without > without);
    if (here > best) step = evaluation.step;
    best = std::max(best, here);
    without = std::max(without, here_without);
  }
  EXPECT_GT(disagreements, 0);
  EXPECT_EQ(count_of(messages, fmt::format("best dev NDCG@10 {:.4g} at step {}", best, step)), 1) << messages.back();
}

TEST(Recommendation, AModelThatEndsBelowABaselineIsReported) {
  const TempDir directory;
  const std::string log = write_log(directory);
  RecommendationRecipe recipe = small_recommender();
  const std::string below = "the model is below the baseline markov (NDCG@10 ";
  EXPECT_EQ(count_of(messages_of(log, recipe, directory / "learned"), below), 0);
  recipe.training.max_epochs = 0;
  recipe.training.max_steps = 1;
  const std::vector<std::string> messages = messages_of(log, recipe, directory / "random");
  EXPECT_EQ(count_of(messages, below), 1);
  EXPECT_NE(messages.back().find("what the preset auto chooses (d_model 64"), std::string::npos) << messages.back();
}

TEST(Recommendation, ThePresetAutoStatesTheLogAndWhatItChose) {
  const TempDir directory;
  const std::string log = write_log(directory), out = directory / "run";
  RecommendationRecipe recipe = recommendation_preset("auto");
  merge_recipe_json(recipe, R"({"d_model": 16, "batch_tokens": 256, "max_steps": 2})", "");
  const std::vector<std::string> messages = messages_of(log, recipe, out);
  EXPECT_EQ(count_of(messages, "log: 120 users with a median of 14 events"), 1);
  EXPECT_EQ(count_of(messages, "chosen for it: ffn 64, max_length 50, loss softmax"), 1);
  const RecommenderRun run = load_run<RecommenderRun>(out);
  EXPECT_EQ(run.config.max_length, 50);
  EXPECT_EQ(run.config.d_model, 16);
  set_recipe_option(recipe, "max_steps", "4");
  EXPECT_EQ(count_of(messages_of(log, recipe, out), "chosen"), 0);  // resumed: with the values of the run
  set_recipe_option(recipe, "batch_tokens", "128");
  EXPECT_EQ(error_of([&] { train_small_recommender(log, recipe, out); }),
            out +
                ": batch_tokens was 256 when this run was started and is now 128; use the same value or another "
                "directory");
  recipe = recommendation_preset("auto");
  recipe.training.max_steps = 5;
  EXPECT_EQ(count_of(messages_of(log, recipe, out), "done after 5 steps"), 1);
}

TEST(Recommendation, ThePresetAutoTrainsAFurtherRunInTheShapeOfTheFirst) {
  const TempDir directory;
  const std::string log = write_log(directory), out = directory / "run";
  RecommendationRecipe recipe = recommendation_preset("auto");
  merge_recipe_json(recipe, R"({"d_model": 16, "max_length": 8, "max_steps": 2})", "");
  messages_of(log, recipe, out);
  recipe = recommendation_preset("auto");
  recipe.training.max_steps = 2;
  EXPECT_TRUE(train_recommender({{log}, {}, out}, recipe, directory / "warm", {}));
  EXPECT_EQ(load_run<RecommenderRun>(directory / "warm").config.d_model, 16);
}

TEST(Recommendation, ALogOfUsersWithTwoEventsHoldsOutUsers) {
  const TempDir directory;
  const std::string log = directory / "two.txt", out = directory / "run";
  std::ofstream file(log);
  for (int64_t user = 0; user < 400; user++) {  // the second item follows from the first
    const int64_t item = user % 20, events = user % 10 == 0 ? 4 : 2;
    for (int64_t i = 0; i < events; i++) file << user << ' ' << (item + i) % 20 << '\n';
  }
  file.close();
  RecommendationRecipe recipe = recommendation_preset("auto");
  merge_recipe_json(recipe, R"({"d_model": 16, "max_epochs": 40, "batch_tokens": 64, "learning_rate": 0.01})", "");
  std::vector<EvaluationReport> evaluations;
  const std::vector<std::string> messages = messages_of(log, recipe, out, &evaluations);
  EXPECT_EQ(count_of(messages, "most users have two events: chosen min_events 2, split users"), 1);
  EXPECT_GT(evaluations.back().candidates[0].measures[0].value, 0.8);
  const RecommendationConfig saved = read_recommendation(RunDirectory(out));
  EXPECT_EQ(saved.split, SplitRule::users);
  EXPECT_EQ(saved.min_events, 2);
  set_recipe_option(recipe, "max_epochs", "41");
  messages_of(log, recipe, out);  // resumed
  set_recipe_option(recipe, "min_events", "3");
  EXPECT_EQ(count_of(messages_of(log, recipe, directory / "three"), "kept: 40 users"), 1);
}

TEST(Recommendation, TrainsWithEveryNormPositionAndTheTemporalSplit) {
  const TempDir directory;
  const std::string path = directory / "log.csv";
  std::ofstream file(path);
  file << "user,item,timestamp\n";
  for (int64_t user = 0; user < 60; user++)
    for (int64_t i = 0; i < 12; i++) file << user << ',' << (user + i) % kItems << ',' << 100 * i + user << '\n';
  file.close();
  for (const std::string norm : {"post", "pre", "query"}) {
    RecommendationRecipe recipe = small_recommender();
    set_recipe_option(recipe, "norm_position", norm);
    set_recipe_option(recipe, "split", "temporal");
    set_recipe_option(recipe, "positions_from_end", "true");
    EXPECT_GT(train_small_recommender(path, recipe, directory / norm), 0.9) << norm;
  }
}

TEST(Recommendation, AResumedRunEndsWithTheSameBytesOnAnyNumberOfThreads) {
  const TempDir directory;
  const std::string log = write_log_of_gaps(directory);
  for (const std::string loss : {"softmax", "gbce", "sampled_softmax"}) {
    RecommendationRecipe recipe = small_recommender();
    set_recipe_option(recipe, "loss", loss);
    recipe.recommendation.time_gaps = loss == "softmax";
    if (loss == "sampled_softmax")
      recipe.recommendation.negative_scope = NegativeScope::batch, recipe.recommendation.sparse_updates = true;
    set_recipe_option(recipe, "dropout", "0.2");
    recipe.training.max_epochs = 0;
    recipe.training.max_steps = 26;
    const std::string whole = directory / loss + "-whole", parts = directory / loss + "-parts";
    with_threads(1, [&] { return train_small_recommender(log, recipe, whole); });
    with_threads(3, [&] {
      for (const int64_t steps : {7, 26}) {
        int64_t done = 0;
        TrainingObserver observer;
        observer.on_step = [&](const StepReport& r) { done = r.step; };
        observer.should_stop = [&] { return done == steps && steps < 26; };
        EXPECT_EQ(train_recommender({{log}, {}, ""}, recipe, parts, observer), steps == 26);
      }
      return 0;
    });
    for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"})
      EXPECT_TRUE(slurp(whole + file) == slurp(parts + file)) << loss << file;
  }
}

TEST(Recommendation, AWarmStartKeepsWhatWasLearned) {
  const TempDir directory;
  const std::string log = write_log(directory), out = directory / "run", longer = directory / "longer.txt";
  RecommendationRecipe recipe = small_recommender();
  const double learned = train_small_recommender(log, recipe, out);
  spill(longer, "first new\nfirst newer\nfirst 3\nfirst 4\n" + slurp(log));
  recipe.training.max_epochs = 0;
  recipe.training.max_steps = recipe.training.eval_every = 1;
  recipe.training.learning_rate = 1e-6;
  const auto after_a_step = [&](const std::string& from, const std::string& to) {
    double ndcg = 0;
    TrainingObserver observer;
    observer.on_evaluation = [&](const EvaluationReport& r) { ndcg = r.candidates[0].measures[0].value; };
    EXPECT_TRUE(train_recommender({{longer}, {}, from}, recipe, directory / to, observer));
    return ndcg;
  };
  EXPECT_NEAR(after_a_step(out, "warm"), learned, 0.05);  // one more user, who is new
  EXPECT_LT(after_a_step("", "cold"), learned / 2);

  const std::vector<std::string> before = read_log(RunDirectory(out)).data.items;
  const Interactions now = read_log(RunDirectory(directory / "warm")).data;
  ASSERT_EQ(now.items.size(), before.size() + 2);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), now.items.begin()));
  EXPECT_EQ(now.items[before.size()], "new");

  const std::string whole = slurp(directory / "warm/model.safetensors");
  for (const char* file : {"warm/model.safetensors", "warm/checkpoints/state.safetensors", "warm/metrics.jsonl"})
    std::filesystem::remove(directory / file);  // as if killed before the first saved state
  for (const auto& entry : std::filesystem::directory_iterator(directory / "warm/checkpoints"))
    std::filesystem::remove(entry.path());
  after_a_step("", "warm");
  EXPECT_EQ(slurp(directory / "warm/model.safetensors"), whole);

  recipe.model.ffn = 16;
  EXPECT_EQ(error_of([&] { after_a_step(out, "other"); }), out + ": ffn is 32, here 16; training from a run keeps it");
  EXPECT_FALSE(std::filesystem::exists(directory / "other"));
}

TEST(Recommendation, ARunWithFeaturesIsResumedWithTheSameFeatures) {
  const TempDir directory;
  const Colours colours(directory);
  RecommendationRecipe recipe = small_recommender();
  recipe.training.max_epochs = 0;
  const auto steps = [&](int64_t count, const std::string& out, const std::string& table) {
    recipe.training.max_steps = count;
    train_recommender({{colours.log}, {}, "", table}, recipe, out, {});
  };
  const std::string whole = directory / "whole", parts = directory / "parts";
  with_threads(1, [&] { return steps(15, whole, colours.table), 0; });
  with_threads(3, [&] { return steps(4, parts, colours.table), 0; });
  EXPECT_EQ(error_of([&] { steps(15, parts, ""); }),
            parts + ": was started with 20 item features, 0 are given now; use the same table or another directory");
  spill(directory / "others.csv", "item,colour\n0,red\n1,red\n");
  EXPECT_EQ(error_of([&] { steps(15, parts, directory / "others.csv"); }),
            parts + ": was started with 20 item features, 21 are given now; use the same table or another directory");
  steps(15, parts, colours.table);
  for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"})
    EXPECT_TRUE(slurp(whole + file) == slurp(parts + file)) << file;
}

TEST(Recommendation, ANewItemStartsFromItsFeatures) {
  const TempDir directory;
  const Colours colours(directory);
  RecommendationRecipe recipe = small_recommender();
  recipe.training.max_epochs = 6;
  train_recommender({{colours.log}, {}, "", colours.table}, recipe, directory / "run", {});
  const std::string log = directory / "longer.txt", table = directory / "longer.csv";
  spill(log, slurp(colours.log) + "480 new\n480 21\n480 2\n");
  spill(table, slurp(colours.table) + "new,0\n");
  recipe.training.learning_rate = 1e-9;
  recipe.training.max_epochs = 1;
  const std::string out = directory / "warm";
  train_recommender({{log}, {}, directory / "run", table}, recipe, out, {});

  // Its vector is closest to those of its colour, with which it shares features.
  const RecommenderRun run = load_run<RecommenderRun>(out);
  const Matrix<float> E = run.model->item_table().matrix();
  const std::vector<std::string>& names = run.log.data.items;
  const int64_t last = E.rows - 1;
  ASSERT_EQ(names.back(), "new");
  std::vector<std::pair<double, std::string>> near;
  for (int64_t v = 0; v < last; v++) {
    double dot = 0, size = 0;
    for (int64_t j = 0; j < E.cols; j++) dot += E(v, j) * E(last, j), size += E(v, j) * E(v, j);
    near.emplace_back(-dot / std::sqrt(size), names[to_size(v)]);
  }
  std::ranges::sort(near);
  for (size_t i = 0; i < 5; i++) EXPECT_EQ(std::stoi(near[i].second) % 20, 0) << near[i].second;
}

TEST(Recommendation, RefusesAnotherLogOrRecipe) {
  const TempDir directory;
  const std::string log = write_log(directory), out = directory / "run";
  RecommendationRecipe recipe = small_recommender();
  recipe.training.max_epochs = 1;
  train_small_recommender(log, recipe, out);
  RecommendationRecipe other = recipe;
  other.recommendation.positions_from_end = true;
  EXPECT_EQ(
      error_of([&] { train_small_recommender(log, other, out); }),
      out +
          ": positions_from_end was false when this run was started and is now true; use the same value or another "
          "directory");
  std::ofstream(log, std::ios::app) << "119 3\n";
  EXPECT_EQ(error_of([&] { train_small_recommender(log, recipe, out); }),
            out + ": was trained on different data; use the same data or another directory");
  EXPECT_EQ(
      error_of([&] { train_small_recommender(log, recipe, directory.path()); }),
      directory.path() + ": exists but has no training.json; expected a run that training started, or a new directory");
}

TEST(Recommendation, ErrorsNameTheValue) {
  const auto error = [](const std::string& name, const std::string& value) {
    RecommendationRecipe recipe = recommendation_preset("sasrec");
    set_recipe_option(recipe, name, value);
    return error_of([&] { check(recipe.recommendation); });
  };
  EXPECT_EQ(error("negatives", "0"), "training: negatives must be between 1 and 65536 (is 0)");
  EXPECT_EQ(error("negatives", "9223372036854775807"),
            "training: negatives must be between 1 and 65536 (is 9223372036854775807)");
  EXPECT_EQ(error("min_events", "1"), "training: min_events must be at least 2 (is 1)");
  EXPECT_EQ(error("calibration", "1.5"), "training: calibration must be between 0 and 1 (is 1.5)");
  EXPECT_EQ(error("test_share", "0.5"), "training: test_share must be above 0 and below 0.5 (is 0.5)");
  EXPECT_EQ(error_of([] { recommendation_preset("huge"); }),
            "unknown preset \"huge\" (choose from auto, films, sasrec)");
}

TEST(Recommendation, RefusesOptionsThatContradictEachOther) {
  const TempDir directory;
  const std::string log = write_log(directory), out = directory / "run";
  const auto error = [&](const std::string& json) {
    RecommendationRecipe recipe = small_recommender();
    const std::string message = error_of([&] {
      merge_recipe_json(recipe, json, "r.json");
      train_small_recommender(log, recipe, out);
    });
    EXPECT_FALSE(std::filesystem::exists(out));
    return message;
  };
  EXPECT_EQ(error(R"({"selection": "loss"})"),
            "training: selection must be metric (is loss): recommenders have no validation loss");
  EXPECT_EQ(error(R"({"loss": "bce", "output_bias": true})"),
            "training: output_bias requires loss = softmax (loss is bce)");
  EXPECT_EQ(error(R"({"loss": "gbce", "label_smoothing": 0.1})"),
            "training: label_smoothing 0.1 requires loss = softmax (loss is gbce)");
  EXPECT_EQ(error(R"({"loss": "bce", "r_drop": 5})"), "training: r_drop 5 requires loss = softmax (loss is bce)");
  const auto sparse = [&](const std::string& json) {
    return error(R"({"sparse_updates": true, "loss": )" + json + "}");
  };
  EXPECT_EQ(sparse(R"("softmax")"), "training: sparse_updates requires a loss over drawn negatives (loss is softmax)");
  EXPECT_EQ(sparse(R"("bce", "tied_output": false)"), "training: sparse_updates requires tied_output = true");
  EXPECT_EQ(sparse(R"("bce", "moments": "int8")"), "training: sparse_updates requires moments = float32");
  EXPECT_EQ(sparse(R"("bce", "accumulate": 2)"), "training: sparse_updates requires accumulate = 1");
  EXPECT_EQ(sparse(R"("bce", "shards": 2)"), "training: sparse_updates requires shards = 1");
  EXPECT_EQ(sparse(R"("bce", "weight_decay": 0.1)"), "training: sparse_updates requires weight_decay = 0");
  EXPECT_EQ(sparse(R"("bce", "beta1": 0.9, "beta2": 0.8)"),
            "training: sparse_updates requires beta1 below the square root of beta2");
  EXPECT_EQ(error(R"({"zero_start": true})"),
            "r.json: zero_start cannot be set: it follows from the data or the kind of model");
  EXPECT_EQ(error(R"({"gap_buckets": 66})"), "r.json: unknown name \"gap_buckets\"");
  EXPECT_EQ(error(R"({"time_gaps": true})"),
            "training: time_gaps requires a log with a time in each line (" + log + " has none)");
  EXPECT_EQ(
      error(R"({"min_events": 15})"),
      log +
          ": no events remain of 1680: min_events is 15; the log was read as blank-separated, user column 1, item "
          "column 2, time none");
}

TEST(Recommendation, IsEvaluatedOncePerEpochByDefault) {
  const TempDir directory;
  const std::string log = write_log(directory);
  for (const int64_t shards : {1, 2}) {
    RecommendationRecipe recipe = small_recommender();
    recipe.training.max_epochs = 3;
    recipe.training.accumulate = 2;
    recipe.training.shards = shards;
    std::vector<int64_t> steps;
    TrainingObserver observer;
    observer.on_evaluation = [&](const EvaluationReport& r) { steps.push_back(r.step); };
    EXPECT_TRUE(train_recommender({{log}, {}, ""}, recipe, directory / fmt::format("run-{}", shards), observer));
    EXPECT_EQ(steps.size(), 3u) << shards;
  }
}

TEST(Recommendation, EncoderAndVocabulariesAreNotOptions) {
  for (const RecipeOption& option : recipe_options(recommendation_preset("films"))) {
    EXPECT_FALSE(option.help.empty()) << option.name;
    for (const char* hidden :
         {"source_vocab", "target_vocab", "gap_buckets", "encoder_layers", "shared_embeddings", "zero_start"})
      EXPECT_NE(option.name, hidden);
  }
}

}  // namespace
}  // namespace qkv::testing
