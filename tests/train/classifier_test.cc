// A classifier learns one label, several labels, a number and an order from one or two texts; its run classifies and
// reranks, can be resumed and trained further, and rows that cannot be used are refused with their line.
#include "qkv/classifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "qkv/classifier_training.h"
#include "qkv/embedder.h"
#include "qkv/runs.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "tests/train/training_cases.h"

namespace qkv::testing {
namespace {

// Texts of the words c … l, with others at random places.
class Words {
 public:
  explicit Words(uint64_t seed) : random_(seed, Stream::test) {}

  bool coin() { return random_.below(2) == 1; }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n))); }
  std::string text(const std::vector<std::string>& others) {
    std::vector<std::string> words = others;
    for (int64_t i = 2 + below(4); i > 0; i--) words.emplace_back(1, static_cast<char>('c' + below(10)));
    random_.shuffle(words);
    return fmt::format("{}", fmt::join(words, " "));
  }

 private:
  Random random_;
};

// An encoder of the words a … l that has seen one batch.
std::string write_encoder(const TempDir& directory) {
  Words words(1);
  std::string text;
  for (int i = 0; i < 300; i++) text += words.text({words.coin() ? "a" : "b"}) + "\n";
  spill(directory / "words.txt", text);
  EncoderRecipe recipe = encoder_preset("encoder-tiny");
  merge_recipe_json(recipe, R"({"d_model": 32, "heads": 2, "ffn": 64, "encoder_layers": 2, "max_length": 32,
      "lines": true, "vocab_size": 30, "batch_tokens": 256, "max_steps": 1, "eval_every": 0, "dropout": 0})",
                    "");
  EXPECT_TRUE(train_encoder({{directory / "words.txt"}}, recipe, directory / "encoder", {}));
  return directory / "encoder";
}

ClassifierRecipe small_classifier(const std::string& init, const std::string& json = "{}") {
  ClassifierRecipe recipe = classifier_fine_tuning(init);
  merge_recipe_json(recipe, R"({"examples": 16, "learning_rate": 0.005, "warmup_steps": 10, "max_steps": 120,
      "max_epochs": 0, "eval_every": 60, "schedule": "constant", "head_dropout": 0})",
                    "");
  merge_recipe_json(recipe, json, "");
  return recipe;
}

using Measures = std::map<std::string, double>;

// Trains and returns the measures of the last evaluation. Appends the messages to `lines` if it is not null.
Measures measures_of(const ClassifierFiles& files, const ClassifierRecipe& recipe, const std::string& out,
                     std::string* lines = nullptr) {
  Measures measures;
  TrainingObserver observer;
  observer.on_evaluation = [&](const EvaluationReport& r) {
    for (const auto& measure : r.candidates.front().measures) measures[measure.name] = measure.value;
  };
  observer.on_message = [&](const std::string& line) {
    if (lines) *lines += line + "\n";
  };
  EXPECT_TRUE(train_classifier(files, recipe, out, observer));
  return measures;
}

std::string best_label(const Classifier& classifier, const ClassifierInput& input) {
  return classifier.labels()[to_size(classifier.classify({input}).texts.front().front().label)];
}

// Rows whose label is 10 for a text with a, 9 with b.
std::string write_labels(const TempDir& directory, int rows = 300, const std::string& name = "labels.tsv") {
  Words words(2);
  std::string text;
  for (int i = 0; i < rows; i++) {
    const bool a = words.coin();
    text += fmt::format("{}\t{}\n", words.text({a ? "a" : "b"}), a ? 10 : 9);
  }
  spill(directory / name, text);
  return directory / name;
}

