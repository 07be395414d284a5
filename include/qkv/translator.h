// Translating with a run directory, trained here or imported, and looking at what it attends to. docs/decoding.md says
// how the search goes and what the scores are.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "qkv/attention_map.h"

namespace qkv {

// A token of a translation, told while the search goes on.
struct TokenReport {
  int64_t line = 0;        // from 0
  int64_t hypothesis = 0;  // number of the sample
  std::string token;       // as the vocabulary spells it
  double log_probability = 0;
  bool last = false;
};

struct TranslateOptions {
  // What is searched for. Scores are ordered by Σ log q / n^α + coverage, with n tokens, the end token among them.
  int64_t beam = 5;               // hypotheses kept a step; 1 is greedy search
  int64_t n_best = 1;             // hypotheses returned: at most beam, or any number of samples
  double length_penalty = 1;      // α; 0 is the plain sum
  double coverage_penalty = 0;    // β of β Σ_j log min(Σ_i a_ij, 1), from the attention chosen below
  int64_t min_length = 0;         // tokens before the end token, if the run does not say more
  int64_t max_length = 0;         // tokens, the end token included; 0: twice the source's and 16
  double repetition_penalty = 1;  // multiplies log p of tokens that were said before
  int64_t no_repeat_ngram = 0;    // no run of so many tokens comes twice; 0: any may
  bool alternatives = false;      // n_best ways to go on from the prefix with different tokens

  // Drawing tokens instead, n_best times: what is drawn depends on the seed and the sentence alone.
  bool sampling = false;
  double temperature = 1;
  int64_t top_k = 0;  // 0: all tokens
  double top_p = 1;
  uint64_t seed = 1;

  // What is returned besides.
  bool alignment = false;        // for each target token the source token with the greatest weight
  bool attention = false;        // the weights themselves
  bool replace_unknown = false;  // unknown words become the source words that they are aligned with
  int64_t attention_layer = 0;   // of the decoder, from 1; 0 is the last
  int64_t attention_head = 1;    // from 1

  // How it is done. None of these changes a translation.
  int64_t batch_tokens = 4096;  // source tokens times beam of what is translated at one time
  int64_t workers = 1;          // batches translated side by side; the threads are shared among them
  int64_t window = 1024;        // lines that are sorted by length at one time

  std::function<void(const std::string&)> on_note;   // one line for each input line that had to be cut
  std::function<void(int64_t)> on_progress;          // lines done since the last call, perhaps 0; now and then
  std::function<bool(const TokenReport&)> on_token;  // greedy search and sampling; true ends that hypothesis. Calls
                                                     // come one at a time, from the threads that translate
};

struct Alignment {
  int32_t source = 0, target = 0;  // tokens, from 0

  bool operator==(const Alignment&) const = default;
};

struct WordScore {
  std::string word;
  double log_probability = 0;
};

struct Hypothesis {
  std::string text;
  std::vector<std::string> tokens;            // as the vocabulary spells them, without start and end
  double score = 0;                           // what hypotheses are ordered by
  double log_probability = 0;                 // the model's own: the sum of token_scores
  std::vector<double> token_scores;           // log p of each token, and of the end token if it was reached
  std::vector<WordScore> words;               // log p summed over each word's tokens
  std::vector<Alignment> alignment;           // by target token
  std::vector<std::vector<float>> attention;  // [target tokens][source tokens]
};

struct Translation {
  std::string source;
  std::vector<std::string> source_tokens;
  std::vector<Hypothesis> hypotheses;  // best first; one at least

  const std::string& text() const { return hypotheses.front().text; }
};

struct SourceLine {
  std::string text;
  std::string prefix;  // what every hypothesis begins with
};

// Gives the next line; Next::later if none has come yet, which it may say only when `wait` is false.
enum class Next { line, later, end };
using LineSource = std::function<Next(SourceLine& line, bool wait)>;

// A model with its tokenisers. Methods may be called by many threads at the same time; each uses all threads inside.
class Translator {
 public:
  // Throws Error, naming the file, if a directory does not hold a whole and sound run. The models of `ensemble` must
  // have the vocabularies of the first; the probability of a token is the mean of theirs.
  explicit Translator(const std::string& run_directory, const std::vector<std::string>& ensemble = {});
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  // Result i translates line i; an empty line gives an empty text. A line beyond the model's length is cut at sentence
  // or clause ends and translated part by part. `prefixes`: none, or one for each line. Throws Error for an option out
  // of range, and for invalid UTF-8 with the line's number.
  std::vector<Translation> translate(const std::vector<std::string>& lines, const TranslateOptions& options = {},
                                     const std::vector<std::string>& prefixes = {}) const;

  // The same, on a thread of its own. The translator must outlive it.
  std::future<std::vector<Translation>> translate_async(std::vector<std::string> lines,
                                                        TranslateOptions options = {}) const;

  // Translates lines as they come: sorted by length inside a window that grows from 32 to options.window, written in
  // order. `read` and `write` are called from this thread. Memory does not grow with the number of lines.
  void translate(const LineSource& read, const std::function<void(Translation&&)>& write,
                 const TranslateOptions& options = {}) const;

  // What the model thinks of targets that are given: one hypothesis for each source, whose token_scores end with that
  // of the end token. Of the options those of attention, length_penalty and batch_tokens count. Throws Error if a pair
  // is beyond the model's length.
  std::vector<Translation> score(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                                 const TranslateOptions& options = {}) const;
  // The same of targets in tokens, as hypotheses have them. Throws Error for one that the vocabulary lacks.
  std::vector<Translation> score_tokens(const std::vector<std::string>& sources,
                                        const std::vector<std::vector<std::string>>& targets,
                                        const TranslateOptions& options = {}) const;

  // The attention weights of the model while it reads `source` and says `target`; the model's own translation where
  // target is empty. Kinds: "encoder" and "decoder" self-attention, and "cross", whose rows are the tokens said. Throws
  // Error if a sentence is empty or beyond the model's length.
  AttentionMap attend(const std::string& source, const std::string& target = "") const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
