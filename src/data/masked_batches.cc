#include "data/masked_batches.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

TextBatchOptions options_of_pieces(TextBatchOptions options, size_t around) {
  options.around = static_cast<int64_t>(around);
  if (options.max_length <= options.around)
    fail("batches: max_length and batch_tokens must be at least {}, for a token and the {} around it (one is {})",
         options.around + 1, options.around, options.max_length);
  options.max_length -= options.around;
  return options;
}

// Returns the index of the stream of a piece: its place is below 2^40.
uint64_t index_of(int64_t epoch, int64_t begin) {
  return static_cast<uint64_t>(epoch) << 40 | static_cast<uint64_t>(begin);
}

}  // namespace

MaskedBatches::MaskedBatches(const TokenStream& text, TextBatchOptions options, std::vector<int32_t> before,
                             std::vector<int32_t> after, const MaskingOptions& masking, MaskingVocabulary vocabulary)
    : text_(text),
      options_(options_of_pieces(options, before.size() + after.size())),
      before_(std::move(before)),
      after_(std::move(after)),
      masking_(masking),
      vocabulary_(std::move(vocabulary)),
      pieces_(text, options_) {}

// A piece of n tokens of text has share · n + 1 at most, and no more than n.
int64_t MaskedBatches::most_masked() const {
  const auto per_piece = static_cast<double>(1 + options_.around);
  const double most = static_cast<double>(options_.batch_tokens) * (masking_.share + 1 / per_piece);
  return std::min(options_.batch_tokens, static_cast<int64_t>(std::ceil(most)));
}

void MaskedBatches::fill(const TextBatches::Epoch& epoch, int64_t batch, const MaskSource& masks, Batch& to) const {
  to.clear();
  std::vector<int32_t> ids;
  for (int64_t i = epoch.offsets[to_size(batch)]; i < epoch.offsets[to_size(batch) + 1]; i++) {
    const auto [begin, end] = epoch.pieces[to_size(i)];
    ids = before_;
    ids.insert(ids.end(), text_.ids.begin() + begin, text_.ids.begin() + end);
    ids.insert(ids.end(), after_.begin(), after_.end());
    Random random(masks.seed, masks.stream, index_of(masks.epoch, begin));
    const std::vector<int32_t> places = choose_masked(ids, masking_, vocabulary_, random);
    for (const int32_t place : places) {
      to.masked.push_back(static_cast<int32_t>(to.source.tokens()) + place);
      to.labels.push_back(ids[to_size(place)]);
    }
    mask_tokens(ids, places, masking_, vocabulary_, random);
    to.source.append(ids);
  }
}

}  // namespace qkv