TEST(ClassifierTraining, LearnsOneLabel) {
  const TempDir directory;
  const std::string init = write_encoder(directory), out = directory / "run";
  std::string lines;
  const Measures measures =
      measures_of({.train = write_labels(directory), .init = init}, small_classifier(init), out, &lines);
  EXPECT_GT(measures.at("accuracy"), 0.9);
  EXPECT_EQ(measures.at("accuracy"), measures.at("f1_micro"));
  EXPECT_GT(measures.at("f1_macro"), 0.9);
  expect_contains(lines, "labels.tsv: 300 rows, 2 labels: \"9\" (");
  expect_contains(lines, "the head is new\n");
  expect_contains(lines, "training data: 270 rows, 17 batches per epoch; 30 rows for evaluation\n");
  const Classifier classifier(out);
  EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"9", "10"})) << "in the order of numbers";
  EXPECT_EQ(classifier.scores(), ScoreFunction::softmax);
  EXPECT_EQ(best_label(classifier, {"c d a"}), "10");
  EXPECT_EQ(best_label(classifier, {"b e f g"}), "9");
  EXPECT_EQ(Embedder(out).width(), 32);
}

// The label of a pair says which of two words the first text has, and which of two others the second.
TEST(ClassifierTraining, LearnsPairsFromNamedColumns) {
  const TempDir directory;
  const std::string init = write_encoder(directory), out = directory / "run", train = directory / "pairs.csv";
  Words words(3);
  std::string text = "kind,second,other,first\n";
  for (int i = 0; i < 400; i++) {
    const bool a = words.coin(), m = words.coin();
    text += fmt::format("{}{},{},x,{}\n", a ? "a" : "b", m ? "c" : "d", words.text({m ? "c c c" : "d d d"}),
                        words.text({a ? "a" : "b"}));
  }
  spill(train, text);
  const ClassifierFiles files{.train = train, .columns = {"first", "second", "kind"}, .init = init};
  EXPECT_GT(measures_of(files, small_classifier(init, R"({"max_steps": 200})"), out).at("accuracy"), 0.8);
  const Classifier classifier(out);
  EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"ac", "ad", "bc", "bd"}));
  EXPECT_EQ(best_label(classifier, {"e a f", "g c c c"}), "ac");
  EXPECT_EQ(best_label(classifier, {"e b f", "g d d d"}), "bd");
}

TEST(ClassifierTraining, LearnsSeveralLabels) {
  const TempDir directory;
  const std::string init = write_encoder(directory);
  Words words(4);
  std::string lines, arrays;
  for (int i = 0; i < 300; i++) {
    std::vector<std::string> own;
    for (const char* word : {"a", "b"})
      if (words.coin()) own.emplace_back(word);
    const std::string text = words.text(own);
    lines += fmt::format("{}\t{}\n", text, fmt::join(own, "; "));
    std::string list;
    for (const std::string& label : own) list += fmt::format("{}\"{}\"", list.empty() ? "" : ",", label);
    arrays += fmt::format("{{\"text\": \"{}\", \"labels\": [{}]}}\n", text, list);
  }
  spill(directory / "lines.tsv", lines);
  spill(directory / "arrays.jsonl", arrays);
  const Measures measures = measures_of({.train = directory / "lines.tsv", .init = init},
                                        small_classifier(init, R"({"label_separator": ";"})"), directory / "lines");
  EXPECT_GT(measures.at("f1_micro"), 0.9);
  EXPECT_GT(measures.at("f1_macro"), 0.9);
  EXPECT_GT(measures.at("subset_accuracy"), 0.8);
  measures_of({.train = directory / "arrays.jsonl", .init = init}, small_classifier(init), directory / "arrays");
  EXPECT_EQ(slurp(directory / "lines/model.safetensors"), slurp(directory / "arrays/model.safetensors"));
  const Classifier classifier(directory / "arrays");
  EXPECT_EQ(classifier.scores(), ScoreFunction::sigmoid);
  for (const auto& [text, a, b] : {std::tuple{"c a d", true, false}, {"b c a", true, true}, {"f c e", false, false}}) {
    const Classifications found = classifier.classify({{text}}, {.top = 0});
    for (const auto& [label, score] : found.texts.front()) EXPECT_EQ(score > 0.5f, label == 0 ? a : b) << text;
  }
}

