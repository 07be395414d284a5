// The result of a chain: scores are sums, and alignments are composed through the text in between.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/to_size.h"
#include "decode/pivot/pivot_steps.h"
#include "text/alignment/aligned_units.h"
#include "text/text_sentences.h"

namespace qkv {
namespace {

// ---- Alignment

// Returns for each token that the next model reads the token of the model before whose place in the text has most of
// its bytes. A token without text, such as the end of a sentence or one of a source prefix, belongs to the token before
// the next text.
std::vector<size_t> same_tokens(const std::vector<std::string>& written, const Translation& next_model) {
  const std::vector<TokenPlace> before = token_places(next_model.source, written),
                                next = places_in_source(next_model.source_prefix, next_model.source,
                                                        next_model.source_tokens);
  std::vector<size_t> same;
  size_t first = 0;  // of the tokens before that reaches to this one
  for (const TokenPlace& place : next) {
    while (first + 1 < before.size() && before[first].end <= place.begin) first++;
    size_t best = first, most = 0;
    for (size_t b = first; b < before.size() && before[b].begin < place.end; b++) {
      const size_t end = std::min(before[b].end, place.end), begin = std::max(before[b].begin, place.begin);
      if (end > begin && end - begin > most) best = b, most = end - begin;
    }
    same.push_back(best);
  }
  return same;
}

// Returns for each token that the last model reads the source token of the first text that belongs to it, if any; empty
// without alignments.
std::vector<std::optional<int32_t>> first_sources(const Hypothesis& before, const Translation& last) {
  const auto is_aligned = [](const Hypothesis& h) { return !h.alignment.empty(); };
  std::vector<std::optional<int32_t>> sources;
  if (!is_aligned(before) || std::ranges::none_of(last.hypotheses, is_aligned)) return sources;
  std::vector<std::optional<int32_t>> source_of(before.tokens.size());
  for (const Alignment& pair : before.alignment)
    if (to_size(pair.target) < source_of.size()) source_of[to_size(pair.target)] = pair.source;
  for (const size_t token : same_tokens(before.tokens, last))
    sources.push_back(token < source_of.size() ? source_of[token] : std::nullopt);
  return sources;
}

// Returns the pairs of a source token of the first text and a target token that have a token in between in common.
std::vector<Alignment> composed(const std::vector<std::optional<int32_t>>& sources,
                                const std::vector<Alignment>& alignment) {
  std::vector<Alignment> pairs;
  for (const Alignment& pair : alignment)
    if (to_size(pair.source) < sources.size() && sources[to_size(pair.source)])
      pairs.push_back({*sources[to_size(pair.source)], pair.target});
  return pairs;
}

// ---- Sentences

// Returns the sentences of the first text with those of the last: each translation in between is one sentence of the
// next model, or several. None if a sentence of the next model is not within one of them.
std::vector<SentencePair> joined_sentences(const std::vector<SentencePair>& before,
                                           const std::vector<SentencePair>& last, std::string_view text) {
  if (last.empty()) return {};
  std::vector<SentencePair> joined;
  size_t at = 0, next = 0;  // byte of the text in between; sentence of the last model
  for (const SentencePair& sentence : before) {
    const size_t begin = text.find(sentence.text, at);
    if (begin == text.npos) return {};
    const size_t end = begin + sentence.text.size();
    at = begin;
    joined.push_back({sentence.source, ""});
    while (next < last.size()) {
      const size_t found = text.find(last[next].source, at);
      if (found == text.npos || (found < end && found + last[next].source.size() > end)) return {};
      if (found >= end) break;
      append_sentence(joined.back().text, text.substr(at, found - at), last[next].text);
      at = found + last[next++].source.size();
    }
    at = end;
  }
  return next == last.size() ? joined : std::vector<SentencePair>();
}

}  // namespace

Translation joined_steps(Translation before, Translation last) {
  const Hypothesis& first = before.hypotheses.front();
  const std::vector<std::optional<int32_t>> sources = first_sources(first, last);
  for (Hypothesis& h : last.hypotheses) {
    h.score += first.score;
    h.log_probability += first.log_probability;
    h.alignment = composed(sources, h.alignment);
    h.sentences = joined_sentences(first.sentences, h.sentences, last.source);
    h.missing_terms.insert(h.missing_terms.begin(), first.missing_terms.begin(), first.missing_terms.end());
    h.untranslated.insert(h.untranslated.begin(), first.untranslated.begin(), first.untranslated.end());
  }
  before.pivot.push_back(std::move(last.source));
  before.hypotheses = std::move(last.hypotheses);
  before.notes.insert(before.notes.end(), last.notes.begin(), last.notes.end());
  return before;
}

}  // namespace qkv
