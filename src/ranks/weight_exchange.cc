#include "ranks/weight_exchange.h"

#include <limits>

#include "core/to_size.h"

namespace qkv {

WeightExchange::WeightExchange(Communicator& communicator, const BucketList& list, std::span<float> values)
    : communicator_(communicator), sent_(communicator), arrived_(list.buckets.size()) {
  for (const Slice& bucket : list.buckets) {
    firsts_.push_back(list.first(bucket));
    arriving_.emplace_back(communicator);
    for (int rank = 0; rank < communicator.size(); rank++) {
      const Slice slice = slice_of(bucket, rank, communicator.size());
      parts_.push_back(std::as_writable_bytes(values.subspan(to_size(list.first(slice)), to_size(slice.size))));
    }
  }
}

void WeightExchange::begin() {
  const size_t size = to_size(int64_t{communicator_.size()}), rank = to_size(int64_t{communicator_.rank()});
  arrived_ = 0;
  for (size_t bucket = 0; bucket < firsts_.size(); bucket++)
    for (size_t k = 1; k < size; k++) {
      const size_t to = (rank + k) % size, from = (rank + size - k) % size;
      arriving_[bucket].receive(parts_[bucket * size + from], static_cast<int>(from));
      sent_.send(parts_[bucket * size + rank], static_cast<int>(to));
    }
}

void WeightExchange::wait_until(int64_t end) {
  while (arrived_ < firsts_.size() && firsts_[arrived_] < end) arriving_[arrived_++].wait();
}

void WeightExchange::finish() {
  wait_until(std::numeric_limits<int64_t>::max());
  sent_.wait();
}

}  // namespace qkv
