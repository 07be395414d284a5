// Training from a run that was trained on what is now held out is refused, for every pair of splits.
#include "train/initial_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "qkv/error.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "tests/support/errors.h"
#include "tests/train/small_language.h"
#include "tests/train/small_recommender.h"

namespace qkv::testing {
namespace {

Interactions log_of(const std::vector<std::vector<int32_t>>& histories) {
  Interactions log;
  for (const auto& history : histories) {
    log.users.push_back(fmt::format("u{}", log.users.size()));
    log.events.insert(log.events.end(), history.begin(), history.end());
    log.offsets.push_back(std::ssize(log.events));
  }
  for (int32_t item = 0; item < 20; item++) log.items.push_back(fmt::format("i{}", item));
  return log;
}

TEST(InitialRun, CountsHeldOutEventsThatWereTrainedOn) {
  const Interactions log = log_of({{1, 2, 3, 4, 5, 6, 7}, {1, 2}});
  Split one, two, three;
  two.holdout = 2, three.holdout = 3;
  const auto trained = [](const Interactions& before, const Split& split_before, const Interactions& now,
                          const Split& split) { return count_held_out(before, split_before, now, split).trained; };
  EXPECT_EQ(count_held_out(log, one, log, two).all, 4);
  EXPECT_EQ(trained(log, one, log, two), 2);
  EXPECT_EQ(trained(log, one, log, three), 4);
  EXPECT_EQ(trained(log, two, log, three), 2);
  EXPECT_EQ(trained(log, one, log, one), 0);
  EXPECT_EQ(trained(log, two, log, one), 0);
  EXPECT_EQ(trained(log, one, log_of({{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2}}), one), 0);             // the log has grown
  EXPECT_EQ(trained(log, one, log_of({{1, 2, 3}}), one), 2);                                    // an older part of it
  EXPECT_EQ(trained(log_of({{1, 2, 1, 4, 5}}), one, log_of({{1, 2, 1, 4, 5, 1, 1}}), one), 0);  // taken again, later
  Interactions others = log;
  others.users = {"v0", "v1"};
  EXPECT_EQ(trained(others, one, log, three), 0);
}

// Returns the error or the last report of a run of few steps with these values from another run; the log has times.
std::string started(const std::string& log, const std::string& values, const std::string& from,
                    const std::string& out) {
  RecommendationRecipe recipe = small_recommender();
  merge_recipe_json(recipe, R"({"max_epochs": 0, "max_steps": 1})", "");
  merge_recipe_json(recipe, values, "");
  std::string lines;
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { lines += line + "\n"; };
  const std::string error = error_if_any([&] { train_recommender({{log}, {}, from}, recipe, out, observer); });
  EXPECT_EQ(std::filesystem::exists(out), error.empty());
  return error.empty() ? lines : error;
}

TEST(InitialRun, ARecommenderOfAnotherSplitIsRefused) {
  const TempDir directory;
  const std::string log = directory / "log.csv";
  std::ofstream file(log);
  file << "user,item,timestamp\n";
  for (int64_t user = 0; user < 80; user++)
    for (int64_t i = 0; i < 12; i++) file << user << ',' << (user + i) % kItems << ',' << 100 * i + user << '\n';
  file.close();
  const std::vector<std::pair<std::string, std::string>> splits = {
      {R"({"split": "users"})", "users"},
      {R"({})", "leave_one_out with holdout 1"},
      {R"({"holdout": 2})", "leave_one_out with holdout 2"},
      {R"({"split": "temporal"})", "temporal with test_share 0.1"},
      {R"({"split": "temporal", "test_share": 0.2})", "temporal with test_share 0.2"}};
  // Whether a run of the first split was trained on events that the second holds out.
  const bool leaks[5][5] = {{false, true, true, true, true},
                            {false, false, true, true, true},
                            {false, false, false, false, true},
                            {false, false, true, false, true},
                            {false, false, false, false, false}};
  for (size_t from = 0; from < splits.size(); from++)
    started(log, splits[from].first, "", directory / splits[from].second);
  for (size_t from = 0; from < splits.size(); from++)
    for (size_t to = 0; to < splits.size(); to++) {
      const std::string run = directory / splits[from].second;
      const std::string found = started(log, splits[to].first, run, directory / fmt::format("{}-{}", from, to));
      if (leaks[from][to]) {
        expect_contains(found, run + ": was trained on ");
        expect_contains(found, fmt::format("events held out here, so that scores would be too high; its split is "
                                           "{}, here {}: use its split, or train without init",
                                           splits[from].second, splits[to].second));
      } else {
        EXPECT_EQ(found.find("was trained on"), found.npos) << splits[from].second << " " << splits[to].second << found;
      }
    }
}

TEST(InitialRun, AnOlderPartOfTheLogIsRefusedAndAFewEventsAreReported) {
  const TempDir directory;
  const auto write = [&](const std::string& name, int64_t shorter) {
    std::ofstream file(directory / name);
    for (int64_t user = 0; user < 60; user++)
      for (int64_t i = 0; i < (user < shorter ? 8 : 12); i++) file << user << ' ' << (user + i) % kItems << '\n';
  };
  write("log", 0), write("older", 60), write("few", 2);
  started(directory / "log", "{}", "", directory / "run");
  expect_contains(started(directory / "older", "{}", directory / "run", directory / "a"),
                  "was trained on 120 of the 120 events held out here, so that scores would be too high; its log "
                  "has them in the training part of the split leave_one_out with holdout 1");
  expect_contains(started(directory / "few", "{}", directory / "run", directory / "b"),
                  "was trained on 4 of the 120 events held out here; scores are slightly too high\n");
}

TEST(InitialRun, ALanguageModelThatReadTheDevTextIsRefused) {
  const TempDir directory;
  const std::string text = write_text(directory), run = directory / "run", other = directory / "other.txt";
  LanguageRecipe recipe = small_language();
  recipe.training.max_steps = 1;
  train_small_language(text, recipe, run);
  const auto error = [&](const LanguageFiles& files, double share) {
    LanguageRecipe tuned = language_fine_tuning(run);
    merge_recipe_json(tuned, R"({"max_steps": 1, "batch_tokens": 128})", "");
    tuned.language.dev_share = share;
    return error_if_any([&] { train_language_model(files, tuned, directory / "tuned", {}); });
  };
  expect_contains(
      error({.text = {text}, .init = run}, 0.2),
      run +
          ": was trained on all but the last 10 % of this text, of which the last 20 % are set aside here (dev_share)");
  EXPECT_EQ(error({.text = {text}, .init = run}, 0.1), "");
  std::filesystem::remove_all(directory / "tuned");
  EXPECT_EQ(error({.text = {text}, .init = run}, 0.05), "");
  std::filesystem::remove_all(directory / "tuned");
  spill(other, "1:bbbbbbbbb<|endoftext|>\n2:ccccccccc<|endoftext|>\n");
  EXPECT_EQ(error({.text = {other}, .init = run}, 0.5), "");
  std::filesystem::remove_all(directory / "tuned");

  std::filesystem::remove_all(run);
  EXPECT_TRUE(train_language_model({.text = {text}, .dev = {other}}, recipe, run, {}));
  expect_contains(error({.text = {other}, .dev = {text}, .init = run}, 0.1), run + ": was trained on " + text);
  expect_contains(error({.text = {text}, .init = run}, 0.1),
                  "was trained on all of this text, of which the last 10 % are set aside here");
  EXPECT_EQ(error({.text = {text}, .dev = {other}, .init = run}, 0.1), "");
}

}  // namespace
}  // namespace qkv::testing
