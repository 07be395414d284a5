#include "text/tokenizer_json/pipeline.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr char kBehindLeft = '\xFE', kBehindRight = '\xFF';

// Builds a part of the pipeline from its JSON.
template <class Part>
Part part_of(const std::string& text, const std::string& where) {
  if (text.empty()) return Part(nullptr, where);
  const nlohmann::json value = parse_json(text, where);
  return Part(&value, where);
}

}  // namespace

void add_pair(std::string_view left, std::string_view right, std::string& merges) {
  merges.append(left).append(1, kBehindLeft).append(right).append(1, kBehindRight);
}

std::vector<std::pair<std::string_view, std::string_view>> pairs_of(std::string_view merges) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  while (!merges.empty()) {
    const size_t left = merges.find(kBehindLeft), right = merges.find(kBehindRight);
    pairs.emplace_back(merges.substr(0, left), merges.substr(left + 1, right - left - 1));
    merges.remove_prefix(right + 1);
  }
  return pairs;
}

Pipeline::Model Pipeline::model_of(const PipelineSpec& spec, const Vocabulary& vocabulary, int32_t pieces,
                                   const std::string& where) {
  const std::span<const std::string> own = std::span(vocabulary.pieces()).first(to_size(pieces));
  if (const auto* pairs = std::get_if<PairsModel>(&spec.model))
    return CharacterPairs(vocabulary, pieces, pairs_of(pairs->merges), pairs->options, where);
  if (const auto* unigram = std::get_if<UnigramModel>(&spec.model)) {
    if (unigram->scores.size() != own.size())
      fail("{}: the model must have {} scores, one for each piece (has {})", where, own.size(), unigram->scores.size());
    return Unigram(own, unigram->scores, unigram->unknown, unigram->byte_fallback, where);
  }
  if (const auto* longest = std::get_if<LongestModel>(&spec.model))
    return WordPieces(own, longest->unknown, longest->continuation, longest->max_characters, where);
  const std::string& unknown = std::get<WholeWordsModel>(spec.model).unknown;
  return WholeWords{vocabulary, pieces, vocabulary.id(unknown)};
}

Pipeline::Pipeline(const PipelineSpec& spec, const Vocabulary& vocabulary, int32_t pieces, const std::string& where)
    : normalizer_(part_of<Normalizer>(spec.normalizer, where + ": normalizer")),
      pre_tokenizer_(part_of<PreTokenizer>(spec.pre_tokenizer, where + ": pre_tokenizer")),
      decoder_(part_of<PieceDecoder>(spec.decoder, where + ": decoder")),
      model_(model_of(spec, vocabulary, pieces, where)) {}

void Pipeline::encode(std::string_view text, bool first, std::vector<int32_t>& ids) const {
  const Words words = pre_tokenizer_.apply(text, first);
  std::visit(
      [&](const auto& model) {
        for (const Words::Word& word : words.words) model.encode(word.text, ids);
      },
      model_);
}

void Pipeline::WholeWords::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const auto id = vocabulary.id(word);
  if (id && *id < pieces)
    ids.push_back(*id);
  else if (unknown)
    ids.push_back(*unknown);
  else
    fail("tokenizer: {} is not in the vocabulary, which has no unknown token", excerpt(word));
}

}  // namespace qkv