TEST(ClassifierTraining, LearnsNumbers) {
  const TempDir directory;
  const std::string init = write_encoder(directory), train = directory / "numbers.tsv";
  Words words(5);
  std::string text;
  for (int i = 0; i < 300; i++) {
    const int64_t count = words.below(5);
    text += fmt::format("{}\t{}\n", words.text(std::vector<std::string>(to_size(count), "a")), 0.25 * double(count));
  }
  spill(train, text);
  for (const char* loss : {"automatic", "sigmoid"}) {
    const std::string out = directory / loss;
    const Measures measures = measures_of({.train = train, .init = init},
                                          small_classifier(init, fmt::format(R"({{"loss": "{}"}})", loss)), out);
    EXPECT_GT(measures.at("spearman"), 0.85) << loss;
    EXPECT_LT(measures.at("mse"), 0.04) << loss;
    const Classifier classifier(out);
    EXPECT_EQ(classifier.labels(), std::vector<std::string>{"score"});
    EXPECT_EQ(classifier.scores(), loss == std::string("sigmoid") ? ScoreFunction::sigmoid : ScoreFunction::none);
    const auto texts = classifier.classify({{"a a a a c d"}, {"e f g"}}).texts;
    EXPECT_GT(texts[0].front().score, texts[1].front().score + 0.3f) << loss;
  }
}

// Queries of one to five texts, of which one is relevant if there are several.
std::string write_queries(const TempDir& directory) {
  Words words(6);
  std::string text = "query,text,relevance\n";
  for (int query = 0; query < 80; query++) {
    const int64_t count = 1 + query % 5, relevant = words.below(count);
    const std::string asked = words.text({}) + fmt::format(" {}", query);
    for (int64_t i = 0; i < count; i++)
      text += fmt::format("{},{},{}\n", asked, words.text({i == relevant ? "a" : "b"}), i == relevant ? 1 : 0);
  }
  spill(directory / "queries.csv", text);
  return directory / "queries.csv";
}

TEST(ClassifierTraining, LearnsTheOrderOfTexts) {
  const TempDir directory;
  const std::string init = write_encoder(directory), train = write_queries(directory);
  for (const char* loss : {"pairwise", "listwise"}) {
    const std::string out = directory / loss;
    const Measures measures = measures_of({.train = train, .init = init},
                                          small_classifier(init, fmt::format(R"({{"loss": "{}"}})", loss)), out);
    EXPECT_GT(measures.at("NDCG@10"), 0.9) << loss;
    EXPECT_GT(measures.at("MRR@10"), 0.85) << loss;
    const Ranking ranking = Classifier(out).rerank("c d 3", {"e b f", "g a h", "b c"});
    EXPECT_EQ(ranking.texts.front().index, 1) << loss;
  }
}

TEST(ClassifierTraining, InterruptedTrainingEndsWithTheSameBytes) {
  const TempDir directory;
  const TrainingCase c = classifier_case(directory);
  const std::string json = R"({"max_steps": 30, "eval_every": 11, "average": 2, "precision": "int8"})";  // three epochs
  with_threads(1, [&] { return steps_of(c, json, directory / "whole").size(); });
  with_threads(3, [&] {
    for (const size_t stop : {7, 16, 0}) steps_of(c, json, directory / "parts", stop);
    return 0;
  });
  expect_same_run(directory / "whole", directory / "parts");
  EXPECT_EQ(slurp(directory / "whole/classifier.safetensors"), slurp(directory / "parts/classifier.safetensors"));
  EXPECT_EQ(error_of([&] {
              steps_of(c, R"({"precision": "int8", "average": 2, "eval_every": 11, "examples": 9})",
                       directory / "parts");
            }),
            (directory / "parts") +
                ": examples was 12 when this run was started and is now 9; use the same value or another directory");
}

TEST(ClassifierTraining, ARunIsResumedWithoutTheInitialOne) {
  const TempDir directory;
  const std::string init = write_encoder(directory), out = directory / "run";
  const ClassifierFiles files{.train = write_labels(directory, 40), .init = init};
  const auto recipe_of = [&](const char* steps) {
    return classifier_recipe({.values = {{"max_steps", steps}, {"schedule", "constant"}}, .init = init, .out = out});
  };
  TrainingObserver stopping;
  stopping.should_stop = [] { return true; };
  EXPECT_FALSE(train_classifier(files, recipe_of("3"), out, stopping)) << "before the first evaluation";
  std::filesystem::remove_all(init);
  EXPECT_TRUE(train_classifier(files, recipe_of("3"), out, {}));
  EXPECT_EQ(Classifier(out).labels(), (std::vector<std::string>{"9", "10"}));
}

