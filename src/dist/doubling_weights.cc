#include "dist/doubling_weights.h"

#include <algorithm>
#include <bit>

#include "core/to_size.h"

namespace qkv {

DoublingWeights::DoublingWeights(Communicator& communicator, const BucketList& list, std::span<float> values)
    : communicator_(communicator),
      values_(values),
      levels_(std::countr_zero(to_size(int64_t{communicator.size()}))),
      rounds_(communicator, list.buckets.size(), levels_, list.buckets.size()),
      sent_(communicator) {
  const int64_t rank = communicator.rank(), ranks = communicator.size();
  for (const Slice& bucket : list.buckets) {
    firsts_.push_back(list.first(bucket));
    auto& own = own_.emplace_back();
    auto& other = other_.emplace_back();
    for (int level = levels_; level > 0; level--) {
      own.push_back(shared_part(list, bucket, rank, ranks, level));
      other.push_back(shared_part(list, bucket, rank ^ int64_t{1} << (level - 1), ranks, level));
    }
  }
}

void DoublingWeights::begin() {
  rounds_.restart();
  advance(firsts_.size(), false);
}

void DoublingWeights::advance(size_t buckets, bool waits) {
  const auto begin = [&](size_t bucket, int level, Communicator::Group& arriving) {
    const int partner = communicator_.rank() ^ 1 << (levels_ - 1 - level);
    const auto bytes_of = [&](const SharedPart& part) {
      return std::as_writable_bytes(values_.subspan(to_size(part.first), to_size(part.size)));
    };
    arriving.receive(bytes_of(other_[bucket][to_size(level)]), partner);
    sent_.send(bytes_of(own_[bucket][to_size(level)]), partner);
  };
  const auto end = [](size_t, int) {};
  waits ? rounds_.finish(buckets, begin, end) : rounds_.advance(buckets, begin, end);
}

void DoublingWeights::wait_until(int64_t end) {
  const auto needed = std::ranges::count_if(firsts_, [&](int64_t first) { return first < end; });
  advance(firsts_.size(), false);
  advance(to_size(needed), true);
}

void DoublingWeights::finish() {
  advance(firsts_.size(), true);
  sent_.wait();
}

}  // namespace qkv
