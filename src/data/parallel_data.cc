#include "data/parallel_data.h"

#include <algorithm>

#include "core/fail.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 32;  // pairs that a thread tokenizes at once

void append_text(const std::vector<int32_t>& ids, std::vector<int32_t>& to) {
  to.push_back(static_cast<int32_t>(ids.size()));
  to.insert(to.end(), ids.begin(), ids.end());
}

// Removes a text from the front of a side of a TokenizedText.
std::span<const int32_t> take_text(std::span<const int32_t>& side) {
  const std::span<const int32_t> text = side.subspan(1, to_size(side.front()));
  side = side.subspan(1 + text.size());
  return text;
}

// Returns the number of texts of a side, each of at most `longest` tokens of a vocabulary of `size`.
int64_t check_side(std::span<const int32_t> side, int64_t longest, int64_t size) {
  int64_t texts = 0;
  for (; !side.empty(); texts++) {
    const int32_t length = side.front();
    if (length < 1 || length > longest || length >= std::ssize(side))
      fail("sent a text of {} tokens; must be between 1 and {}", length, std::min(longest, std::ssize(side) - 1));
    for (const int32_t id : take_text(side))
      if (id < 0 || id >= size) fail("sent the token {}; must be between 0 and {}", id, size - 1);
  }
  return texts;
}

}  // namespace

void ParallelData::Side::append(std::span<const int32_t> before, std::span<const int32_t> text,
                                std::span<const int32_t> after) {
  for (const auto& part : {before, text, after}) ids.insert(ids.end(), part.begin(), part.end());
  offsets.push_back(static_cast<int64_t>(ids.size()));
}

ParallelData::ParallelData(const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                           const std::optional<PairTokens>& tokens)
    : source_{source, {}},
      target_{target, {}},
      tokens_(tokens ? *tokens : PairTokens::of(source, target)),
      max_length_(max_length) {
  if (max_length < 2) fail("parallel data: max_length must be at least 2 (is {})", max_length);
}

std::vector<ParallelData::EncodedPair> ParallelData::encode(const ParallelText& text) const {
  if (text.source.size() != text.target.size())
    fail("parallel data: source and target must have the same number of lines (have {} and {})", text.source.size(),
         text.target.size());
  const Tokenizer &source = source_.tokenizer, &target = target_.tokenizer;
  std::vector<EncodedPair> pairs(text.source.size());
  parallel_for_throwing((text.size() + kBlock - 1) / kBlock, [&](int64_t block) {
    const size_t begin = to_size(block * kBlock), end = std::min(pairs.size(), begin + kBlock);
    for (size_t i = begin; i < end; i++) pairs[i] = {source.encode(text.source[i]), target.encode(text.target[i])};
  });
  return pairs;
}

ParallelData::Use ParallelData::use_of(const EncodedPair& pair) const {
  if (pair.source.empty() || pair.target.empty()) return Use::empty;
  const bool too_long = std::ssize(pair.source) + source_around() > max_length_ ||
                        std::ssize(pair.target) + target_around() > max_length_;
  return too_long ? Use::too_long : Use::usable;
}

TokenizedText ParallelData::tokenize(const ParallelText& text) const {
  TokenizedText tokenized;
  for (const EncodedPair& pair : encode(text)) switch (use_of(pair)) {
      case Use::empty:
        tokenized.skipped.empty++;
        break;
      case Use::too_long:
        tokenized.skipped.too_long++;
        break;
      case Use::usable:
        append_text(pair.source, tokenized.source);
        append_text(pair.target, tokenized.target);
        break;
    }
  return tokenized;
}

std::vector<int64_t> ParallelData::usable(const ParallelText& text) const {
  const std::vector<EncodedPair> pairs = encode(text);
  std::vector<int64_t> indices;
  for (size_t i = 0; i < pairs.size(); i++)
    if (use_of(pairs[i]) == Use::usable) indices.push_back(static_cast<int64_t>(i));
  return indices;
}

void ParallelData::check(const TokenizedText& text, int64_t pairs) const {
  const int64_t sources = check_side(text.source, max_length_ - source_around(), source_.tokenizer.size()),
                targets = check_side(text.target, max_length_ - target_around(), target_.tokenizer.size());
  const auto [empty, too_long] = text.skipped;
  if (sources != targets || empty < 0 || too_long < 0 || empty > pairs || too_long > pairs ||
      sources + empty + too_long != pairs)
    fail("sent {} sources and {} targets, with {} and {} pairs skipped; expected {} pairs", sources, targets, empty,
         too_long, pairs);
}

void ParallelData::add(const TokenizedText& text) {
  skipped_.empty += text.skipped.empty;
  skipped_.too_long += text.skipped.too_long;
  std::span<const int32_t> sources = text.source, targets = text.target;
  while (!sources.empty()) {
    const std::span<const int32_t> source = take_text(sources), target = take_text(targets);
    longest_ = std::max({longest_, std::ssize(source) + source_around(), std::ssize(target) + target_around()});
    source_.append(tokens_.source_before, source, tokens_.source_after);
    target_.append(tokens_.target_before, target, {&tokens_.target_after, 1});
  }
}

}  // namespace qkv