// Without dropout, a batch has the same gradient whether it is computed at once or in parts, but for rounding.
TEST(ClassifierTraining, PartsOfABatchChangeNothingButRounding) {
  const TempDir directory;
  const TrainingCase c = classifier_case(directory);
  const auto steps = [&](int64_t tokens) {
    const std::string json =
        fmt::format(R"({{"batch_tokens": {}, "dropout": 0, "head_dropout": 0, "max_steps": 4}})", tokens);
    return steps_of(c, json, directory / fmt::format("{}", tokens));
  };
  const std::vector<StepReport> whole = steps(4096), parts = steps(20);
  ASSERT_EQ(whole.size(), 4u);
  EXPECT_EQ(whole[0].loss, parts[0].loss);
  EXPECT_EQ(whole[0].target_tokens, 12) << "rows";
  for (size_t i = 0; i < whole.size(); i++)
    EXPECT_NEAR(parts[i].gradient_norm, whole[i].gradient_norm, 1e-3 * whole[i].gradient_norm);
}

// Returns the values of the parameters of a safetensors file.
std::map<std::string, std::vector<float>> tensors_of(const ParameterList<float>& list) {
  std::map<std::string, std::vector<float>> values;
  for (const Parameter<float>& p : list.all()) values[p.name].assign(p.value, p.value + p.size());
  return values;
}

TEST(ClassifierTraining, KeepsTheHeadForTheSameLabelsAndTrainsItAloneIfTheRestIsFrozen) {
  const TempDir directory;
  const std::string init = write_encoder(directory), first = directory / "first", train = write_labels(directory);
  measures_of({.train = train, .init = init}, small_classifier(init, R"({"head_activation": "gelu"})"), first);
  const auto continued = [&](const std::string& rows, const char* json, const std::string& out) {
    std::string lines;
    ClassifierRecipe recipe = small_classifier(first, R"({"max_steps": 2})");
    merge_recipe_json(recipe, json, "");
    measures_of({.train = rows, .init = first}, recipe, out, &lines);
    return lines;
  };
  expect_contains(continued(train, "{}", directory / "kept"), "the head of " + first + " is kept\n");
  expect_contains(continued(train, R"({"pooling": "max"})", directory / "pooling"), "the head is new\n");
  expect_contains(continued(train, R"({"head_activation": "relu"})", directory / "activation"), "the head is new\n");
  spill(directory / "others.tsv", "c a\tx\nd b\ty\ne a\tx\nf b\tz\ng b\ty\nh a\tx\n");
  expect_contains(continued(directory / "others.tsv", "{}", directory / "others"), "the head is new\n");
  EXPECT_EQ(Classifier(directory / "others").labels(), (std::vector<std::string>{"x", "y", "z"}));

  continued(train, R"({"freeze": ["embeddings", "encoder"]})", directory / "frozen");
  const ClassifierRun before = load_run<ClassifierRun>(first), after = load_run<ClassifierRun>(directory / "frozen");
  EXPECT_EQ(tensors_of(before.model->parameters()), tensors_of(after.model->parameters()));
  EXPECT_NE(slurp(first + "/classifier.safetensors"), slurp(directory / "frozen/classifier.safetensors"));
  EXPECT_EQ(after.classification.activation, HeadActivation::gelu);
}

constexpr const char* kSmallAdapter = R"({"lora_rank": 4, "learning_rate": 0.02})";

