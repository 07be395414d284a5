// Vectors of texts: what an encoder, or a language model, makes of their tokens, pooled. docs/embed.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/language.h"

namespace qkv {

// How the last hidden states of a text's tokens, those around it among them, become one vector: their mean, or that of
// the first or the last token.
enum class Pooling { mean, first, last };
constexpr std::array<std::string_view, 3> names_of(Pooling) { return {"mean", "first", "last"}; }

// embedding.json of the run of an encoder.
struct EmbeddingConfig {
  TextUnit unit = TextUnit::pieces;
  bool lowercase = false;            // the text, before anything else
  std::string prefix = "";           // text before every text
  std::string start = "", end = "";  // tokens around a text, as the vocabulary spells them; "": none
  std::string unknown = "";          // what is not in a list of pieces; "": an Error
  int64_t max_length = 0;            // tokens of a text, those around it included; 0: the model's max_length
  Pooling pooling = Pooling::mean;
  bool normalize = false;  // vectors are divided by their Euclidean norm

  bool operator==(const EmbeddingConfig&) const = default;
};

template <class Visitor>
void visit_fields(EmbeddingConfig& c, Visitor&& visit) {
  visit("unit", c.unit, "what a token is");
  visit("lowercase", c.lowercase, "lower-case the text first");
  visit("prefix", c.prefix, "text before every text");
  visit("start", c.start, "token before a text");
  visit("end", c.end, "token after a text");
  visit("unknown", c.unknown, "token for what is not in the vocabulary");
  visit("max_length", c.max_length, "tokens of the longest text; 0 is the model's max_length");
  visit("pooling", c.pooling, "how tokens' vectors become one");
  visit("normalize", c.normalize, "vectors are divided by their norm");
}

// What is not given is the run's: of an encoder as it was imported; else the mean of a translator's encoder, the last
// token of a language model, without prefix and norm.
struct EmbedOptions {
  std::optional<Pooling> pooling = {};
  std::optional<bool> normalize = {};
  std::optional<std::string> prefix = {};
  std::optional<int64_t> max_length = {};  // at least one token more than stand around a text; at most the model's
  int64_t batch_tokens = 4096;             // of texts that the model reads at once; changes no result
  int64_t first_number = 1;                // of the first text, for errors
};

struct Embeddings {
  int64_t width = 0;          // d
  std::vector<float> values;  // [texts, d]
  int64_t cut = 0;            // texts that were longer than max_length and lost their ends
};

// A model that reads texts. Methods may be called by many threads at the same time.
class Embedder {
 public:
  // The run of an encoder, of a translator, whose encoder it is, or of a language model. Throws Error, naming the file,
  // if the directory does not hold a whole and sound run of them.
  explicit Embedder(const std::string& run_directory);
  ~Embedder();
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;

  int64_t width() const;       // d
  int64_t max_length() const;  // of a text, in tokens, if nothing else is said

  // The same vector for a text alone and in any company. Throws Error for options out of range, and with the number of
  // the text for one that is not valid UTF-8, that has no tokens, or of which the model makes no numbers.
  Embeddings embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
