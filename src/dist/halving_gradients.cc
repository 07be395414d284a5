#include "dist/halving_gradients.h"

#include <algorithm>
#include <bit>
#include <ranges>

#include "core/threads.h"
#include "core/to_size.h"

namespace qkv {
SharedPart shared_part(const BucketList& list, const Slice& bucket, int64_t rank, int64_t ranks, int level) {
  const int64_t count = ranks >> level, begin = place_of(rank, ranks) / count * count;
  const Slice first = slice_at(bucket, begin, ranks), last = slice_at(bucket, begin + count - 1, ranks);
  return {list.first(first), last.first + last.size - first.first};
}

HalvingGradients::HalvingGradients(Communicator& communicator, const BucketList& list)
    : communicator_(communicator),
      levels_(std::countr_zero(to_size(int64_t{communicator.size()}))),
      sent_(communicator) {
  const int64_t rank = communicator.rank(), ranks = communicator.size();
  for (const Slice& bucket : std::views::reverse(list.buckets)) {
    firsts_.push_back(list.first(bucket));
    auto& kept = kept_.emplace_back();
    auto& given = given_.emplace_back();
    for (int level = 0; level < levels_; level++) {
      kept.push_back(shared_part(list, bucket, rank, ranks, level + 1));
      given.push_back(shared_part(list, bucket, rank ^ int64_t{1} << level, ranks, level + 1));
      largest_ = std::max(largest_, to_size(kept.back().size));
    }
  }
  rounds_.emplace(communicator, list.buckets.size(), levels_,
                  buckets_in_flight(largest_ * sizeof(float), list.buckets.size()));
  buffers_.resize(rounds_->in_flight() * largest_);
}

std::span<float> HalvingGradients::buffer(size_t round, const SharedPart& part) {
  return std::span(buffers_).subspan(round % rounds_->in_flight() * largest_, to_size(part.size));
}

void HalvingGradients::begin_level(size_t round, int level, Communicator::Group& arriving) {
  const int partner = communicator_.rank() ^ 1 << level;
  const SharedPart &kept = kept_[round][to_size(level)], &given = given_[round][to_size(level)];
  arriving.receive(std::as_writable_bytes(buffer(round, kept)), partner);
  sent_.send(std::as_bytes(sum_.subspan(to_size(given.first), to_size(given.size))), partner);
}

void HalvingGradients::end_level(size_t round, int level) {
  const SharedPart& kept = kept_[round][to_size(level)];
  const std::span<const float> received = buffer(round, kept);
  float* own = sum_.data() + kept.first;
  parallel_blocks(kept.size, kSliceBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) own[i] += received[to_size(i)];
  });
}

void HalvingGradients::begin(std::span<const std::span<float>> sums) {
  sum_ = sums.front();
  rounds_->restart();
}

void HalvingGradients::advance(int64_t first, bool waits) {
  const auto begin = [&](size_t round, int level, Communicator::Group& arriving) {
    begin_level(round, level, arriving);
  };
  const auto end = [&](size_t round, int level) { end_level(round, level); };
  const auto complete = std::ranges::count_if(firsts_, [&](int64_t round) { return round >= first; });
  waits ? rounds_->finish(to_size(complete), begin, end) : rounds_->advance(to_size(complete), begin, end);
}

void HalvingGradients::advance(int64_t first) { advance(first, false); }

void HalvingGradients::finish() {
  advance(0, true);
  sent_.wait();
}

}  // namespace qkv
