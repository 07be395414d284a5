// Text embeddings: the pooled hidden states of an encoder, a translator's encoder or a language model. docs/embed.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qkv/attention_map.h"
#include "qkv/decoding.h"
#include "qkv/hidden_states.h"
#include "qkv/language.h"
#include "qkv/placement.h"
#include "qkv/text_head.h"

namespace [[gnu::visibility("default")]] qkv {

// How an encoder reads text and pools its tokens; embedding.json of its run.
struct EmbeddingConfig {
  TextUnit unit = TextUnit::pieces;
  bool plain_quotes = false;         // replace `` and '' by "
  bool strip_accents = false;        // decompose characters (normal form KD) and drop combining marks
  bool lowercase = false;            // lower-case the text first
  std::string prefix = "";           // prepended to every text
  std::string start = "", end = "";  // tokens around a text, spelled as in the vocabulary; "": none
  std::string unknown = "";          // token for text that a list of pieces lacks; "": an Error
  // With a list of pieces: tokens that a text may spell, and those of them that take the spaces before or after them.
  std::vector<std::string> spelled = {}, strips_left = {}, strips_right = {};
  int64_t max_length = 0;  // tokens of a text, including those around it; 0: the model's max_length
  Pooling pooling = Pooling::mean;
  std::vector<std::string> dense = {};  // a DenseActivation for each linear layer after the pooling
  bool normalize = false;               // divide vectors by their Euclidean norm
  std::vector<std::string> prompt_names = {}, prompts = {};  // texts that may take the place of `prefix`, by name

  bool operator==(const EmbeddingConfig&) const = default;
};

template <class Visitor>
void visit_fields(EmbeddingConfig& c, Visitor&& visit) {
  visit("unit", c.unit, "Kind of token");
  visit("plain_quotes", c.plain_quotes, "Replace two back quotes or apostrophes by a quotation mark");
  visit("strip_accents", c.strip_accents, "Decompose characters (normal form KD) and drop combining marks");
  visit("lowercase", c.lowercase, "Lower-case the text first");
  visit("prefix", c.prefix, "Text prepended to every text");
  visit("start", c.start, "Token before a text");
  visit("end", c.end, "Token after a text");
  visit("unknown", c.unknown, "Token for text that the vocabulary lacks");
  visit("spelled", c.spelled, "Tokens that a text may spell");
  visit("strips_left", c.strips_left, "Those of them that take the spaces before them");
  visit("strips_right", c.strips_right, "Those of them that take the spaces after them");
  visit("max_length", c.max_length, "Tokens per text, at most; 0 is the model's max_length");
  visit("pooling", c.pooling, "How the tokens' hidden states become one vector");
  visit("dense", c.dense, "Activation of each linear layer after the pooling");
  visit("normalize", c.normalize, "Divide vectors by their Euclidean norm");
  visit("prompt_names", c.prompt_names, "Names of the prompts");
  visit("prompts", c.prompts, "Texts that may take the place of the prefix, in the order of prompt_names");
}

// Options that are not set take the values of the run: an encoder has those it was imported with; a translator uses the
// mean of its encoder, a language model the last token, both without prefix and normalization.
struct EmbedOptions {
  std::optional<Pooling> pooling = {};
  std::optional<bool> normalize = {};
  std::optional<std::string> prefix = {};
  std::optional<std::string> prompt_name = {};
  std::optional<int64_t> max_length = {};
  int64_t batch_tokens = 0;

  int64_t first_number = 1;  // number of the first text in errors
  std::optional<int64_t> layer = {};
};

template <class Visitor>
void visit_fields(EmbedOptions& o, Visitor&& visit) {
  visit("pooling", o.pooling,
        {"How token vectors are combined; default: the setting of the run", "model", {}, kCommon});
  visit("normalize", o.normalize,
        {"Divide each vector by its Euclidean norm; default: the setting of the run", "model", {}, kCommon});
  visit("layer", o.layer,
        {"Layer whose hidden states are combined: 0 is the embeddings, -1 the last layer, -2 the one before it; default: "
         "the last layer",
         "model"});
  visit("prefix", o.prefix, {"Text put before every text; default: the setting of the run", "model", {}, kCommon});
  visit("prompt_name", o.prompt_name,
        {"Name of the run's prompt that is put before every text, instead of prefix", "model", {}, kCommon});
  visit("max_length", o.max_length,
        {"Maximum number of tokens of a text, start and end tokens included; longer texts are truncated; default: "
         "the setting of the run",
         "model", between(1, kMaxTokens)});
  visit("batch_tokens", o.batch_tokens,
        {"Maximum number of tokens that the model reads at once; does not change the result; 0 means 256 for each "
         "thread, at least 1024",
         "execution", between(0, kMaxTokens)});
}

// A text in the tokens of an embedder.
struct EmbedderTokens {
  std::vector<int32_t> ids;  // with those around the text, truncated to max_length
  int64_t all = 0;           // tokens before the text was truncated
};

struct Embeddings {
  int64_t width = 0;          // components of a vector
  std::vector<float> values;  // [texts, width]
  int64_t cut = 0;            // number of texts that were truncated to max_length
};

// A model that embeds texts. Thread-safe: methods may be called concurrently.
class Embedder {
 public:
  // Loads the run of an encoder, a translator (its encoder) or a language model. Throws Error, naming the file, if the
  // directory is not a complete and valid run of these kinds, or if the device or the precision is not available.
  explicit Embedder(const std::string& run_directory, const Placement& placement = {});
  ~Embedder();
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;

  int64_t width() const;       // components of a vector: d, or the outputs of the last linear layer
  int64_t max_length() const;  // default length limit of a text, in tokens
  // Returns the names and the texts of the prompts. They come from a model of sentence-transformers.
  std::vector<std::pair<std::string, std::string>> prompts() const;

  // Returns the tokens that embed reads of each text. embed_tokens of these ids, with an empty prefix, returns what
  // embed returns. Throws Error as embed does for options and texts.
  std::vector<EmbedderTokens> tokens(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const;

  // Returns one vector per text, which does not depend on the other texts. Throws Error for options out of range, and,
  // with the number of the text, for text that is not valid UTF-8 or has no tokens, and for a vector that is not
  // finite.
  Embeddings embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const;

  // Embeds texts that are given as tokens of the run's vocabulary. Those of the prefix and those around a text are put
  // around them, unless they are there already. Throws Error as embed does, and for a token that is not in the
  // vocabulary.
  Embeddings embed_tokens(const std::vector<std::vector<int32_t>>& texts, const EmbedOptions& options = {}) const;

  // Returns the attention weights of a text, with those tokens around it: the kind "encoder". Uses the options prefix
  // and prompt_name. The method must be weights, rollout or flow: an encoder predicts no tokens that others could
  // explain. Throws Error if the run is not an encoder, if the text has no tokens or more than the model's max_length, and
  // for an option that the method does not use.
  AttentionMap attend(const std::string& text, const EmbedOptions& options = {},
                      const AttributionOptions& attribution = {}) const;

  // Returns the hidden states of all layers for a text, with the tokens around it. Uses the options prefix and
  // prompt_name. Throws Error as attend does; the run may also be an embedder with a decoder.
  HiddenStates hidden(const std::string& text, const EmbedOptions& options = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
