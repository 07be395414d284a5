// Text classification: scores of labels for texts and pairs of texts, and the order of texts by a query.
// docs/classify.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/embedder.h"
#include "qkv/placement.h"
#include "qkv/text_head.h"

namespace [[gnu::visibility("default")]] qkv {

// How the logits z of the labels become scores:
//   softmax  exp(z_i) / Σ_j exp(z_j): one of the labels is true
//   sigmoid  1 / (1 + exp(−z_i)): each label may be true
//   none     z_i: regression
enum class ScoreFunction { softmax, sigmoid, none };
constexpr std::array<std::string_view, 3> names_of(ScoreFunction) { return {"softmax", "sigmoid", "none"}; }

// The head of a classifier; classification.json of its run. Logits are Norm(φ(v W_1ᵀ + b_1)) W_2ᵀ + b_2 of the pooled
// hidden states v.
struct ClassificationConfig {
  std::vector<std::string> labels = {};
  ScoreFunction scores = ScoreFunction::softmax;
  Pooling pooling = Pooling::first;
  HeadActivation activation = HeadActivation::tanh;
  bool dense_bias = true;  // b_1
  bool norm = false;       // the norm, of the kind that the model has
  int64_t separators = 1;  // end tokens between the texts of a pair

  bool operator==(const ClassificationConfig&) const = default;
};

template <class Visitor>
void visit_fields(ClassificationConfig& c, Visitor&& visit) {
  visit("labels", c.labels, "Labels in the order of the logits");
  visit("scores", c.scores, "How logits become scores");
  visit("pooling", c.pooling, "How the tokens' hidden states become one vector");
  visit("activation", c.activation, "Activation function of the head's hidden layer");
  visit("dense_bias", c.dense_bias, "Whether the head's hidden layer has a bias");
  visit("norm", c.norm, "Whether the head's hidden layer is normalized");
  visit("separators", c.separators, {"End tokens between the texts of a pair", "model", between(1, 2)});
}

// A text, or a pair of texts that the model reads together.
struct ClassifierInput {
  std::string text;
  std::optional<std::string> pair = {};
};

// A text or a pair of texts in the tokens of a classifier.
struct ClassifierTokens {
  std::vector<int32_t> ids;    // with those around texts, truncated to max_length
  std::vector<int32_t> types;  // of each token: 1 for those of the second text, otherwise 0
  bool is_cut = false;         // whether they were truncated
};

// Options that are not set take the values of the run.
struct ClassifyOptions {
  int64_t top = 1;
  std::optional<ScoreFunction> scores = {};
  std::optional<int64_t> max_length = {};
  int64_t batch_tokens = 0;

  int64_t first_number = 1;  // number of the first text in errors
};

// Calls visit for the options that classification and reranking share.
template <class Options, class Visitor>
void visit_classifier_fields(Options& o, Visitor&& visit) {
  visit("scores", o.scores, {"How logits become scores; default: the setting of the run", "model", {}, kCommon});
  visit("max_length", o.max_length,
        {"Maximum number of tokens of a text or pair, special tokens included; longer ones are truncated, the longest "
         "text of a pair first; default: the setting of the run",
         "model", between(1, kMaxTokens)});
  visit("batch_tokens", o.batch_tokens,
        {"Maximum number of tokens that the model reads at once; does not change the result; 0 means 256 for each "
         "thread, at least 1024",
         "execution", between(0, kMaxTokens)});
}

template <class Visitor>
void visit_fields(ClassifyOptions& o, Visitor&& visit) {
  visit("top", o.top, {"Number of best labels to return; 0 means all", "model", between(0, 1 << 24), kCommon});
  visit_classifier_fields(o, visit);
}

struct RerankOptions {
  int64_t top = 0;
  std::string label = "";
  std::optional<ScoreFunction> scores = {};
  std::optional<int64_t> max_length = {};
  int64_t batch_tokens = 0;
};

template <class Visitor>
void visit_fields(RerankOptions& o, Visitor&& visit) {
  visit("top", o.top, {"Number of best texts to return; 0 means all", "model", between(0, 1 << 24), kCommon});
  visit("label", o.label,
        {"Label whose score orders the texts; required if the model has several labels", "model", {}, kCommon});
  visit_classifier_fields(o, visit);
}

struct LabelScore {
  int64_t label = 0;  // index into Classifier::labels()
  float score = 0;

  bool operator==(const LabelScore&) const = default;
};

struct Classifications {
  std::vector<std::vector<LabelScore>> texts;  // for each input its best labels, in descending order of their scores
  int64_t cut = 0;                             // number of inputs that were truncated
  int64_t tokens = 0;                          // that the model read
};

struct RankedText {
  int64_t index = 0;  // of the text
  float score = 0;

  bool operator==(const RankedText&) const = default;
};

struct Ranking {
  std::vector<RankedText> texts;  // in descending order of their scores; texts with equal scores keep their order
  int64_t cut = 0;                // number of texts that were truncated
  int64_t tokens = 0;             // that the model read
};

// A model that classifies texts or pairs of texts. Thread-safe: methods may be called concurrently.
class Classifier {
 public:
  // Loads the run of a classifier. Throws Error, naming the file, if the directory is not a complete and valid run of
  // this kind, or if the device or the precision is not available.
  explicit Classifier(const std::string& run_directory, const Placement& placement = {});
  ~Classifier();
  Classifier(Classifier&&) noexcept;
  Classifier& operator=(Classifier&&) noexcept;

  const std::vector<std::string>& labels() const;
  ScoreFunction scores() const;  // of the run
  int64_t max_length() const;    // default length limit of a text or pair, in tokens

  // Returns the best labels of each input. The result of an input does not depend on the others. Throws Error for
  // options out of range, and, with the number of the text, for text that is not valid UTF-8 and for scores that are
  // not finite.
  Classifications classify(const std::vector<ClassifierInput>& inputs, const ClassifyOptions& options = {}) const;

  // Return in three steps what classify returns: the tokens of a text without those around it; the tokens of a text or,
  // if `pair` is not null, of a pair; the labels of what these steps returned. number: of the text in errors. Throw
  // Error like classify, and for tokens that the model cannot read.
  std::vector<int32_t> encode(const std::string& text, int64_t number = 1) const;
  ClassifierTokens join(const std::vector<int32_t>& text, const std::vector<int32_t>* pair,
                        const ClassifyOptions& options = {}) const;
  Classifications classify_tokens(const std::vector<ClassifierTokens>& inputs,
                                  const ClassifyOptions& options = {}) const;

  // Orders texts by the score of the pair (query, text): a cross-encoder. Throws Error like classify, and for a label
  // that the model lacks.
  Ranking rerank(const std::string& query, const std::vector<std::string>& texts,
                 const RerankOptions& options = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
