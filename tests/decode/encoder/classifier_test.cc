// Classifiers: labels, scores and truncation equal to those of transformers, independence of the batch, reranking.
#include "qkv/classifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "decode/encoder/pairs.h"
#include "io/runs/run.h"
#include "qkv/import.h"
#include "qkv/runs.h"
#include "qkv/system.h"
#include "tests/support/errors.h"
#include "tests/support/numeric.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::relative_error;
using testing::TempDir;

constexpr double kScoreTolerance = 1e-5;  // relative, of all scores of a model in float32

std::string golden_classifier(const std::string& name) { return QKV_GOLDEN_DIR "/classify/" + name; }

// The results of transformers for a model.
struct ExpectedScores {
  std::vector<std::string> labels;
  std::vector<ClassifierInput> inputs;
  std::vector<std::vector<int32_t>> ids;
  std::vector<float> logits, scores;  // [inputs, labels]

  explicit ExpectedScores(const std::string& name) {
    const json file = json::parse(testing::slurp(golden_classifier(name) + "/expected.json"));
    labels = file.at("labels").get<std::vector<std::string>>();
    for (const json& input : file.at("inputs")) {
      inputs.push_back({input.at("text").get<std::string>()});
      if (!input.at("pair").is_null()) inputs.back().pair = input.at("pair").get<std::string>();
      ids.push_back(input.at("ids").get<std::vector<int32_t>>());
      for (const double x : input.at("logits")) logits.push_back(static_cast<float>(x));
      for (const double x : input.at("scores")) scores.push_back(static_cast<float>(x));
    }
  }
};

// Returns the scores of all labels, [inputs, labels].
std::vector<float> all_scores(const Classifier& classifier, const std::vector<ClassifierInput>& inputs,
                              ClassifyOptions options = {}) {
  options.top = 0;
  std::vector<float> scores;
  for (const auto& text : classifier.classify(inputs, options).texts) {
    std::vector<float> row(text.size());
    for (const auto& [label, score] : text) row.at(to_size(label)) = score;
    scores.insert(scores.end(), row.begin(), row.end());
  }
  return scores;
}

class ImportedClassifier : public ::testing::Test {
 protected:
  std::string import(const std::string& name) {
    report_ = import_model(golden_classifier(name), directory_ / name);
    return directory_ / name;
  }

  TempDir directory_;
  ImportReport report_;
};

class ClassifierOf : public ImportedClassifier, public ::testing::WithParamInterface<const char*> {};

TEST_P(ClassifierOf, MatchesLabelsAndScoresOfTransformers) {
  const ExpectedScores expected(GetParam());
  const Classifier classifier(import(GetParam()));
  EXPECT_EQ(report_.notes, std::vector<std::string>());
  EXPECT_EQ(classifier.labels(), expected.labels);
  EXPECT_EQ(classifier.max_length(), 14);
  EXPECT_LE(relative_error(all_scores(classifier, expected.inputs, {.scores = ScoreFunction::none}), expected.logits),
            kScoreTolerance);
  const bool logits = std::string(GetParam()) == "cross";  // for a cross-encoder, unlike the pipeline of transformers
  EXPECT_LE(relative_error(all_scores(classifier, expected.inputs), logits ? expected.logits : expected.scores),
            kScoreTolerance);
}

