#include "data/batch_stream.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/fail.h"
#include "core/random.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kAhead = 4;  // chunks that are prefetched before they are read

}  // namespace

BatchStream::BatchStream(const ParallelCorpus& corpus, const Tokenizer& source, const Tokenizer& target,
                         const StreamOptions& options)
    : corpus_(corpus),
      source_(source),
      target_(target),
      options_(options),
      longest_(std::min(options.max_length, options.batch_tokens)) {
  if (options.batch_tokens < 2) fail("batches: batch_tokens must be at least 2 (is {})", options.batch_tokens);
}

int64_t BatchStream::windows() const {
  return (corpus_.chunks() + options_.window_chunks - 1) / options_.window_chunks;
}

bool BatchStream::seek(const StreamPosition& position) {
  if (position.window >= windows()) return false;
  position_ = position;
  current_ = open(position.epoch, position.window);
  enter();
  return position_.batch < batches_.size();
}

void BatchStream::next(Batch& batch) {
  batcher().fill(batches_[position_.batch], batch);
  position_.batch++;
  const size_t done = to_size(position_.batch), all = to_size(batches_.size());
  prepare(next_window_, (next_window_.chunks.size() * done + all - 1) / all);
  if (done < all) return;
  leave();
  enter();
}

// Returns a window with none of its chunks read. If it has the same chunks as the current window, as in a text of one
// window, the data are shared.
BatchStream::Window BatchStream::open(int64_t epoch, int64_t window) const {
  std::vector<int64_t> order(to_size(corpus_.chunks()));
  std::iota(order.begin(), order.end(), 0);
  Random(options_.seed, Stream::chunks, static_cast<uint64_t>(epoch)).shuffle(order);
  const auto begin = [&](int64_t w) { return order.begin() + w * corpus_.chunks() / windows(); };
  Window opened{{begin(window), begin(window + 1)}, 0, nullptr};
  std::sort(opened.chunks.begin(), opened.chunks.end());
  if (opened.chunks == current_.chunks) return current_;
  opened.data = std::make_shared<ParallelData>(source_, target_, longest_, options_.tokens);
  for (size_t i = 0; i < std::min(kAhead, opened.chunks.size()); i++) corpus_.will_need(opened.chunks[i]);
  return opened;
}

// Reads chunks of a window until `chunks` of them are ready.
void BatchStream::prepare(Window& window, size_t chunks) const {
  for (; window.ready < chunks; window.ready++) {
    if (window.ready + kAhead < window.chunks.size()) corpus_.will_need(window.chunks[window.ready + kAhead]);
    window.data->add(corpus_.read(window.chunks[window.ready]));
  }
}

// Creates the batches of the current window or, if all its pairs are skipped, of the next window that has usable pairs.
void BatchStream::enter() {
  for (int64_t tried = 1;; tried++) {
    prepare(current_, current_.chunks.size());
    const bool last = position_.window + 1 == windows();
    next_window_ = open(position_.epoch + last, last ? 0 : position_.window + 1);
    if (current_.data->size() > 0) break;
    if (tried == 2 * windows())  // the rest of one epoch and all of the next
      fail("training text: no usable sentence pairs ({} empty, {} too long: over {} tokens)", skipped().empty,
           skipped().too_long, longest_);
    leave();
  }
  const uint64_t window = static_cast<uint64_t>(position_.window), epoch = static_cast<uint64_t>(position_.epoch);
  batches_ = batcher().shuffled(window << 32 | epoch);
}

void BatchStream::leave() {
  position_.skipped = skipped();
  position_.batch = 0;
  if (++position_.window == windows()) {
    last_epoch_ = std::exchange(position_.skipped, {});
    position_.window = 0;
    position_.epoch++;
  }
  current_ = std::move(next_window_);
}

// Returns the pairs skipped in this epoch, including the current window.
Skipped BatchStream::skipped() const {
  return {position_.skipped.empty + current_.data->skipped_empty(),
          position_.skipped.too_long + current_.data->skipped_long()};
}

std::string BatchStream::summary() const {
  const ParallelData& data = *current_.data;
  const std::string window =
      windows() == 1 ? "," : fmt::format(" in {} windows; window {} has", windows(), position_.window + 1);
  return fmt::format(
      "training text: {} pairs{} {} source and {} target tokens; skipped {} empty and {} too long (over "
      "{} tokens)",
      corpus_.size(), window, data.source_tokens(), data.target_tokens(), data.skipped_empty(), data.skipped_long(),
      longest_);
}

std::string BatchStream::epoch_summary() const {
  return fmt::format("epoch {}: {} pairs; skipped {} empty and {} too long (over {} tokens)", position_.epoch,
                     corpus_.size(), last_epoch_.empty, last_epoch_.too_long, longest_);
}

}  // namespace qkv
