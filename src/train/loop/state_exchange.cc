#include "train/loop/state_exchange.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kPart = size_t{1} << 20;  // bytes that rank 0 holds of another rank

size_t bytes_of(const OptimizerState::Array& array, int64_t parameters) {
  const int64_t elements = OptimizerState::elements(array.unit, parameters);
  return byte_count(array.dtype, std::span(&elements, 1)).value();
}

}  // namespace

StateExchange::StateExchange(Communicator& communicator, std::span<const Slice> buckets)
    : communicator_(communicator), part_(kPart) {
  for (const Slice& bucket : buckets)
    for (int rank = 0; rank < communicator.size(); rank++)
      if (const Slice slice = slice_of(bucket, rank, communicator.size()); slice.size > 0)
        runs_.push_back({rank, slice.size});
}

int64_t StateExchange::size_of(const OptimizerState::Array& array) const {
  int64_t size = 0;
  for (const Run& run : runs_) size += OptimizerState::elements(array.unit, run.parameters);
  return size;
}

template <class F>
void StateExchange::for_each_run(const OptimizerState::Array& array, F&& f) const {
  for (const Run& run : runs_) f(run.rank, bytes_of(array, run.parameters));
}

void StateExchange::write(const OptimizerState::Array& array, WriteBytes write) {
  size_t own = 0;  // bytes of this rank that were written
  for_each_run(array, [&](int rank, size_t size) {
    if (rank == 0) {
      write(std::as_bytes(array.bytes.subspan(own, size)));
      own += size;
      return;
    }
    for (size_t at = 0; at < size; at += kPart) {
      const std::span<std::byte> part = std::span(part_).first(std::min(kPart, size - at));
      Communicator::Group group(communicator_);
      group.receive(part, rank);
      group.wait();
      write(part);
    }
  });
}

void StateExchange::read(const OptimizerState::Array& array, std::span<const std::byte> whole) {
  size_t own = 0, at = 0;
  Communicator::Group group(communicator_);
  for_each_run(array, [&](int rank, size_t size) {
    const std::span<const std::byte> run = whole.subspan(at, size);
    at += size;
    if (rank == 0) {
      std::ranges::copy(run, array.bytes.begin() + std::ssize(array.bytes.first(own)));
      own += size;
      return;
    }
    for (size_t first = 0; first < size; first += kPart)
      group.send(run.subspan(first, std::min(kPart, size - first)), rank);
  });
  group.wait();
}

template <class F>
void StateExchange::exchange_own(const OptimizerState& optimizer, F&& begin) {
  for (const OptimizerState::Array& array : optimizer.arrays()) {
    size_t own = 0;
    Communicator::Group group(communicator_);
    for_each_run(array, [&](int rank, size_t size) {
      if (rank != communicator_.rank()) return;
      for (size_t at = 0; at < size; at += kPart)
        begin(group, array.bytes.subspan(own + at, std::min(kPart, size - at)));
      own += size;
    });
    group.wait();
  }
}

void StateExchange::send(const OptimizerState& optimizer) {
  exchange_own(optimizer, [](Communicator::Group& group, std::span<std::byte> part) { group.send(part, 0); });
}

void StateExchange::receive(const OptimizerState& optimizer) {
  exchange_own(optimizer, [](Communicator::Group& group, std::span<std::byte> part) { group.receive(part, 0); });
}

}  // namespace qkv
