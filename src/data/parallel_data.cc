#include "data/parallel_data.h"

#include <algorithm>

#include "core/fail.h"
#include "core/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 32;  // pairs that a thread tokenizes at once

struct EncodedPair {
  std::vector<int32_t> source, target;
};

void put_around(const std::vector<int32_t>& before, std::span<const int32_t> after, std::vector<int32_t>& ids) {
  ids.insert(ids.begin(), before.begin(), before.end());
  ids.insert(ids.end(), after.begin(), after.end());
}

}  // namespace

void ParallelData::Side::append(const std::vector<int32_t>& sequence) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
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

void ParallelData::add(const ParallelText& text) {
  if (text.source.size() != text.target.size())
    fail("parallel data: source and target must have the same number of lines (have {} and {})", text.source.size(),
         text.target.size());
  const Tokenizer &source = source_.tokenizer, &target = target_.tokenizer;
  std::vector<EncodedPair> pairs(text.source.size());
  parallel_for_throwing((text.size() + kBlock - 1) / kBlock, [&](int64_t block) {
    const size_t begin = to_size(block * kBlock), end = std::min(pairs.size(), begin + kBlock);
    for (size_t i = begin; i < end; i++) pairs[i] = {source.encode(text.source[i]), target.encode(text.target[i])};
  });
  for (EncodedPair& pair : pairs) {
    const int64_t longest =
        std::max(std::ssize(pair.source) + std::ssize(tokens_.source_before) + std::ssize(tokens_.source_after),
                 std::ssize(pair.target) + std::ssize(tokens_.target_before));  // a target's last token is no input
    if (pair.source.empty() || pair.target.empty()) {
      skipped_empty_++;
    } else if (longest > max_length_) {
      skipped_long_++;
    } else {
      longest_ = std::max(longest_, longest);
      put_around(tokens_.source_before, tokens_.source_after, pair.source);
      put_around(tokens_.target_before, {&tokens_.target_after, 1}, pair.target);
      source_.append(pair.source);
      target_.append(pair.target);
    }
  }
}

}  // namespace qkv
