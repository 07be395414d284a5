// Going on from a text with the run directory of a language model (qkv/language.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  bool slide = true;  // at the model's max_length its older half is forgotten; else the text ends there

  std::function<void(std::string_view)> on_text = {};  // the text as it grows, piece by piece
};

struct GeneratedToken {
  std::string text;
  double log_probability = 0;  // the model's own, whatever changed the draw
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

// A language model. Methods may be called by many threads at the same time.
class Generator {
 public:
  // Throws Error, naming the file, if the directory does not hold a whole and sound run of a language model.
  explicit Generator(const std::string& run_directory);
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // Throws Error for options out of range and for a prompt with characters that the model does not have.
  Generation generate(const std::string& prompt, const GenerateOptions& options = {}) const;

 private:
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace qkv
