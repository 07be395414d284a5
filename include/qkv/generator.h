// Text generation with the run directory of a language model (qkv/language.h).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qkv/attention_map.h"
#include "qkv/decoding.h"
#include "qkv/hidden_states.h"
#include "qkv/logit_lens.h"
#include "qkv/patching.h"
#include "qkv/placement.h"

namespace [[gnu::visibility("default")]] qkv {

struct GenerateOptions : SamplingOptions {
  int64_t max_tokens = 256;
  std::vector<std::string> stop = {};
  double presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<int32_t, double>> logit_bias = {};  // tokens, and what is added to their logits: −100 to 100
  bool slide = true;
  int64_t alternatives = 0;
  int64_t batch = 8;

  std::function<void(std::string_view)> on_text = {};  // called with each new piece of the text
};

template <class Visitor>
void visit_fields(GenerateOptions& o, Visitor&& visit) {
  visit("max_tokens", o.max_tokens, {"Maximum number of tokens to generate", "output", at_least(0), kCommon});
  visit("stop", o.stop, {"Texts that end the generation; they are not part of the result", "output", {}, kCommon});
  visit("presence_penalty", o.presence_penalty,
        {"Subtracted from the logit of each token that the answer already contains; 0 has no effect", "repetition",
         between(-100, 100)});
  visit("frequency_penalty", o.frequency_penalty,
        {"Subtracted from the logit of a token as often as the answer already contains it; 0 has no effect",
         "repetition", between(-100, 100)});
  visit_fields(static_cast<SamplingOptions&>(o), visit);
  visit("slide", o.slide,
        {"When the text reaches the model's max_length, discard its older half and continue; if false, stop",
         "execution"});
  visit(
      "alternatives", o.alternatives,
      {"Number of most probable tokens to report at each position; 0 reports none", "output", between(0, kMaxTokens)});
  visit("batch", o.batch,
        {"Maximum number of texts generated in parallel; does not change the result", "execution", at_least(1)});
}

// Returns the default options, with the values of the run's decoding.json where it has some, as
// default_translate_options does.
GenerateOptions default_generate_options(const std::string& run_directory);

// A token that the model could have chosen.
struct TokenAlternative {
  std::string text;
  double log_probability = 0;
  bool end = false;  // it would end the text
};

struct GeneratedToken {
  std::string text;
  double log_probability = 0;                       // of the model, without penalties and filters
  std::vector<TokenAlternative> alternatives = {};  // most probable first; may include the token itself
};

// Why a text ended: the model ended it, a stop text, max_tokens, or the model's max_length.
enum class GenerationEnd { document, stop, length, context };
constexpr std::array<std::string_view, 4> names_of(GenerationEnd) { return {"document", "stop", "length", "context"}; }

struct Generation {
  std::string text;                    // without the prompt
  std::vector<GeneratedToken> tokens;  // all generated tokens, including those of a stop text
  GenerationEnd end = GenerationEnd::length;
};

// How Generator::score reads texts that are longer than the model's context: in windows of `context` tokens, each of
// which begins `stride` tokens after the one before. A token is scored in the first window that contains it.
struct ScoreOptions {
  int64_t context = 0;
  int64_t stride = 0;
  int64_t alternatives = 0;
};

template <class Visitor>
void visit_fields(ScoreOptions& o, Visitor&& visit) {
  visit("context", o.context,
        {"Tokens that the model reads at once, the start token included; 0 means its max_length", "score",
         between(0, kMaxTokens), kCommon});
  visit("stride", o.stride,
        {"Tokens from the beginning of a window to that of the next one, at most context; 0 means half of context",
         "score", between(0, kMaxTokens), kCommon});
  visit(
      "alternatives", o.alternatives,
      {"Number of most probable tokens to report at each position; 0 reports none", "output", between(0, kMaxTokens)});
}

// The log-probability of a text. A token without tokens before it has none, NaN: the first one, unless the model puts a
// start token before texts; with a stride as long as the context also the first one of each window.
struct TextScore {
  std::vector<GeneratedToken> tokens;
  double log_probability = 0;  // sum over the tokens that have one
  int64_t scored = 0;          // their number

