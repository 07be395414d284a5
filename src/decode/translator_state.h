// The implementation of qkv::Translator: its models and tokenizers, and the translation of parts of lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/arena_pool.h"
#include "core/fail.h"
#include "decode/attend.h"
#include "decode/engine/ensemble.h"
#include "decode/translation_text.h"
#include "io/runs/run.h"
#include "qkv/translator.h"

namespace qkv {

// Sources with given targets, which end with the end token. The inputs refer to parts and targets.
struct ForcedPairs {
  std::vector<LinePart> parts;
  std::vector<std::vector<int32_t>> targets;
  std::vector<ForcedInput> inputs;
};

// The tokens of a source and a target, which is the translation.
struct AttendedPair {
  AttendRequest request;
  std::string translation;
};

struct Translator::State {
  const std::vector<TranslatorRun> runs;
  const Ensemble models;
  const TranslationText text;
  mutable ArenaPool arenas;

  State(const std::string& first, const std::vector<std::string>& others, const Placement& placement);

  // Throws Error for an option out of range.
  void check(const TranslateOptions& options) const;

  // Translates a batch: finds the hypotheses of each part and, if an option needs it, their attention; then those of
  // the clauses of parts whose translation is too short.
  void translate(std::span<LinePart* const> parts, const TranslateOptions& options, std::mutex& on_token_mutex,
                 Arena& arena) const;

  void search(std::span<LinePart* const> parts, const TranslateOptions& options, std::mutex& on_token_mutex,
              Arena& arena) const;

  // Computes the attention of the hypotheses that need it.
  void find_attention(std::span<LinePart* const> parts, const TranslateOptions& options, Arena& arena) const;

  // Returns the spelling of the tokens of a side.
  std::vector<std::string> pieces(std::span<const int32_t> ids, bool of_source) const {
    return (of_source ? text.tokenizers().source : text.tokenizers().target).pieces(ids);
  }

  // Returns the tokens of a target.
  std::vector<int32_t> target_ids(const Target& target) const;

  // Throws Error, naming the text, if it has more tokens than the model reads.
  void check_whole(const char* name, size_t length) const;
  // Returns the tokens of a source. Throws Error, naming it, if it is empty or too long.
  std::vector<int32_t> whole_source(const char* name, const std::string& source, const SentenceEdges& edges) const;
  // Returns the tokens of a part of a target. Throws Error, naming it, if it has none but is not empty.
  std::vector<int32_t> target_tokens(const char* name, const std::string& target) const;

  // Returns the tokens of a source and a target; of an empty one, those of the translation by `translator`, whose state
  // this is. Throws Error as Translator::attend does.
  AttendedPair attended_pair(const Translator& translator, const std::string& source, const std::string& target,
                             const TranslateOptions& options) const;

  // Throws Error for an option out of range, for a source that is empty or too long, and for a target that is too long,
  // and unless there is one target for each source.
  ForcedPairs forced_pairs(const std::vector<std::string>& sources, const std::vector<Target>& targets,
                           const TranslateOptions& options) const;
};

// Returns the input of the search for a part.
inline SearchInput input_of(const LinePart& part) {
  return {part.source, part.prefix, part.edges.start, part.terms.get()};
}

// Reports a token of a part. Returns whether the hypothesis ends; if it is the only one, the line ends with it.
template <class OnToken>
bool report_token(const TokenEvent& event, LinePart& part, const Tokenizer& tokens, bool is_only,
                  const OnToken& on_token) {
  const bool ends = on_token(TokenReport{part.line, event.hypothesis, tokens.piece(event.token), event.log_probability,
                                         event.last && part.is_last});
  part.is_stopped = ends && is_only;
  return ends;
}

// Returns the number of hypotheses of a sentence that a batch has side by side.
inline int64_t hypotheses_at_once(const TranslateOptions& options) {
  return options.sampling || options.alternatives ? std::max(options.n_best, options.beam) : options.beam;
}

// Calls the callbacks for a translation that is complete. line: its number, from 0.
inline void report_translation(const Translation& translation, int64_t line, const TranslateOptions& options) {
  for (const std::string& note : translation.notes)
    if (options.on_note) options.on_note(note);
  for (const SentencePair& sentence : translation.hypotheses.front().untranslated)
    if (options.on_untranslated) options.on_untranslated(line, sentence);
}

// Returns the translations of lines by a function that translates a stream of them: stream(read, write). Throws Error
// unless there are no prefixes or one for each line.
template <class Stream>
std::vector<Translation> translate_all(const std::vector<std::string>& lines, const std::vector<std::string>& prefixes,
                                       const Stream& stream) {
  if (!prefixes.empty() && prefixes.size() != lines.size())
    fail("prefixes must be one for each of {} lines (are {})", lines.size(), prefixes.size());
  std::vector<Translation> translations;
  size_t next = 0;
  const auto read = [&](SourceLine& line, bool) {
    if (next == lines.size()) return Next::end;
    line = {lines[next], prefixes.empty() ? "" : prefixes[next]};
    next++;
    return Next::line;
  };
  stream(read, [&](Translation&& t) { translations.push_back(std::move(t)); });
  return translations;
}

}  // namespace qkv
