#include "data/batch_stream.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
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

double BatchStream::part_of_epoch() const {
  const double in_window = static_cast<double>(position_.batch) / static_cast<double>(batches_.size());
  return (static_cast<double>(position_.window) + in_window) / static_cast<double>(windows());
}

double BatchStream::batches_per_epoch() const { return static_cast<double>(windows() * batches_.size()); }

void BatchStream::partition(const RankPartition& partition) {
  partition_ = partition;
  current_ = next_window_ = {};
}

bool BatchStream::seek(const StreamPosition& position) {
  if (position.window >= windows()) return false;
  position_ = position;
  current_ = open(position.epoch, position.window);
  exchange(current_);
  enter();
  return position_.batch < batches_.size();
}

void BatchStream::next(Batch& batch) {
  batcher().fill(batches_[position_.batch], batch);
  skip();
}

void BatchStream::skip() {
  position_.batch++;
  const size_t done = to_size(position_.batch), all = to_size(batches_.size());
  prepare(next_window_, (next_window_.chunks.size() * done + all - 1) / all);
  if (done < all) return;
  leave();
  enter();
}

std::vector<int64_t> BatchStream::lines() const {
  std::map<size_t, std::vector<int64_t>> usable;  // pairs of each chunk
  std::vector<int64_t> lines;
  for (const int64_t pair : batches_[position_.batch]) {
    const auto i = to_size(std::ranges::upper_bound(current_.ends, pair) - current_.ends.begin());
    const int64_t chunk = current_.chunks[i], before = i == 0 ? 0 : current_.ends[i - 1];
    if (!usable.contains(i)) usable[i] = current_.data->usable(read(chunk));
    lines.push_back(chunk * corpus_.pairs(0) + usable[i].at(to_size(pair - before)) + 1);
  }
  return lines;
}

void BatchStream::look_ahead(int64_t batches) {
  if (batches >= batches_.size() - position_.batch) exchange(next_window_);
}

ParallelText BatchStream::read(int64_t chunk) const {
  ParallelText text = corpus_.read(chunk);
  if (options_.rewrite) options_.rewrite(text, chunk * corpus_.pairs(0));
  return text;
}

// Returns a window with none of its chunks read. If it has the same chunks as the current window, as in a text of one
// window, the data are shared.
BatchStream::Window BatchStream::open(int64_t epoch, int64_t window) const {
  std::vector<int64_t> order(to_size(corpus_.chunks()));
  std::iota(order.begin(), order.end(), 0);
  Random(options_.seed, Stream::chunks, static_cast<uint64_t>(epoch)).shuffle(order);
  const auto begin = [&](int64_t w) { return order.begin() + w * corpus_.chunks() / windows(); };
  Window opened;
  opened.chunks = {begin(window), begin(window + 1)};
  std::sort(opened.chunks.begin(), opened.chunks.end());
  if (opened.chunks == current_.chunks) return current_;
  opened.texts.resize(opened.chunks.size());
  opened.data = std::make_shared<ParallelData>(source_, target_, longest_, options_.tokens);
  const size_t ahead = std::min(kAhead * to_size(partition_.ranks()), opened.chunks.size());
  for (size_t i = to_size(partition_.rank()); i < ahead; i += to_size(partition_.ranks()))
    corpus_.will_need(opened.chunks[i]);
  return opened;
}

void BatchStream::tokenize(Window& window, size_t chunk) const {
  window.texts[chunk] = window.data->tokenize(read(window.chunks[chunk]));
}

// Tokenizes the chunks of this rank among the first `chunks` of a window. Ranks proceed by one chunk at the same time.
void BatchStream::prepare(Window& window, size_t chunks) const {
  if (window.complete) return;
  const size_t ranks = to_size(partition_.ranks()), all = window.chunks.size();
  for (const size_t end = std::min(all, (chunks + ranks - 1) / ranks * ranks); window.considered < end;
       window.considered++) {
    if (!partition_.owns(static_cast<int64_t>(window.considered))) continue;
    if (const size_t ahead = window.considered + kAhead * ranks; ahead < all) corpus_.will_need(window.chunks[ahead]);
    tokenize(window, window.considered);
  }
}

// Completes a window by the chunks of all ranks.
void BatchStream::exchange(Window& window) const {
  if (window.complete) return;
  const size_t all = window.chunks.size();
  prepare(window, all);
  std::vector<std::vector<int32_t>> sources(all), targets(all);
  std::vector<Skipped> skipped(all);
  partition_.for_own(std::ssize(window.chunks), [&](int64_t i) {
    TokenizedText& text = *window.texts[to_size(i)];
    sources[to_size(i)] = std::move(text.source);
    targets[to_size(i)] = std::move(text.target);
    skipped[to_size(i)] = text.skipped;
  });
  const int64_t most = corpus_.pairs(0) * (1 + longest_);  // the first chunk has no fewer pairs than any other
  partition_.all_gather_lists(sources, {most, std::max<int64_t>(source_.size(), longest_ + 1)});
  partition_.all_gather_lists(targets, {most, std::max<int64_t>(target_.size(), longest_ + 1)});
  partition_.all_gather(std::span(skipped));
  for (size_t i = 0; i < all; i++) window.texts[i] = {std::move(sources[i]), std::move(targets[i]), skipped[i]};
  partition_.check_received(std::ssize(window.chunks), [&](int64_t i) {
    window.data->check(*window.texts[to_size(i)], corpus_.pairs(window.chunks[to_size(i)]));
  });
  complete(window);
}

// Completes a window. This rank tokenizes what is missing.
void BatchStream::complete(Window& window) const {
  if (window.complete) return;
  for (size_t i = 0; i < window.chunks.size(); i++) {
    if (!window.texts[i]) tokenize(window, i);
    window.data->add(*window.texts[i]);
    window.ends.push_back(window.data->size());
    window.texts[i].reset();
  }
  window.complete = true;
}

// Creates the batches of the current window or, if all its pairs are skipped, of the next window that has usable pairs.
void BatchStream::enter() {
  for (int64_t tried = 1;; tried++) {
    complete(current_);
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
  return {position_.skipped.empty + current_.data->skipped().empty,
          position_.skipped.too_long + current_.data->skipped().too_long};
}

std::string BatchStream::summary() const {
  const ParallelData& data = *current_.data;
  const std::string window =
      windows() == 1 ? "," : fmt::format(" in {} windows; window {} has", windows(), position_.window + 1);
  return fmt::format(
      "training text: {} pairs{} {} source and {} target tokens; skipped {} empty and {} too long (over "
      "{} tokens)",
      corpus_.size(), window, data.source_tokens(), data.target_tokens(), data.skipped().empty, data.skipped().too_long,
      longest_);
}

std::string BatchStream::epoch_summary() const {
  return fmt::format("epoch {}: {} pairs; skipped {} empty and {} too long (over {} tokens)", position_.epoch,
                     corpus_.size(), last_epoch_.empty, last_epoch_.too_long, longest_);
}

}  // namespace qkv
