#include "ranks/doubling_weights.h"

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
  for (const Slice& bucket : list.buckets) {
    firsts_.push_back(list.first(bucket));
    parts_.push_back(halved_parts(list, bucket, communicator.rank(), communicator.size()));
  }
}

void DoublingWeights::begin() {
  rounds_.restart();
  advance(firsts_.size(), false);
}

void DoublingWeights::advance(size_t buckets, bool waits) {
  const auto begin = [&](size_t bucket, int level, Communicator::Group& arriving) {
    const int halving = levels_ - 1 - level, partner = communicator_.rank() ^ 1 << halving;
    const HalvedPart& part = parts_[bucket][to_size(halving)];
    const auto bytes_of = [&](int64_t first, int64_t size) {
      return std::as_writable_bytes(values_.subspan(to_size(first), to_size(size)));
    };
    arriving.receive(bytes_of(part.other, part.other_size), partner);
    sent_.send(bytes_of(part.own, part.own_size), partner);
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
