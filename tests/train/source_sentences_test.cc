// A translator learns the abbreviations of its source text and whether its lines are sentences, and keeps them.
#include "train/source_sentences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/to_size.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"
#include "qkv/runs.h"
#include "qkv/train.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {
namespace {

using Lines = std::vector<std::string>;

std::string repeated(const std::string& lines, int times) {
  std::string text;
  for (int i = 0; i < times; i++) text += lines;
  return text;
}

SourceSentences sentences_of(const std::string& source, bool lower_case = false, const Lines& known = {}) {
  const TempFile a("a", source), b("b", std::string(to_size(std::count(source.begin(), source.end(), '\n')), '\n'));
  return find_sentences(ParallelCorpus({a.path(), b.path()}, lower_case, 2), 1000, known);
}

TEST(SourceSentences, AreThoseOfMostLines) {
  const SourceSentences one = sentences_of(repeated("A cat. The dog.\n\nA cat and a dog.\n", 10));
  EXPECT_EQ(one.lines, 20);
  EXPECT_EQ(one.several, 10);
  EXPECT_FALSE(one.are_texts());
  EXPECT_TRUE(sentences_of(repeated("A cat. The dog.\nA dog. The cat.\nA cat and a dog.\n", 10)).are_texts());
  EXPECT_FALSE(sentences_of("\n").are_texts());
}

TEST(SourceSentences, AreCountedWithTheAbbreviationsOfTheText) {
  const std::string text = repeated("Die Abtlg. Kunst ist hier.\nDas ist die Abtlg. Musik der Schule.\n", 40);
  const SourceSentences found = sentences_of(text);
  EXPECT_EQ(found.abbreviations, Lines{"abtlg"});
  EXPECT_EQ(found.several, 0);
  EXPECT_EQ(sentences_of(text, false, {"ufz", "abtlg", "a.b"}).abbreviations, (Lines{"a.b", "abtlg", "ufz"}));
}

TEST(SourceSentences, AreFoundInTheCaseOfTheFile) {
  const std::string text = repeated("He likes art. The dog sleeps.\nThe art.\n", 40);
  EXPECT_EQ(sentences_of(text, true).abbreviations, sentences_of(text).abbreviations);
  EXPECT_EQ(sentences_of(text, true).several, 40);
}

TEST(SourceSentences, OfALongTextAreThoseOfASample) {
  const TempFile text("tsv", repeated("Die Abtlg. Kunst ist hier.\tx\n", 200));
  const ParallelCorpus corpus({text.path()}, false, 2);
  EXPECT_EQ(find_sentences(corpus, 40, {}).lines, 40);
  EXPECT_EQ(find_sentences(corpus, 40, {}).abbreviations, Lines{"abtlg"});
}

class TrainedSentences : public ::testing::Test {
 protected:
  // Trains for a step and returns the messages. `init`: the run to start from.
  Lines train(const std::string& source, const std::string& out, const std::string& init = "", int64_t lora_rank = 0) {
    const std::string train = directory_ / "train.tsv", dev = directory_ / "dev.tsv";
    std::string pairs;
    for (size_t begin = 0; begin < source.size(); begin = source.find('\n', begin) + 1)
      pairs += source.substr(begin, source.find('\n', begin) - begin) + "\tein Hund\n";
    spill(train, pairs);
    spill(dev, "A dog.\tein Hund\n");
    TranslationRecipe recipe = init.empty() ? translation_preset("tiny") : translation_fine_tuning(init);
    if (init.empty())
      merge_recipe_json(recipe,
                        R"({"d_model": 8, "heads": 2, "ffn": 8, "encoder_layers": 1, "decoder_layers": 1,
                            "max_length": 64, "vocab_size": 40, "learning_rate": 0.01})",
                        "");
    merge_recipe_json(recipe, R"({"batch_tokens": 64, "max_steps": 1, "max_epochs": 0, "warmup_steps": 0})", "");
    recipe.training.lora_rank = lora_rank;
    Lines messages;
    TrainingObserver observer;
    observer.on_message = [&](const std::string& line) {
      if (line.starts_with("sentences: ")) messages.push_back(line);
    };
    EXPECT_TRUE(train_translator({{train}, {dev}, "", "", init}, recipe, out, observer));
    return messages;
  }
  static std::optional<SentenceLengths> lengths(const std::string& run) { return load_run<TranslatorRun>(run).lengths; }
  static Lines abbreviations(const std::string& run) { return load_run<TranslatorRun>(run).abbreviations; }
  static std::optional<Sentences> sentences(const std::string& run) {
    return read_decoding_defaults(RunDirectory(run)).sentences;
  }

  TempDir directory_;
  const std::string sentences_ = repeated("Die Abtlg. Kunst ist hier.\n", 20);
  const std::string texts_ = repeated("Die Ufz. Kunst ist hier. Das ist gut.\n", 20);
};

TEST_F(TrainedSentences, AreKeptByEveryRunThatIsMadeOfTheRun) {
  const std::string run = directory_ / "run", tuned = directory_ / "tuned", adapter = directory_ / "adapter",
                    merged = directory_ / "merged";
  EXPECT_EQ(train(sentences_, run), Lines());
  EXPECT_EQ(abbreviations(run), Lines{"abtlg"});
  EXPECT_EQ(sentences(run), std::nullopt);

  const Lines report = {
      "sentences: 20 of 20 source lines have several, so the run translates each line as a whole (sentences = line)"};
  EXPECT_EQ(train(texts_, tuned, run), report);
  EXPECT_EQ(train(texts_, adapter, run, 2), report);
  merge_run(adapter, merged);
  for (const std::string& made : {tuned, adapter, merged}) {
    EXPECT_EQ(abbreviations(made), (Lines{"abtlg", "ufz"})) << made;
    EXPECT_EQ(sentences(made), Sentences::line) << made;
    EXPECT_FALSE(lengths(made)) << made;  // a model of whole texts
  }
  EXPECT_EQ(train(sentences_, directory_ / "again", tuned), Lines());
  EXPECT_EQ(sentences(directory_ / "again"), std::nullopt);  // the new text decides
}

TEST_F(TrainedSentences, HaveTheirLengthsInEveryRunThatIsMadeOfTheRun) {
  const std::string run = directory_ / "run", tuned = directory_ / "tuned", adapter = directory_ / "adapter",
                    merged = directory_ / "merged";
  const std::string shorter = repeated("Die Kunst.\n", 1000);
  train(repeated(sentences_, 50), run);
  train(shorter, tuned, run);
  train(shorter, adapter, run, 2);
  merge_run(adapter, merged);
  EXPECT_GT(lengths(run)->ratio, 0);
  EXPECT_GT(lengths(tuned)->ratio, lengths(run)->ratio);
  for (const std::string& made : {tuned, adapter, merged}) {
    EXPECT_EQ(lengths(made)->longest, lengths(run)->longest) << made;  // of the longer sentences before
    EXPECT_EQ(lengths(made), lengths(tuned)) << made;
  }
}

TEST_F(TrainedSentences, OfAResumedRunAreRead) {
  const std::string run = directory_ / "run";
  train(texts_, run);
  spill(run + "/abbreviations.txt", "kgl\n");
  EXPECT_EQ(train(texts_, run), Lines());
  EXPECT_EQ(abbreviations(run), Lines{"kgl"});
}

}  // namespace
}  // namespace qkv::testing