  double perplexity() const;  // exp(−log_probability / scored); NaN if scored is 0
};

// Returns one line for each token: its probability, the token, and its alternatives with their probabilities. A space
// is written "▁", a line break "⏎".
std::string tokens_to_text(const Generation& generation);

// Returns whether the directory is the run of a language model. The run may still be damaged.
bool holds_language_model(const std::string& run_directory);

// A language model. Methods are thread-safe; each call uses the thread pool internally.
class Generator {
 public:
  static constexpr int64_t kCacheBytes = int64_t{1} << 28;  // default of the constructor

  // Loads a run directory. Keys and values of recent texts are cached in up to `cache_bytes` bytes, so that a prompt
  // that shares a prefix with one of them is read only from where they differ. Throws Error, naming the file, if the
  // run is not a language model, incomplete or damaged, or if the device or the precision is not available.
  explicit Generator(const std::string& run_directory, int64_t cache_bytes = kCacheBytes,
                     const Placement& placement = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // Generates the continuation of a prompt. Throws Error for options out of range, and for a prompt with characters
  // that are not in the vocabulary.
  Generation generate(const std::string& prompt, const GenerateOptions& options = {}) const;

  // Generates continuations of several prompts together. The results are those of generate; a prefix that prompts share
  // is read once. Calls done(i, text) in the order of the prompts, as soon as text i and all before it are complete;
  // on_text receives the texts one after the other, each before its done.
  using Done = std::function<void(size_t prompt, const Generation& text)>;
  std::vector<Generation> generate_all(const std::vector<std::string>& prompts, const GenerateOptions& options = {},
                                       const Done& done = {}) const;

  // Returns the tokens of a text, without those that stand around it. plain: what spells a special token, such as
  // "<|im_end|>", is ordinary text. Throws Error for characters that are not in the vocabulary.
  std::vector<int32_t> encode(const std::string& text, bool plain = false) const;
  // Returns what the model reads to continue the tokens of a text: these, behind the start token if the model has one
  // before every prompt. An empty text always has one.
  std::vector<int32_t> with_start(std::vector<int32_t> tokens) const;
  // Returns the text of tokens. Throws Error for one that is not in the vocabulary.
  std::string decode(const std::vector<int32_t>& tokens) const;
  // Returns the token that is spelled like this in the vocabulary.
  std::optional<int32_t> token(const std::string& spelling) const;
  // Returns each token with its log-probability after those before it, to which no start token is added, and the
  // `alternatives` most probable ones in its place. The first token has neither: its log-probability is NaN. Throws
  // Error for a token that is not in the vocabulary, and for more tokens than the model reads.
  std::vector<GeneratedToken> score(const std::vector<int32_t>& tokens, int64_t alternatives = 0) const;
  // Returns the score of a text, or of each of several, which do not depend on each other. Throws Error for options out
  // of range, and for characters that are not in the vocabulary.
  template <class Text>
  requires std::convertible_to<Text, std::string_view> TextScore score(const Text& text,
                                                                       const ScoreOptions& options = {})
  const { return score_all({std::string(text)}, options).front(); }
  std::vector<TextScore> score_all(const std::vector<std::string>& texts, const ScoreOptions& options = {}) const;
  int64_t max_length() const;  // maximum number of tokens that the model reads, the start token included

  // Returns all attention weights for a text and up to `more` tokens that the model continues it with, each the most
  // probable one, within the model's max_length. The only kind is "decoder"; "▁" is a space. With another
  // `attribution.method`, the map has what AttentionMethod describes instead of weights. Throws Error if the text is
  // longer than max_length, and for an option that the method does not use.
  AttentionMap attend(const std::string& text, int64_t more = 0, const AttributionOptions& attribution = {}) const;

  // Returns the hidden states of all layers for a text, with the start token if the model has one. Throws Error as
  // attend does.
  HiddenStates hidden(const std::string& text) const;

  // Returns what the model would predict after each layer, at each token of a text. Throws Error as attend does.
  LogitLens lens(const std::string& text) const;

  // Returns how much of the answer to `clean` each part of the model carries, if it is put into the pass over
  // `corrupted`. Throws Error for options out of range, for texts of different numbers of tokens or more than
  // max_length, and if both texts have the same score.
  Patching patch(const std::string& clean, const std::string& corrupted, const PatchOptions& options = {}) const;

 private:
  friend class Chat;
  friend class GenerationLoop;
  friend class GrowingText;
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace qkv