TEST(ClassifierTraining, AnAdapterIsTrainedWithItsHead) {
  const TempDir directory;
  const std::string init = write_encoder(directory), out = directory / "run", merged = directory / "merged";
  const ClassifierFiles files{.train = write_labels(directory), .init = init};
  EXPECT_GT(measures_of(files, small_classifier(init, kSmallAdapter), out).at("accuracy"), 0.9);
  EXPECT_FALSE(std::filesystem::exists(out + "/model.safetensors"));
  const MergeReport report = merge_run(out, merged);
  EXPECT_EQ(report.base, std::filesystem::canonical(init));
  const std::vector<ClassifierInput> texts = {{"c d a"}, {"b e f g"}};
  EXPECT_EQ(Classifier(out).classify(texts).texts, Classifier(merged).classify(texts).texts);

  // A classifier with the same labels keeps its head, with which training starts.
  std::string lines;
  const std::string again = directory / "again";
  ClassifierRecipe still = small_classifier(merged, R"({"lora_rank": 2, "learning_rate": 1e-12, "max_steps": 1})");
  const ClassifierFiles more{.train = write_labels(directory, 60, "more.tsv"), .init = merged};
  measures_of(more, still, again, &lines);
  expect_contains(lines, "the head of " + merged + " is kept\n");
  const auto before = Classifier(merged).classify(texts).texts, after = Classifier(again).classify(texts).texts;
  for (size_t i = 0; i < before.size(); i++) EXPECT_NEAR(after[i].front().score, before[i].front().score, 1e-5);

  std::string head = slurp(out + "/classifier.safetensors");
  head.back() ^= 1;
  spill(out + "/classifier.safetensors", head);
  EXPECT_EQ(error_of([&] { Classifier{out}; }),
            out + "/classifier.safetensors: is not the head of " + out +
                "/adapter_model.safetensors: training ended between writing the two; resume it to write both");
}

TEST(ClassifierTraining, AnInterruptedAdapterEndsWithTheSameBytes) {
  const TempDir directory;
  const TrainingCase c = classifier_case(directory);
  const std::string json =
      R"({"max_steps": 24, "eval_every": 9, "average": 2, "lora_rank": 3, "lora_targets": ["self_attention"]})";
  with_threads(1, [&] { return steps_of(c, json, directory / "whole").size(); });
  with_threads(3, [&] {
    for (const size_t stop : {7, 10, 0}) steps_of(c, json, directory / "parts", stop);
    return 0;
  });
  for (const char* path : {"/adapter_model.safetensors", "/classifier.safetensors", "/checkpoints/state.safetensors"})
    EXPECT_TRUE(slurp((directory / "whole") + path) == slurp((directory / "parts") + path)) << path;
}

TEST(ClassifierTraining, StartsFromALanguageModel) {
  const TempDir directory;
  steps_of(language_case(directory), R"({"max_steps": 1, "unit": "pieces", "vocab_size": 300})", directory / "lm");
  const TrainingCase c = classifier_case(directory);  // writes rows.tsv
  ClassifierRecipe recipe = classifier_fine_tuning(directory / "lm");
  merge_recipe_json(recipe, R"({"max_steps": 2, "learning_rate": 0.01})", "");
  const ClassifierFiles files{.train = directory / "rows.tsv", .init = directory / "lm"};
  EXPECT_EQ(measures_of(files, recipe, directory / "run").count("accuracy"), 1u);
  const Classifier classifier(directory / "run");
  EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"long", "short"}));
  EXPECT_EQ(classifier.classify({{"a red house"}}).texts.front().size(), 1u);
  EXPECT_EQ(load_run<ClassifierRun>(directory / "run").classification.pooling, Pooling::last);
}

// The end token of a language model is between the texts of a pair.
TEST(ClassifierTraining, SeparatesThePairsOfALanguageModel) {
  const TempDir directory;
  steps_of(language_case(directory), R"({"max_steps": 1, "unit": "pieces", "vocab_size": 300})", directory / "lm");
  std::string text;
  for (int i = 0; i < 20; i++) text += fmt::format("a\tb\t{}\n", i % 2);
  spill(directory / "pairs.tsv", text);
  ClassifierRecipe recipe = classifier_fine_tuning(directory / "lm");
  merge_recipe_json(recipe, R"({"max_steps": 1})", "");
  measures_of({.train = directory / "pairs.tsv", .init = directory / "lm"}, recipe, directory / "run");
  const ClassifierRun run = load_run<ClassifierRun>(directory / "run");
  EXPECT_EQ(run.edges.after, std::vector<int32_t>{run.codec.end()});
  EXPECT_EQ(run.classification.separators, 1);
}