TEST_P(ClassifierOf, JoinsAndTruncatesPairsLikeTransformers) {
  const ExpectedScores expected(GetParam());
  const ClassifierRun run = load_run<ClassifierRun>(import(GetParam()));
  for (size_t i = 0; i < expected.inputs.size(); i++) {
    const auto& [text, pair] = expected.inputs[i];
    std::vector<int32_t> a = run.codec.encode(prepare_text(run.embedding, text), "text");
    std::vector<int32_t> b =
        pair ? run.codec.encode(prepare_text(run.embedding, *pair), "text") : std::vector<int32_t>();
    const size_t special = pair ? 2 + to_size(run.classification.separators) : 2;
    const auto [kept_a, kept_b] = longest_first(a.size(), b.size(), 14 - special);
    a.resize(kept_a), b.resize(kept_b);
    const ClassifierTokens joined = join(run.edges, run.classification.separators, a, pair ? &b : nullptr);
    EXPECT_EQ(joined.ids, expected.ids[i]) << text << " | " << pair.value_or("-");
    EXPECT_EQ(joined.types.size(), joined.ids.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, ClassifierOf,
                         ::testing::Values("bert", "cross", "roberta", "distilbert", "electra", "albert", "mpnet",
                                           "modernbert"),
                         [](const auto& name) { return std::string(name.param); });

TEST(LongestFirst, TruncatesTheLongerText) {
  using Kept = std::pair<size_t, size_t>;
  EXPECT_EQ(longest_first(3, 4, 7), Kept(3, 4));
  EXPECT_EQ(longest_first(3, 9, 7), Kept(3, 4));
  EXPECT_EQ(longest_first(9, 3, 7), Kept(4, 3));
  EXPECT_EQ(longest_first(9, 8, 7), Kept(4, 3));
  EXPECT_EQ(longest_first(8, 8, 7), Kept(3, 4));
  EXPECT_EQ(longest_first(9, 0, 7), Kept(7, 0));
  EXPECT_EQ(longest_first(2, 9, 0), Kept(0, 0));
}

TEST_F(ImportedClassifier, SaysHowLogitsBecomeScores) {
  const auto scores = [&](const std::string& name) {
    return load_run<ClassifierRun>(import(name)).classification.scores;
  };
  EXPECT_EQ(scores("bert"), ScoreFunction::softmax);
  EXPECT_EQ(scores("cross"), ScoreFunction::none);
  EXPECT_EQ(scores("roberta"), ScoreFunction::sigmoid);
  EXPECT_EQ(scores("electra"), ScoreFunction::none);
  EXPECT_EQ(scores("albert"), ScoreFunction::softmax);
}

TEST_F(ImportedClassifier, ScoresDependNeitherOnTheBatchNorOnThreads) {
  const Classifier classifier(import("bert"));
  std::vector<ClassifierInput> inputs;
  for (int i = 0; i < 40; i++) {
    std::string text;
    for (int k = 0; k < i % 9; k++) text += std::string(1, static_cast<char>('a' + (i * 7 + k * 3) % 8)) + " ";
    inputs.push_back({text});
    if (i % 3 == 0) inputs.back().pair = "c b";
  }
  const std::vector<float> wanted = all_scores(classifier, inputs);
  for (const int64_t batch_tokens : {1, 16, 100})
    EXPECT_EQ(all_scores(classifier, inputs, {.batch_tokens = batch_tokens}), wanted) << batch_tokens;
  const int before = threads();
  for (const int count : {1, 3}) {
    set_threads(count);
    EXPECT_EQ(all_scores(classifier, inputs), wanted) << count;
  }
  set_threads(before);
  for (size_t i = 0; i < inputs.size(); i++) {
    const std::vector<float> alone = all_scores(classifier, {inputs[i]});
    EXPECT_TRUE(std::ranges::equal(alone, std::span(wanted).subspan(3 * i, 3))) << i;
  }
  EXPECT_TRUE(classifier.classify({}).texts.empty());
}

TEST_F(ImportedClassifier, TheSecondTextOfAPairHasAnotherType) {
  const Classifier classifier(import("bert"));
  EXPECT_NE(all_scores(classifier, {{"a b", "c"}}), all_scores(classifier, {{"a b [SEP] c"}}));
  const Classifier roberta(import("roberta"));
  EXPECT_NE(all_scores(roberta, {{"a b", "c"}}), all_scores(roberta, {{"c", "a b"}}));
}

TEST_F(ImportedClassifier, ReturnsTheBestLabelsFirst) {
  const Classifier classifier(import("bert"));
  const std::vector<float> scores = all_scores(classifier, {{"a b c"}});
  for (const int64_t top : {1, 2, 3, 9}) {
    const auto best = classifier.classify({{"a b c"}}, {.top = top}).texts.front();
    ASSERT_EQ(std::ssize(best), std::min<int64_t>(top, 3));
    EXPECT_EQ(best.front().score, std::ranges::max(scores));
    for (size_t i = 0; i < best.size(); i++) {
      EXPECT_EQ(best[i].score, scores[to_size(best[i].label)]);
      EXPECT_GE(best[i > 0 ? i - 1 : 0].score, best[i].score);
    }
  }
}

TEST_F(ImportedClassifier, CountsTruncatedInputs) {
  const Classifier classifier(import("bert"));
  const std::string twelve = "a b c d e f g h a b c d";
  EXPECT_EQ(classifier.classify({{twelve}, {twelve + " e"}, {twelve, ""}, {"a", "b"}}).cut, 2);
  EXPECT_EQ(classifier.classify({{twelve + " e"}}, {.max_length = 16}).cut, 0);
  EXPECT_EQ(all_scores(classifier, {{twelve + " e"}}), all_scores(classifier, {{twelve}}));
}

TEST_F(ImportedClassifier, TokensOfTextsHaveTheScoresOfTheTexts) {
  const std::string twelve = "a b c d e f g h a b c d";
  const std::vector<ClassifierInput> inputs = {{"a b"}, {twelve + " e"}, {twelve, "c"}, {"c", twelve}, {"", "h"}, {""}};
  for (const char* name : {"bert", "roberta"}) {
    const Classifier classifier(import(name));
    for (const int64_t max_length : {8, 14}) {
      const ClassifyOptions options{.top = 0, .max_length = max_length};
      std::vector<ClassifierTokens> encoded;
      for (const auto& [text, pair] : inputs) {
        const std::vector<int32_t> ids = pair ? classifier.encode(*pair) : std::vector<int32_t>();
        encoded.push_back(classifier.join(classifier.encode(text), pair ? &ids : nullptr, options));
        EXPECT_LE(std::ssize(encoded.back().ids), max_length);
      }
      const Classifications wanted = classifier.classify(inputs, options);
      const Classifications found = classifier.classify_tokens(encoded, options);
      EXPECT_EQ(found.texts, wanted.texts) << name;
      EXPECT_EQ(found.cut, wanted.cut);
      EXPECT_EQ(found.tokens, wanted.tokens);
    }
  }
}

TEST_F(ImportedClassifier, RefusesTokensThatItCannotRead) {
  const Classifier classifier(import("bert"));
  const auto error_with = [&](const ClassifierTokens& tokens) {
    return error_of([&] { classifier.classify_tokens({{{1, 2}, {0, 0}}, tokens}); });
  };
  EXPECT_EQ(error_with({}), "text 2: has no tokens");
  EXPECT_NE(error_with({{1, 1 << 30}, {0, 0}}), "");
  EXPECT_NE(error_with({{1, -1}, {0, 0}}), "");
  EXPECT_NE(error_with({{1, 2}, {0}}), "");
  EXPECT_NE(error_with({{1, 2}, {0, 2}}), "");
  EXPECT_NE(error_with({std::vector<int32_t>(100, 1), std::vector<int32_t>(100, 0)}), "");
}

TEST_F(ImportedClassifier, ReranksByTheScoreOfThePair) {
  const Classifier classifier(import("cross"));
  const std::vector<std::string> texts = {"a", "b c", "a", "h g f", "", "b c"};
  const Ranking ranking = classifier.rerank("e d", texts);
  ASSERT_EQ(ranking.texts.size(), texts.size());
  for (size_t i = 0; i < texts.size(); i++) {
    const auto [index, score] = ranking.texts[i];
    EXPECT_EQ(score, all_scores(classifier, {{"e d", texts[to_size(index)]}}).front());
    if (i == 0) continue;
    const RankedText& above = ranking.texts[i - 1];
    EXPECT_TRUE(above.score > score || (above.score == score && above.index < index)) << i;
  }
  const Ranking best = classifier.rerank("e d", texts, {.top = 2});
  EXPECT_EQ(best.texts, std::vector(ranking.texts.begin(), ranking.texts.begin() + 2));
  EXPECT_TRUE(classifier.rerank("e d", {}).texts.empty());
}

TEST_F(ImportedClassifier, RerankingNeedsALabelIfThereAreSeveral) {
  const Classifier classifier(import("bert"));
  EXPECT_EQ(error_of([&] { classifier.rerank("a", {"b"}); }),
            "label must be one of negative, neutral, positive: the model has several");
  EXPECT_EQ(error_of([&] { classifier.rerank("a", {"b"}, {.label = "good"}); }),
            "label must be one of negative, neutral, positive (is \"good\")");
  EXPECT_EQ(classifier.rerank("a", {"b"}, {.label = "positive"}).texts.front().score,
            all_scores(classifier, {{"a", "b"}})[2]);
}

TEST_F(ImportedClassifier, ErrorsNameTheTextOrTheOption) {
  const Classifier classifier(import("bert"));
  EXPECT_EQ(error_of([&] { classifier.classify({{"a"}, {"b\xFF"}}); }), "text 2: byte 2 is not valid UTF-8");
  EXPECT_EQ(error_of([&] {
              classifier.classify({{"a", "\xFF"}}, {.first_number = 7});
            }),
            "text 7: byte 1 is not valid UTF-8");
  EXPECT_EQ(error_of([&] { classifier.classify({{"a"}}, {.max_length = 4}); }),
            "max_length must be between 5 and 16 (is 4)");
  EXPECT_EQ(error_of([&] { classifier.classify({{"a"}}, {.max_length = 17}); }),
            "max_length must be between 5 and 16 (is 17)");
  EXPECT_EQ(error_of([&] { classifier.classify({{"a"}}, {.top = -1}); }), "top must be between 0 and 16777216 (is -1)");
  EXPECT_EQ(error_of([&] { Classifier("nowhere"); }), "nowhere: is not a run directory");
}

TEST_F(ImportedClassifier, ErrorsNameTheFileOfABrokenRun) {
  const std::string path = import("bert");
  const RunDirectory run(path);
  const ClassificationConfig config = load_run<ClassifierRun>(path).classification;
  const auto error_with = [&](auto&& change) {
    ClassificationConfig changed = config;
    change(changed);
    write_fields(run.classification(), changed);
    return error_of([&] { Classifier{path}; });
  };
  EXPECT_EQ(error_with([](ClassificationConfig& c) { c.labels.clear(); }),
            run.classification() + ": labels must not be empty");
  EXPECT_EQ(error_with([](ClassificationConfig& c) { c.separators = 3; }),
            run.classification() + ": separators must be between 1 and 2 (is 3)");
  EXPECT_EQ(error_with([](ClassificationConfig& c) { c.labels.resize(2); }),
            run.classifier() + ": tensor \"head.output.weight\": must be F32 [2, 12] (is F32 [3, 12])");
  const auto add_labels = [](ClassificationConfig& c) {
    for (int i = 0; i < 1000; i++) c.labels.push_back(fmt::format("label {}", i));
  };
  testing::expect_contains(error_with(add_labels), run.classifier() + ": has ");
  write_fields(run.classification(), config);
  std::filesystem::remove(run.classifier());
  testing::expect_contains(error_of([&] { Classifier{path}; }), run.classifier());
}

TEST_F(ImportedClassifier, ScoresThatAreNotFiniteAreAnError) {
  const std::string path = import("bert");
  const ClassifierRun run = load_run<ClassifierRun>(path);
  const ParameterList<float>& list = run.head->parameters();
  std::vector<float> values(list.values().begin(), list.values().end());
  std::ranges::fill(values, std::numeric_limits<float>::max());
  save_weights(RunDirectory(path).classifier(), list, values);
  EXPECT_EQ(error_of([&] { Classifier(path).classify({{"a"}}); }), "text 1: the scores are not finite");
}

TEST_F(ImportedClassifier, EightBitScoresAreAlmostTheSame) {
  const std::string path = import("bert");
  quantize_run(path, directory_ / "int8");
  const std::vector<ClassifierInput> inputs = ExpectedScores("bert").inputs;
  const std::vector<float> wanted = all_scores(Classifier(path), inputs),
                           found = all_scores(Classifier(directory_ / "int8"), inputs);
  EXPECT_NE(found, wanted);
  EXPECT_LE(relative_error(found, wanted), 0.1);
}

TEST_F(ImportedClassifier, EmbedsTextsLikeTheEncoderInside) {
  const std::string path = import("bert");
  const Embedder embedder(path);
  EXPECT_EQ(embedder.width(), 12);
  const Embeddings first = embedder.embed({"a b"}, {.pooling = Pooling::first});
  const ClassifierRun run = load_run<ClassifierRun>(path);
  Packed packed;
  packed.append(std::vector<int32_t>{2, 5, 6, 3});
  Arena arena;
  Context context{.arena = arena, .inference = true};
  const Matrix<float> h = run.model->hidden(packed, context);
  EXPECT_EQ(first.values, std::vector<float>(h.row(0), h.row(1)));
}

// Changes of a model's files that import refuses or reads in another way.
class ClassifierFiles : public ImportedClassifier {
 protected:
  void SetUp() override {
    std::filesystem::copy(golden_classifier("bert"), model(), std::filesystem::copy_options::recursive);
  }
  std::string model() const { return directory_ / "model"; }
  std::string out() const { return directory_ / "run"; }
  void change(const std::string& member, const json& value) {
    json object = json::parse(testing::slurp(golden_classifier("bert") + "/config.json"));
    object[member] = value;
    testing::spill(model() + "/config.json", object.dump());
  }
  ClassificationConfig imported() {
    std::filesystem::remove_all(out());
    import_model(model(), out());
    return load_run<ClassifierRun>(out()).classification;
  }
  std::string error() {
    std::filesystem::remove_all(out());
    std::string text = error_of([&] { import_model(model(), out()); });
    const size_t place = text.find(directory_.path());
    return place == std::string::npos ? text : text.erase(place, directory_.path().size() + 1);
  }
};

TEST_F(ClassifierFiles, TheActivationFunctionOfACrossEncoderIsRead) {
  change("sbert_ce_default_activation_function", "torch.nn.modules.activation.Sigmoid");
  EXPECT_EQ(imported().scores, ScoreFunction::sigmoid);
  change("sentence_transformers", {{"activation_fn", "torch.nn.modules.linear.Identity"}});
  EXPECT_EQ(imported().scores, ScoreFunction::none);
  change("sentence_transformers", {{"activation_fn", "torch.nn.Tanh"}});
  EXPECT_EQ(
      error(),
      "model/config.json: sentence_transformers: the activation function of sentence-transformers must be Sigmoid, "
      "Softmax or Identity of torch.nn (is \"torch.nn.Tanh\")");
}

TEST_F(ClassifierFiles, UnsupportedConfigurationsAreNamed) {
  change("problem_type", "ranking");
  EXPECT_EQ(error(),
            "model/config.json: problem_type must be single_label_classification, multi_label_classification or "
            "regression (is \"ranking\")");
  change("id2label", {{"0", "a"}, {"2", "b"}});
  EXPECT_EQ(error(), "model/config.json: id2label must name a label for 1");
  change("id2label", {{"0", "a"}, {"1", "b"}});
  EXPECT_EQ(
      error(),
      "model/model.safetensors: tensor \"classifier.weight\": must have a row for each of the 2 labels (is F32 [3, "
      "12])");
}

TEST_F(ClassifierFiles, AHeadThatTheArchitecturesDoNotNameIsLeftOut) {
  change("architectures", {"BertModel"});
  const ImportReport report = import_model(model(), out());
  EXPECT_EQ(report.notes, (std::vector<std::string>{"left out: classifier, pooler (not needed for hidden states)"}));
  EXPECT_EQ(error_of([&] { Classifier{out()}; }), out() + " is an encoder; expected a classifier (try: qkv embed)");
}

}  // namespace
}  // namespace qkv
