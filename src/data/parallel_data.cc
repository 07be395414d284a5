#include "data/parallel_data.h"

#include <algorithm>
#include <exception>

#include "core/fail.h"
#include "core/threads.h"

namespace qkv {
namespace {

constexpr int64_t kWindow = 1 << 16, kBlock = 256;  // pairs: held as small vectors at a time, given to a thread

struct Pair {
  std::vector<int32_t> source, target;
};

// Calls f(begin, end) for blocks of [0, n) on all threads; of their exceptions the first block's is thrown.
template <class F>
void parallel_throwing(int64_t n, F&& f) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>((n + kBlock - 1) / kBlock));
  parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) {
    try {
      f(begin, end);
    } catch (...) {
      errors[static_cast<size_t>(begin / kBlock)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace

void ParallelData::Side::append(const std::vector<int32_t>& sequence) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  offsets.push_back(static_cast<int64_t>(ids.size()));
}

ParallelData::ParallelData(const ParallelText& text, const Tokenizer& source, const Tokenizer& target,
                           int64_t max_length) {
  if (text.source.size() != text.target.size())
    fail("parallel data: {} source lines and {} target lines, wanted as many", text.source.size(), text.target.size());
  if (max_length < 2) fail("parallel data: max_length {}, wanted at least 2", max_length);
  std::vector<Pair> window(static_cast<size_t>(std::min(kWindow, text.size())));
  for (int64_t first = 0; first < text.size(); first += kWindow) {
    const int64_t count = std::min(kWindow, text.size() - first);
    parallel_throwing(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const size_t line = static_cast<size_t>(first + i);
        window[static_cast<size_t>(i)] = {source.encode(text.source[line]), target.encode(text.target[line])};
      }
    });
    for (int64_t i = 0; i < count; i++) {
      Pair& pair = window[static_cast<size_t>(i)];
      const int64_t longest = static_cast<int64_t>(std::max(pair.source.size(), pair.target.size())) + 1;
      if (pair.source.empty() || pair.target.empty()) {
        skipped_empty_++;
      } else if (longest > max_length) {
        skipped_long_++;
      } else {
        longest_ = std::max(longest_, longest);
        pair.source.push_back(source.end());
        pair.target.insert(pair.target.begin(), target.start());
        pair.target.push_back(target.end());
        source_.append(pair.source);
        target_.append(pair.target);
      }
    }
  }
}

// FNV-1a over the ids and the lengths of both sides.
std::string ParallelData::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const Side* side : {&source_, &target_}) {
    for (const int64_t offset : side->offsets) add(static_cast<uint64_t>(offset));
    for (const int32_t id : side->ids) add(static_cast<uint64_t>(id));
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace qkv
