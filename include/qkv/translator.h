// Translation with a run directory, trained here or imported, and its attention weights. docs/decoding.md describes the
// search and the scores.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "qkv/attention_map.h"
#include "qkv/beam_trace.h"
#include "qkv/decoding.h"
#include "qkv/hidden_states.h"
#include "qkv/logit_lens.h"
#include "qkv/patching.h"
#include "qkv/placement.h"

namespace [[gnu::visibility("default")]] qkv {

// A token of a translation, reported during decoding.
struct TokenReport {
  int64_t line = 0;        // from 0
  int64_t hypothesis = 0;  // number of the sample, from 0
  std::string token;       // as spelled in the vocabulary
  double log_probability = 0;
  bool last = false;  // whether it is the last token of the line's last sentence
};

// A sentence of a text and its translation, without the white space around them.
struct SentencePair {
  std::string source, text;

  bool operator==(const SentencePair&) const = default;
};

// The options of the group "execution" do not change a translation.
struct TranslateOptions : DecodingOptions {
  std::string source_language = "";
  std::string target_language = "";
  std::string source_prefix = "";
  Sentences sentences = Sentences::automatic;
  ProtectedParts protected_parts = ProtectedParts::automatic;
  std::string protect = "";
  std::string glossary = "";
  bool alternatives = false;
  bool alignment = false;
  bool attention = false;
  bool replace_unknown = false;
  int64_t attention_layer = 0;
  int64_t attention_head = 1;
  int64_t batch_tokens = 4096;
  int64_t workers = 0;
  int64_t window = 1024;

  // Called with each of Translation::notes before the translation is complete, in the order of the lines.
  std::function<void(const std::string&)> on_note = {};
  // Called with the number of the line, from 0, for each sentence of Hypothesis::untranslated of the best hypothesis,
  // in the order of the lines.
  std::function<void(int64_t, const SentencePair&)> on_untranslated = {};
  // Called from time to time with the number of lines completed since the last call, perhaps 0.
  std::function<void(int64_t)> on_progress = {};
  // Called for each token; true ends the hypothesis and, if n_best is 1, the line. Requires greedy search or sampling.
  // Calls are serialized, but come from the threads that translate. The sentences of a line follow each other. No part
  // is protected then, and there can be no glossary.
  std::function<bool(const TokenReport&)> on_token = {};
};

template <class Visitor>
void visit_fields(TranslateOptions& o, Visitor&& visit) {
  visit("source_language", o.source_language,
        {"Language of the source, for a model with several: its code, such as en", "languages", {}, kCommon});
  visit("target_language", o.target_language,
        {"Language of the translation, for a model with several: its code, such as de", "languages", {}, kCommon});
  visit("source_prefix", o.source_prefix,
        {"Text to put before each source, for a model of several tasks, such as \"summarize: \"; at most 1024 bytes",
         "search"});
  visit("sentences", o.sentences,
        {"auto translates each sentence of a line by itself and keeps the white space between them; line translates "
         "each line as a whole. Lines with a prefix or alternatives are translated as a whole",
         "search", {}, kCommon});
  visit("protected_parts", o.protected_parts,
        {"auto keeps addresses, placeholders such as {name} and %s, code, file names, and numbers with units or "
         "separators as they are; none translates them like words. Lines with a prefix protect nothing",
         "terms", {}, kCommon});
  visit("protect", o.protect, {"Keep what matches this regular expression as it is, too", "terms", {}, kCommon});
  visit("glossary", o.glossary,
        {"Terms that translations must have: lines of a source term, a tab and its translation, or several, separated "
         "by |",
         "terms", {}, kCommon});
  visit_fields(static_cast<DecodingOptions&>(o), visit);
  visit("alternatives", o.alternatives,
        {"Return n_best continuations of the prefix, each with a different first token", "search"});
  visit("alignment", o.alignment,
        {"Return for each target token the source token with the largest attention weight", "output"});
  visit("attention", o.attention, {"Return the attention weights of each target token", "output"});
  visit("replace_unknown", o.replace_unknown,
        {"Replace each unknown word by the source word that it is aligned with", "output"});
  visit("attention_layer", o.attention_layer,
        {"Decoder layer that attention and alignment are taken from, counted from 1; 0 is the last", "output",
         at_least(0)});
  visit("attention_head", o.attention_head,
        {"Head that attention and alignment are taken from, counted from 1", "output", at_least(1)});
  visit("batch_tokens", o.batch_tokens,
        {"Maximum batch size: source tokens times beam, or times n_best when sampling; does not change the result",
         "execution", between(1, kMaxTokens)});
  visit("workers", o.workers,
        {"Number of batches translated in parallel, which share the threads; 0 chooses one per thread, at most 16; "
         "does not change the result",
         "execution", between(0, 1024)});
  visit("window", o.window,
        {"Maximum number of lines read ahead and sorted by length; does not change the result", "execution",
         between(1, kMaxTokens)});
}

// Returns the default options, with the values of the run's decoding.json where it has some: import takes them over
// from the generation_config.json of a model (docs/import.md). Options that a caller sets replace them. Throws Error,
// naming file and field, if the file is damaged.
TranslateOptions default_translate_options(const std::string& run_directory);

// Returns the default options for summaries of whole texts: those above, with the values of the run's summary.json,
// which import writes for models that were published with settings for summaries. Throws Error, naming the run, unless
// it is a translator that reads whole texts (`sentences` is line).
TranslateOptions default_summary_options(const std::string& run_directory);

// Returns the text of a file of terms, for TranslateOptions::glossary. The file may be compressed. Throws Error, naming
// the file and the line, if it is no glossary: docs/decoding.md has the format.
std::string read_glossary(const std::string& path);
// Returns the text of a glossary of source terms, each with its translation. A term with several translations is given
// several times; those given first are preferred. Throws Error, naming the entry by its number from 1, for a term that
// is empty or has a tab or a line end.
std::string glossary_text(const std::vector<std::pair<std::string, std::string>>& entries);

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
  std::vector<std::string> tokens;            // as spelled in the vocabulary, without start and final end
  double score = 0;                           // the order of hypotheses; higher is better
  double log_probability = 0;                 // of the model, without penalties: the sum of token_scores
  std::vector<double> token_scores;           // log p of each token, and of the final end token if it was reached
  std::vector<WordScore> words;               // log p summed over the tokens of each word
  std::vector<Alignment> alignment;           // one for each target token
  std::vector<std::vector<float>> attention;  // [target tokens][source tokens]
  std::vector<SentencePair> sentences;        // of a line with more than one; those after an early end have empty texts
  std::vector<std::string> missing_terms;     // terms of the glossary in the source whose translations it lacks
  std::vector<SentencePair> untranslated;     // whose translations are so short that parts are probably missing
};

