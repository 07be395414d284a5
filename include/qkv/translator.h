// Translating with a trained run directory, and looking at what it attends to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qkv/attention_map.h"

namespace qkv {

struct TranslateOptions {
  int64_t beam = 5;                                 // 1 is greedy search
  double length_penalty = 1;                        // α in Σ log p / tokens^α
  int64_t batch_tokens = 4096;                      // source tokens times beam of what is translated at one time
  std::function<void(const std::string&)> on_note;  // one line for each input line that had to be cut
  std::function<void(int64_t)> on_progress;         // after every batch: sentences done in it
};

// A model with its tokenisers. All methods may be called by one thread at a time; they use all threads inside.
class Translator {
 public:
  // Throws Error, naming the file, if the directory does not hold a whole and sound run.
  explicit Translator(const std::string& run_directory);
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  // Line i of the result translates line i; an empty line gives an empty line. A line beyond the model's length is cut
  // at sentence or clause ends and translated part by part. Throws Error for invalid UTF-8.
  std::vector<std::string> translate(const std::vector<std::string>& lines, const TranslateOptions& options = {}) const;

  // The attention weights of the model while it reads `source` and says `target`; the model's own translation where
  // target is empty. Kinds: "encoder" and "decoder" self-attention, and "cross", whose rows are the tokens said. Throws
  // Error if a sentence is empty or beyond the model's length.
  AttentionMap attend(const std::string& source, const std::string& target = "") const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