// Scores of one run are comparable.
TEST(ClassifierTraining, ARunIsNotResumedWithOtherDevRows) {
  const TempDir directory;
  const std::string init = write_encoder(directory), out = directory / "run", train = write_labels(directory, 40);
  const std::string dev = write_labels(directory, 20, "dev.tsv"), other = directory / "other.tsv";
  spill(other, slurp(dev) + "c a\t10\n");
  measures_of({.train = train, .dev = dev, .init = init}, small_classifier(init, R"({"max_steps": 1})"), out);
  expect_contains(error_of([&] {
                    train_classifier({.train = train, .dev = other, .init = init},
                                     small_classifier(init, R"({"max_steps": 2})"), out, {});
                  }),
                  "was saved with different training data");
}

TEST(ClassifierTraining, ReadsOtherColumnsOfTheDevFile) {
  const TempDir directory;
  const std::string init = write_encoder(directory), dev = directory / "dev.csv";
  spill(dev, "id,kind,body\n1,9,b c\n2,10,a d\n");
  const ClassifierFiles files{
      .train = write_labels(directory, 40), .dev = dev, .dev_columns = {"body", "kind"}, .init = init};
  EXPECT_EQ(measures_of(files, small_classifier(init, R"({"max_steps": 1})"), directory / "run").count("accuracy"), 1u);
}

TEST(ClassifierTraining, WeightsOfLabelsChangeTheLoss) {
  const TempDir directory;
  const TrainingCase c = classifier_case(directory);
  const auto loss = [&](const std::string& weights) {
    const std::string json = fmt::format(R"({{"max_steps": 1, "learning_rate": 0, "class_weights": [{}]}})", weights);
    return steps_of(c, json, directory / fmt::format("{}", weights.size())).front().loss;
  };
  EXPECT_NEAR(loss(R"("long=2", "short=2")"), 2 * loss(""), 1e-6);
  EXPECT_GT(loss(R"("balanced")"), 0);
}

// The embedding of the word b is so large that the model computes infinity.
TEST(ClassifierTraining, NamesTheLineOfARowWhoseLossIsNotFinite) {
  const TempDir directory;
  const std::string init = write_encoder(directory), train = directory / "rows.tsv", dev = directory / "dev.tsv";
  const EncoderRun run = load_run<EncoderRun>(init);
  const int64_t row = run.codec.encode("b", "").back(), d = run.config.d_model;
  Transformer<float> model(run.config);
  load_weights(RunDirectory(init).model(), model.parameters(), model.parameters().values());
  std::fill_n(values_of(model.parameters(), "source_embedding.weight") + row * d, d, 3e38f);
  save_weights(RunDirectory(init).model(), model.parameters(), model.parameters().values());
  std::string text;
  for (int i = 1; i <= 40; i++) text += i == 17 ? "c b d\tx\n" : fmt::format("c d e\t{}\n", i % 2 == 0 ? "x" : "y");
  spill(train, text);
  spill(dev, "c d\tx\n");
  for (const int tokens : {4096, 16})
    expect_contains(error_of([&] {
                      const std::string json = fmt::format(R"({{"max_skipped_steps": 0, "batch_tokens": {}}})", tokens);
                      const ClassifierFiles files{.train = train, .dev = dev, .init = init};
                      train_classifier(files, small_classifier(init, json), directory / fmt::format("run-{}", tokens),
                                       {});
                    }),
                    "is not finite for line 17 of " + train);
}

class RefusedRows : public ::testing::Test {
 protected:
  // Returns the error of training on these rows.
  std::string error(const std::string& rows, const char* json = "{}", const std::string& dev = "",
                    const std::vector<std::string>& columns = {}) {
    spill(train_, rows);
    spill(dev_, dev);
    const ClassifierFiles files{.train = train_, .dev = dev.empty() ? "" : dev_, .columns = columns, .init = init_};
    const std::string message =
        error_of([&] { train_classifier(files, small_classifier(init_, json), directory_ / "run", {}); });
    EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }

  const TempDir directory_;
  const std::string init_ = write_encoder(directory_), train_ = directory_ / "t.tsv", dev_ = directory_ / "d.tsv";
};