struct Translation {
  std::string source;
  std::vector<std::string> source_tokens;
  std::vector<Hypothesis> hypotheses;  // best first, never empty
  std::vector<std::string> notes = {};  // on sentences that were split or look untranslated, and on missing terms
  std::vector<std::string> pivot = {};  // of a chain of models (qkv/pivot.h): the texts in between, in order
  std::string source_prefix = {};       // before the source, whose tokens have it, too

  const std::string& text() const { return hypotheses.front().text; }
};

// A given target: a text, or its tokens, spelled as in Hypothesis::tokens.
using Target = std::variant<std::string, std::vector<std::string>>;

// Rows of numbers for the tokens of several texts, one text after the other.
struct TokenRows {
  int64_t width = 0;
  std::vector<int64_t> offsets = {0};  // text t has the rows offsets[t] … offsets[t + 1] − 1
  std::vector<float> values;           // [rows, width]
};

struct SourceLine {
  std::string text;
  std::string prefix = "";                                 // the beginning of every hypothesis
  std::string source_language = "", target_language = "";  // of this line; "": those of the options
  std::string name = "";                                   // in errors and notes; "": "line" with its number
  // Parts of the text to protect, each as often as it is listed; occurrences that the options protect count.
  std::vector<std::string> keep = {};
};

// Reads the next line. Returns Next::later if none is available yet, which is allowed only if `wait` is false.
enum class Next { line, later, end };
using LineSource = std::function<Next(SourceLine& line, bool wait)>;

// A model with its tokenizers. Methods are thread-safe; each call uses the thread pool internally.
class Translator {
 public:
  // Loads a run directory, and those of `ensemble`, which must have the same vocabularies: the probability of a token
  // is the mean over all models. Throws Error, naming the file, if a run is incomplete or damaged, or if the device or
  // the precision is not available.
  explicit Translator(const std::string& run_directory, const std::vector<std::string>& ensemble = {},
                      const Placement& placement = {});
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  // Returns the codes of the languages of a model with several, in no particular order; none for other models.
  std::vector<std::string> languages() const;

  // Sets the languages of options as far as the model reads them: one with several may read only that of the target.
  void set_languages(TranslateOptions& options, const std::string& source, const std::string& target) const;

  // Returns the tokens of a text as spelled in the source vocabulary, without those around it, and the token for text
  // that the vocabulary lacks ("": none). tokenize throws Error for invalid UTF-8.
  std::vector<std::string> tokenize(const std::string& text) const;
  std::string unknown_token() const;

