#include "ranks/halving_gradients.h"

#include <algorithm>
#include <bit>

#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {

HalvingGradients::HalvingGradients(Communicator& communicator, const BucketList& list)
    : communicator_(communicator),
      levels_(std::countr_zero(to_size(int64_t{communicator.size()}))),
      sent_(communicator) {
  for (auto bucket = list.buckets.rbegin(); bucket != list.buckets.rend(); ++bucket) {
    firsts_.push_back(list.first(*bucket));
    parts_.push_back(halved_parts(list, *bucket, communicator.rank(), communicator.size()));
    for (const HalvedPart& part : parts_.back()) largest_ = std::max(largest_, to_size(part.own_size));
  }
  rounds_.emplace(communicator, list.buckets.size(), levels_,
                  buckets_in_flight(largest_ * sizeof(float), list.buckets.size()));
  buffers_.resize(rounds_->in_flight() * largest_);
}

std::span<float> HalvingGradients::buffer(size_t round, int level) {
  const size_t size = to_size(parts_[round][to_size(level)].own_size);
  return std::span(buffers_).subspan(round % rounds_->in_flight() * largest_, size);
}

void HalvingGradients::begin_level(size_t round, int level, Communicator::Group& arriving) {
  const int partner = communicator_.rank() ^ 1 << level;
  const HalvedPart& part = parts_[round][to_size(level)];
  arriving.receive(std::as_writable_bytes(buffer(round, level)), partner);
  sent_.send(std::as_bytes(sum_.subspan(to_size(part.other), to_size(part.other_size))), partner);
}

void HalvingGradients::end_level(size_t round, int level) {
  const std::span<const float> received = buffer(round, level);
  float* own = sum_.data() + parts_[round][to_size(level)].own;
  parallel_blocks(std::ssize(received), kSliceBlock, [&](int64_t begin, int64_t end) {
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