TEST_F(RefusedRows, OfLabels) {
  const std::string good = "a\tx\nb\ty\nc a\tx\nd b\ty\n";
  EXPECT_EQ(error(good, "{}", "a\tx\n\nb\tz\n"), dev_ + ":3: the label \"z\" is not one of the training file");
  EXPECT_EQ(error("a\tx\nb\tx\n"), train_ + ": all 2 rows have the label \"x\"; training needs at least two labels");
  EXPECT_EQ(error("a\tx\n \ty\n"), train_ + ":2: the text is empty");
  EXPECT_EQ(error("a\tb\tx\nc\t\ty\n"), train_ + ":2: the second text is empty");
  EXPECT_EQ(error("a\tx\nb\t\n"), train_ + ":2: the label is empty");
  EXPECT_EQ(error("a\nb\n"),
            train_ + ": must have two columns, text and label, or three, text, text and label (has 1)");
  EXPECT_EQ(error("a\tb\tc\td\n"),
            train_ + ": must have two columns, text and label, or three, text, text and label (has 4)");
  EXPECT_EQ(error(good, "{}", "a\tb\tx\n"), dev_ + ": must have 2 columns as " + train_ + " (has 3)");
  EXPECT_EQ(error("a\tx\nb\ty\n"),
            train_ + ": each row has a label of its own, so that none can be set aside for evaluation; set dev");
  EXPECT_EQ(
      error("a\t0.5\nb\tN/A\nc\t1.5\n"),
      train_ + ":2: \"N/A\" is no number, so that all rows have labels of their own; correct it, or set loss and dev");
  EXPECT_EQ(error(good, R"({"class_weights": ["x=0", "y=0"]})"),
            "training: class_weights must be above 0 for one label at least (all are 0)");
  EXPECT_EQ(error(good, R"({"class_weights": ["z=2"]})"),
            "training: class_weights must name labels of the training file (has \"z\")");
  EXPECT_EQ(error(good, R"({"class_weights": ["x:2"]})"),
            "training: class_weights must be balanced or a list of LABEL=WEIGHT, with weights of at least 0 (has "
            "\"x:2\")");
  EXPECT_EQ(error("a\t[\"x\",\"y\"]\n", R"({"loss": "softmax"})"),
            train_ + ":1: loss softmax requires one label in a row (is \"[\\\"x\\\",\\\"y\\\"]\")");
}

TEST_F(RefusedRows, OfNumbers) {
  EXPECT_EQ(error("a\t1\nb\ttwo\n", R"({"loss": "squared"})"),
            train_ + ":2: the last column must be a number (is \"two\")");
  EXPECT_EQ(error("a\t1\nb\tnan\n", R"({"loss": "squared"})"),
            train_ + ":2: the last column must be a number (is \"nan\")");
  EXPECT_EQ(error("a\t1\nb\t1.0\n", R"({"loss": "squared"})"),
            train_ + ": all 2 rows have the number 1; training needs different ones");
  EXPECT_EQ(error("a\t0.5\nb\t1\n", R"({"loss": "sigmoid"})", "a\t1.5\n"),
            dev_ + ":1: the last column must be a number from 0 to 1, as in the training file (is 1.5)");
  EXPECT_EQ(error("a\t0.5\nb\t1\n", R"({"label_smoothing": 0.1})", "a\t1\n"),
            "training: label_smoothing must be 0 with loss squared (is 0.1)");
  EXPECT_EQ(error("a\t0.5\nb\t1\n", R"({"class_weights": ["balanced"]})", "a\t1\n"),
            "training: class_weights must be empty for numbers (has \"balanced\")");
  EXPECT_EQ(
      error("a\t1\nb\t0\n", R"({"loss": "pairwise"})"),
      train_ + ": must have three columns for losses over the texts of a query: query, text and relevance (has 2)");
  EXPECT_EQ(error("a\tb\t1\nc\td\t0\n", R"({"loss": "listwise"})"),
            train_ +
                ": must have several texts of one query in consecutive rows for loss listwise (each row has "
                "another)");
}

