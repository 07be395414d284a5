#include "analysis/heads/word_agreement.h"

#include <algorithm>
#include <map>

#include "core/to_size.h"
#include "text/alignment/aligned_units.h"

namespace qkv {
namespace {

// Returns the tokens of each word. shift: is subtracted from their numbers; those below 0 are left out.
std::vector<std::vector<int32_t>> tokens_of_words(const TextSide& side, const std::vector<WordPlace>& words,
                                                  int64_t shift) {
  const std::vector<TokenPlace> places = places_in_source(side.prefix, side.text, pieces_of(side.tokens));
  std::vector<std::vector<int32_t>> tokens(words.size());
  for (size_t t = 0; t < places.size(); t++) {
    if (places[t].is_empty() || side.tokens[t].is_special || static_cast<int64_t>(t) < shift) continue;
    for (size_t w = 0; w < words.size(); w++)
      if (places[t].begin < words[w].end && words[w].begin < places[t].end)
        tokens[w].push_back(static_cast<int32_t>(static_cast<int64_t>(t) - shift));
  }
  return tokens;
}

}  // namespace

WordAgreements::WordAgreements(const HeadTexts& texts, const std::vector<WordLinks>& alignments,
                               const std::vector<WordLinks>& trees, const std::vector<WordLinks>& target_trees)
    : pairs_(3, std::vector<TextPairs>(texts.texts.size())) {
  const AttentionPart of_trees = texts.config().has_encoder() ? AttentionPart::encoder : AttentionPart::decoder;
  for (size_t t = 0; t < texts.texts.size(); t++) {
    if (!alignments.empty()) add_links({AttentionPart::cross, texts.texts[t]}, t, alignments[t]);
    if (!trees.empty()) add_links({of_trees, texts.texts[t]}, t, trees[t]);
    if (!target_trees.empty()) add_links({AttentionPart::decoder, texts.texts[t]}, t, target_trees[t]);
  }
  set_baselines();
}

size_t WordAgreements::measure_of(AttentionPart part, const std::string& relation, const std::string& direction) {
  const auto found = std::ranges::find_if(measures_, [&](const Measure& m) {
    return m.part == part && m.values.relation == relation && m.values.direction == direction;
  });
  if (found == measures_.end()) {
    measures_.push_back({part, {relation, direction}});
    return measures_.size() - 1;
  }
  return static_cast<size_t>(found - measures_.begin());
}

void WordAgreements::add_links(const AttentionAxes& axes, size_t text, const WordLinks& links) {
  TextPairs& pairs = pairs_[to_size(axes.part)][text];
  // In cross-attention a row predicts the target token after the one that it reads.
  pairs.rows = tokens_of_words(axes.rows(), links.rows, axes.is_self() ? 0 : 1);
  pairs.columns = tokens_of_words(axes.columns(), links.columns, 0);
  const auto add = [&](const std::string& relation, const char* direction, int32_t row, std::vector<int32_t> right) {
    std::erase_if(right, [&](int32_t word) { return !is_candidate(pairs, axes.part, row, word); });
    if (pairs.rows[to_size(row)].empty() || right.empty()) return;
    pairs.pairs.push_back({measure_of(axes.part, relation, direction), row, std::move(right)});
  };
  for (const WordLink& link : links.links) {
    if (!axes.is_self()) {
      add(link.relation, "target to source", link.from, link.to);
      continue;
    }
    add(link.relation, "dependent to head", link.from, link.to);
    for (const int32_t head : link.to) add(link.relation, "head to dependent", head, {link.from});
  }
  std::ranges::stable_sort(pairs.pairs, {}, &Pair::row);
}

void WordAgreements::set_baselines() {
  std::vector<std::map<int64_t, int64_t>> offsets(measures_.size());  // pairs of each offset
  for (const auto& of_part : pairs_)
    for (const TextPairs& text : of_part)
      for (const Pair& pair : text.pairs) {
        measures_[pair.measure].values.pairs++;
        for (const int32_t word : pair.right) offsets[pair.measure][word - pair.row]++;
      }
  for (size_t m = 0; m < measures_.size(); m++) {
    WordAgreement& values = measures_[m].values;
    const auto best = std::ranges::max_element(offsets[m], {}, [](const auto& entry) { return entry.second; });
    values.offset = best->first;
    values.baseline = static_cast<double>(best->second) / static_cast<double>(values.pairs);
  }
}

bool WordAgreements::is_candidate(const TextPairs& pairs, AttentionPart part, int32_t row, int32_t word) {
  if (pairs.columns[to_size(word)].empty()) return false;
  if (part == AttentionPart::cross) return true;
  return part == AttentionPart::decoder ? word < row : word != row;
}

int32_t WordAgreements::most_attended(const TextPairs& pairs, AttentionPart part, int32_t row, Matrix<const float> A) {
  int32_t best = -1;
  double most = -1;
  for (int32_t word = 0; std::cmp_less(word, pairs.columns.size()); word++) {
    if (!is_candidate(pairs, part, row, word)) continue;
    double sum = 0;
    for (const int32_t i : pairs.rows[to_size(row)])
      for (const int32_t j : pairs.columns[to_size(word)]) sum += static_cast<double>(A(i, j));
    if (sum > most) most = sum, best = word;
  }
  return best;
}

void WordAgreements::count(AttentionPart part, size_t text, Matrix<const float> A, std::span<int64_t> hits) const {
  const TextPairs& pairs = pairs_[to_size(part)][text];
  int32_t row = -1, attended = -1;
  for (const Pair& pair : pairs.pairs) {
    if (pair.row != row) attended = most_attended(pairs, part, row = pair.row, A);
    hits[pair.measure] += std::ranges::find(pair.right, attended) != pair.right.end();
  }
}

std::vector<WordAgreement> WordAgreements::of_part(AttentionPart part, std::span<const int64_t> hits) const {
  std::vector<WordAgreement> values;
  for (size_t m = 0; m < measures_.size(); m++) {
    if (measures_[m].part != part) continue;
    values.push_back(measures_[m].values);
    values.back().share = static_cast<double>(hits[m]) / static_cast<double>(values.back().pairs);
  }
  return values;
}

}  // namespace qkv