  // Translates lines; result i belongs to line i, which may be a text of several lines. Each sentence is translated by
  // itself, unless options.sentences says otherwise, and the white space around it stays. A sentence longer than those
  // that the model was trained on, or than its max_length, is split at the ends of clauses; so is one whose translation
  // is much shorter than those of the training text. Tokens, scores, alignment and attention are those of the
  // sentences, one after the other, with the end tokens between them, and hypothesis k has hypothesis k of each. A
  // protected part is not translated; it is a token of log-probability 0 of both sides, aligned with itself. An empty
  // line gives an empty text. `prefixes`: empty, or one for each line. Throws Error for an option out of range, and for
  // invalid UTF-8 with the number of the line.
  std::vector<Translation> translate(const std::vector<std::string>& lines, const TranslateOptions& options = {},
                                     const std::vector<std::string>& prefixes = {}) const;

  // Translates on a new thread. The translator must outlive the future.
  std::future<std::vector<Translation>> translate_async(std::vector<std::string> lines,
                                                        TranslateOptions options = {}) const;

  // Translates a stream of lines. Lines are sorted by length within a window that grows from 32 to options.window, and
  // written in the order of the input. `read` and `write` are called from the calling thread. Memory does not grow with
  // the number of lines.
  void translate(const LineSource& read, const std::function<void(Translation&&)>& write,
                 const TranslateOptions& options = {}) const;

  // Scores given targets (forced decoding): one hypothesis for each source, whose token_scores end with the score of
  // the end token. Uses the options length_penalty, batch_tokens and those of attention and alignment. Throws Error if
  // a source or target is longer than the model's max_length, and for a token that is not in the vocabulary.
  std::vector<Translation> score(const std::vector<std::string>& sources, const std::vector<Target>& targets,
                                 const TranslateOptions& options = {}) const;

  // Returns the encoder's output, one row per token as in Translation::source_tokens; width: d. An ensemble returns
  // that of its first model. Uses the options for languages and batch_tokens. Throws Error if a text is empty or longer
  // than the model's max_length.
  TokenRows encode(const std::vector<std::string>& texts, const TranslateOptions& options = {}) const;

  // Returns the logits of all tokens of the vocabulary, one row per token of the target and one for the end token;
  // width: V. The log-softmax of row i has the score that `score` returns for token i. An ensemble returns the log of
  // the mean probability. Uses the options for languages and batch_tokens. Throws Error as score does.
  TokenRows logits(const std::vector<std::string>& sources, const std::vector<Target>& targets,
                   const TranslateOptions& options = {}) const;

  // Returns all attention weights for `source` and `target`, or the model's own translation if target is empty. Kinds:
  // "encoder" and "decoder" self-attention, and "cross", whose rows are target tokens. Uses the options for languages,
  // source_prefix and, if target is empty, all of translate (those of the run: default_translate_options). With another
  // `attribution.method`, the map has what AttentionMethod describes instead of weights; gradients have no kind
  // "encoder". Throws Error if a sentence is empty or longer than the model's max_length, and for an option that the
  // method does not use.
  AttentionMap attend(const std::string& source, const std::string& target = "", const TranslateOptions& options = {},
                      const AttributionOptions& attribution = {}) const;

  // Returns the hidden states of all layers for `source` and `target`, or the model's own translation if target is
  // empty. An ensemble returns those of its first model. Options and errors are those of attend.
  TranslationStates hidden(const std::string& source, const std::string& target = "",
                           const TranslateOptions& options = {}) const;

  // Returns what the decoder would predict after each layer, at each token of a translation. Arguments and errors are
  // those of hidden.
  LogitLens lens(const std::string& source, const std::string& target = "",
                 const TranslateOptions& options = {}) const;

  // Returns the steps of the beam search of one source, which is not split into sentences. Throws Error for a source that
  // is empty or too long, and for options that are out of range or sample.
  BeamTrace trace(const std::string& source, const TranslateOptions& options = {}) const;

  // Returns how much of the answer to the source `clean` each part of the encoder or the decoder carries, if its output
  // replaces that in a pass over the source `corrupted`, which must have as many tokens. The answer is the token after
  // the start token and the option prefix. Throws Error for a source that is empty or too long, for sources of different
  // lengths, and for those with the same score.
  Patching patch(const std::string& clean, const std::string& corrupted, const PatchOptions& patch = {},
                 const TranslateOptions& options = {}) const;

 private:
  friend class TranslationLoop;
  friend class PivotTranslator;
  friend class PivotSteps;
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace qkv