TEST_F(RefusedRows, OfOrders) {
  const char* loss = R"({"loss": "pairwise"})";
  EXPECT_EQ(
      error("a\tb\t1\na\tc\t0\nd\te\t1\na\tf\t1\n", loss),
      train_ + ":4: the query \"a\" had rows before other queries; the texts of a query must be in consecutive rows");
  EXPECT_EQ(error("a\tb\t1\na\tc\t1\nd\te\t0\nd\tf\t0\n", loss),
            train_ + ": must have a query whose texts have different numbers for loss pairwise (has none)");
  const std::string good = "a\tb\t1\na\tc\t0\nd\te\t1\nd\tf\t0\n";
  EXPECT_EQ(error(good, loss, "a\tb\t1\na\tc\t1\n"),
            dev_ + ": must have a query whose texts have different numbers (has none)");
  std::string equal;
  for (int i = 0; i < 30; i++) equal += fmt::format("c{}\tb\t1\nc{}\tc\t1\n", i, i);
  expect_contains(error(equal + good, R"({"loss": "pairwise", "dev_share": 0.01})"),
                  ": no query that is set aside has texts with different numbers; set dev, or a larger dev_share");
}

TEST_F(RefusedRows, OfOptions) {
  const std::string good = "a\tx\nb\ty\nc a\tx\nd b\ty\n";
  EXPECT_EQ(error(good, R"({"r_drop": 1})"), "training: r_drop must be 0 for a classifier (is 1)");
  EXPECT_EQ(error(good, R"({"device": "cuda"})"), "training: device must be cpu for a classifier (is cuda)");
  EXPECT_EQ(error(good, R"({"max_length": 33})"), "training: max_length must be between 5 and 32, the model's (is 33)");
  EXPECT_EQ(error(good, R"({"dev_share": 1})"), "training: dev_share must be above 0 and below 1 (is 1)");
  EXPECT_EQ(error(good, R"({"loss": "softmax", "label_separator": ","})"),
            "training: label_separator must be empty with loss softmax (is \",\")");
  EXPECT_EQ(error_of([&] { train_classifier({.train = train_}, small_classifier(init_), directory_ / "run", {}); }),
            "training: init must name the run that training starts from");
  EXPECT_EQ(error_of([&] { classifier_recipe({.out = directory_ / "run"}); }),
            "training: init must name the run that training starts from");
  ClassifierRecipe other = small_classifier(init_);
  other.model.ffn = 3;
  EXPECT_EQ(error_of([&] { train_classifier({.train = train_, .init = init_}, other, directory_ / "run", {}); }),
            init_ + ": ffn is 64, here 3; training from a run keeps it");
}

// A run that is trained further must not have seen the rows for evaluation.
TEST(ClassifierTraining, RefusesRowsForEvaluationThatWereTrainedOn) {
  const TempDir directory;
  const std::string init = write_encoder(directory), first = directory / "first", train = write_labels(directory, 60);
  measures_of({.train = train, .init = init}, small_classifier(init, R"({"max_steps": 1})"), first);
  const auto error = [&](const ClassifierFiles& files, const char* json) {
    return error_of([&] { train_classifier(files, small_classifier(files.init, json), directory / "next", {}); });
  };
  EXPECT_EQ(error({.train = train, .init = first}, R"({"dev_share": 0.3})"),
            first + ": was trained on rows of " + train +
                " that are set aside here (dev_share 0.3), so that scores would be too good; use its dev_share or a "
                "dev file");
  const std::string dev = write_labels(directory, 30, "dev.tsv"), whole = directory / "whole";
  measures_of({.train = train, .dev = dev, .init = init}, small_classifier(init, R"({"max_steps": 1})"), whole);
  EXPECT_EQ(error({.train = dev, .dev = train, .init = whole}, "{}"),
            whole + ": was trained on " + train + ", so that scores on it would be too good; use another dev file");
  expect_contains(error({.train = train, .init = whole}, R"({"dev_share": 0.1})"), "that are set aside here");
  measures_of({.train = train, .init = first}, small_classifier(first, R"({"max_steps": 1})"), directory / "same");
}

}  // namespace
}  // namespace qkv::testing
