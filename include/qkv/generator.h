// Going on from a text with the run directory of a language model (qkv/language.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/attention_map.h"

namespace qkv {

struct GenerateOptions {
  int64_t max_tokens = 256;
  double temperature = 1;              // tokens are drawn from p^(1/temperature); 0: the most probable one each time
  int64_t top_k = 0;                   // of the most probable tokens alone; 0: of all
  double top_p = 1;                    // of the fewest whose probabilities reach it together
  double min_p = 0;                    // of those that are at least so many times as probable as the most probable one
  double repetition_penalty = 1;       // multiplies log p of tokens that stand in the text
  std::vector<std::string> stop = {};  // texts that end it; they are left out
  uint64_t seed = 1;                   // what is drawn depends on it and the prompt alone
  bool slide = true;         // at the model's max_length its older half is forgotten; else the text ends there
  int64_t alternatives = 0;  // the most probable tokens that are told beside each token
  int64_t batch = 8;         // texts of generate_all that grow side by side, at most; changes none of them

  std::function<void(std::string_view)> on_text = {};  // the text as it grows, piece by piece
};

// A token that the model could have said.
struct TokenAlternative {
  std::string text;
  double log_probability = 0;
  bool end = false;  // it would have ended the text
};

struct GeneratedToken {
  std::string text;
  double log_probability = 0;                       // the model's own, whatever changed the draw
  std::vector<TokenAlternative> alternatives = {};  // the most probable first, itself perhaps among them
};

enum class GenerationEnd {
  document,
  stop,
  length,
  context
};  // the model ended it, a stop text, max_tokens, max_length
constexpr std::array<std::string_view, 4> names_of(GenerationEnd) { return {"document", "stop", "length", "context"}; }

struct Generation {
  std::string text;                    // without the prompt
  std::vector<GeneratedToken> tokens;  // all that were generated, those of a stop text too
  GenerationEnd end = GenerationEnd::length;
};

// A line for each token: its probability, the token, and its alternatives with theirs. Spaces are "▁", line breaks "⏎".
std::string tokens_to_text(const Generation& generation);

// Whether the directory is the run of a language model, which may still be a broken one.
bool holds_language_model(const std::string& run_directory);

// A language model. Methods may be called by many threads at the same time.
class Generator {
 public:
  // What the model has read of the last texts is kept in up to `cache_bytes`: a prompt that begins like one of them is
  // read from where it differs. Throws Error, naming the file, if the directory does not hold a whole and sound run of
  // a language model.
  explicit Generator(const std::string& run_directory, int64_t cache_bytes = int64_t{1} << 28);
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // Throws Error for options out of range and for a prompt with characters that the model does not have.
  Generation generate(const std::string& prompt, const GenerateOptions& options = {}) const;

  // What generate gives for each prompt, computed together: prompts that begin alike have their beginning read once.
  // done(i, text) is called in the order of the prompts, for each when it and all before it are complete; on_text tells
  // the texts one after the other, each before its done.
  using Done = std::function<void(size_t prompt, const Generation& text)>;
  std::vector<Generation> generate_all(const std::vector<std::string>& prompts, const GenerateOptions& options = {},
                                       const Done& done = {}) const;

  // What each token looks at while the model reads a text and what it goes on with: up to `more` tokens, as far as its
  // max_length allows, the most probable one each time. One kind, "decoder"; "▁" is a space. Throws Error for a text
  // that is longer than the model takes.
  AttentionMap attend(const std::string& text, int64_t more = 0) const;

 private:
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace qkv
