#include "train/loop/step_exchange.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/fail.h"
#include "core/hash.h"
#include "core/to_size.h"
#include "ops/adam.h"

namespace qkv {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 40;  // of a shard

// Sent with the losses of a rank.
struct Note {
  int64_t step = 0;
  uint64_t position = 0;  // hash
  int64_t stops = 0, pauses = 0;
  double done = 0;
};

uint64_t hash_of(const StreamPosition& p) {
  uint64_t hash = 0;
  for (const int64_t part : {p.epoch, p.window, p.batch, p.skipped.empty, p.skipped.too_long})
    hash = hash_mix(hash, static_cast<uint64_t>(part));
  return hash;
}

std::string hash_text(std::span<const float> numbers) {
  return fmt::format("{:016x}",
                     hash_bytes({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]}));
}

std::vector<std::vector<Slice>> slices_by_rank(std::span<const Slice> buckets, int ranks) {
  std::vector<std::vector<Slice>> slices;
  for (int rank = 0; rank < ranks; rank++) slices.push_back(slices_of(buckets, rank, ranks));
  return slices;
}

// Returns the first element of each parameter in `all`, or of the next one that has some there, then the size of `all`.
std::vector<int64_t> first_elements(const ParameterList<float>& parameters, float* Parameter<float>::*elements,
                                    std::span<const float> all) {
  std::vector<int64_t> firsts = {std::ssize(all)};
  for (auto p = parameters.all().rbegin(); p != parameters.all().rend(); ++p)
    firsts.push_back((*p).*elements ? (*p).*elements - all.data() : firsts.back());
  std::ranges::reverse(firsts);
  return firsts;
}

// Returns f(range) for each range of parameters that are trained.
template <class F>
std::vector<int64_t> of_ranges(const ParameterList<float>& parameters, F&& f) {
  std::vector<int64_t> all;
  for (const auto& range : parameters.trained_ranges()) all.push_back(f(range));
  return all;
}

int64_t largest_count(const std::vector<TreeNode>& nodes) {
  int64_t most = 1;
  for (const TreeNode& node : nodes) most = std::max(most, node.count);
  return most;
}

}  // namespace

StepExchange::StepExchange(Ranks& ranks, int64_t shards, ParameterList<float>& parameters)
    : ranks_(ranks),
      parameters_(parameters),
      ranges_(parameters.trained_ranges()),
      values_(of_ranges(parameters, [](const auto& range) { return range.value; })),
      gradients_(of_ranges(parameters, [](const auto& range) { return range.gradient; })),
      blocks_(of_ranges(parameters,
                        [first = int64_t{0}](const auto& range) mutable {
                          return std::exchange(first, first + slice_blocks(range.size));
                        })),
      first_value_(first_elements(parameters, &Parameter<float>::value, parameters.values())),
      first_gradient_(first_elements(parameters, &Parameter<float>::gradient, parameters.gradients())),
      buckets_(buckets_of(parameters, ranks.size())),
      slices_(slices_by_rank(buckets_, ranks.size())),
      shards_(shards),
      own_(even_slice(shards, ranks.rank(), ranks.size())),
      nodes_(nodes_of_ranks(shards, ranks.size())[to_size(ranks.rank())]),
      gradient_exchange_(ranks.communicator(), shards, {buckets_, gradients_}),
      weight_exchange_(ranks.communicator(), {buckets_, values_}, parameters.values()),
      state_(ranks.communicator(), buckets_),
      leaves_(largest_count(nodes_), std::ssize(parameters.gradients())),
      kept_(nodes_.size() - 1, std::vector<float>(parameters.gradients().size())) {
  leaves_.set_leaves(nodes_.front().count);
  squares_.resize(to_size(blocks_.empty() ? 0 : blocks_.back() + slice_blocks(ranges_.back().size)));
  for (auto& node : kept_) sums_.emplace_back(node);
  sums_.push_back(parameters.gradients());
}

const std::vector<Slice>& StepExchange::slices() const { return slices_[to_size(ranks_.rank())]; }

void StepExchange::begin_step() {
  complete_ = std::ssize(parameters_.gradients());
  gradient_exchange_.begin(sums_);
}

void StepExchange::wait_for_weights(int64_t parameters) {
  weight_exchange_.wait_until(first_value_[to_size(parameters)]);
}

// Returns the first element at or behind the given one that is not within a block of parameters.
int64_t StepExchange::block_behind(int64_t element) const {
  for (const auto& range : ranges_)
    if (range.gradient < element && element < range.gradient + range.size)
      return range.gradient + std::min(range.size, slice_blocks(element - range.gradient) * kSliceBlock);
  return element;
}

// Sets the sums of squares of the blocks from element `begin` up to, but without, `end`, which are not within blocks.
void StepExchange::sum_squares(int64_t begin, int64_t end) {
  for (size_t i = 0; i < ranges_.size(); i++) {
    const auto& range = ranges_[i];
    const int64_t first = std::max(begin, range.gradient), last = std::min(end, range.gradient + range.size);
    if (first >= last) continue;
    sum_of_squares<float>(parameters_.gradients().subspan(to_size(first), to_size(last - first)),
                          std::span(squares_).subspan(to_size(blocks_[i] + (first - range.gradient) / kSliceBlock),
                                                      to_size(slice_blocks(last - first))));
  }
}

// The last shard completes the last node of this rank.
void StepExchange::complete(int64_t first) {
  const int64_t from = block_behind(first_gradient_[to_size(first)]);
  if (from >= complete_) return;
  sum_squares(from, complete_);
  leaves_.complete(parameters_.gradients(), from, complete_);
  complete_ = from;
  gradient_exchange_.advance(from);
}

double StepExchange::add_shard() {
  const bool last_node = node_ + 1 == nodes_.size(), completes = ++added_ == nodes_[node_].count;
  if (last_node && completes) {
    complete(0);
    leaves_.restart();
  } else {
    sum_squares(0, std::ssize(parameters_.gradients()));
    leaves_.add(parameters_.gradients());
  }
  if (!completes) return sum_of_ranges(squares_, ranges_);
  added_ = 0;
  if (!last_node) {
    std::ranges::copy(parameters_.gradients(), kept_[node_].begin());
    std::ranges::fill(parameters_.gradients(), 0.0f);
  }
  node_ = last_node ? 0 : node_ + 1;
  leaves_.set_leaves(nodes_[node_].count);
  return sum_of_ranges(squares_, ranges_);
}

void StepExchange::sum_gradients() {
  gradient_exchange_.finish();
  weight_exchange_.finish();
}

StepExchange::Pause StepExchange::share_losses(std::span<Loss> losses, int64_t step, const StreamPosition& position,
                                               Pause pause) {
  std::vector<Note> notes(to_size(ranks_.size()));
  notes[to_size(ranks_.rank())] = {step, hash_of(position), pause.stops, pause.pauses, pause.done};
  std::vector<ByteParts> parts;
  for (int rank = 0; rank < ranks_.size(); rank++) {
    const EvenSlice own = even_slice(shards_, rank, ranks_.size());
    parts.push_back({std::as_writable_bytes(std::span(&notes[to_size(rank)], 1)),
                     std::as_writable_bytes(losses.subspan(to_size(own.begin), to_size(own.end - own.begin)))});
  }
  share_all(ranks_.communicator(), parts);
  pause.pauses = notes.front().pauses != 0;
  pause.done = notes.front().done;
  if (!std::isfinite(pause.done)) fail("rank 0 sent a part of training that is not finite");
  for (int rank = 0; rank < ranks_.size(); rank++) {
    const Note& note = notes[to_size(rank)];
    if (note.step != step || note.position != hash_of(position))
      fail("rank {}: is at step {} and position {:x} of the data; expected step {} and position {:x}", rank, note.step,
           note.position, step, hash_of(position));
    pause.stops |= note.stops != 0;
  }
  for (const Loss& loss : losses)
    if (loss.tokens < 0 || loss.tokens > kMostTokens)
      fail("a rank sent {} as the number of tokens of a shard; must be between 0 and {}", loss.tokens, kMostTokens);
  pause.pauses |= pause.stops;
  return pause;
}

// Returns the elements of the slices of each rank; `ranges` are the first elements of the ranges.
template <class T>
std::vector<ByteParts> StepExchange::parts_of(std::span<T> all, std::span<const int64_t> ranges) const {
  std::vector<ByteParts> parts;
  for (const auto& slices : slices_) {
    ByteParts& own = parts.emplace_back();
    for (const Slice& slice : slices)
      own.push_back(std::as_writable_bytes(
          all.subspan(to_size(ranges[to_size(slice.range)] + slice.first), to_size(slice.size))));
  }
  return parts;
}

void StepExchange::gather_squares(std::span<double> squares) {
  std::vector<ByteParts> parts;
  for (const auto& slices : slices_) {
    ByteParts& own = parts.emplace_back();
    for (const Slice& slice : slices)
      own.push_back(std::as_writable_bytes(squares.subspan(
          to_size(blocks_[to_size(slice.range)] + slice.first / kSliceBlock), to_size(slice_blocks(slice.size)))));
  }
  share_all(ranks_.communicator(), parts);
}

void StepExchange::share_weights() {
  weight_exchange_.begin();
  std::ranges::fill(parameters_.gradients(), 0.0f);
}

void StepExchange::broadcast_weights() { spread(ranks_.communicator(), std::as_writable_bytes(parameters_.values())); }

void StepExchange::compare_weights() {
  ranks_.agree("other weights than", hash_text(parameters_.values()),
               "the memory or the processor of one of them may be faulty");
}

void StepExchange::compare_gradients() {
  ranks_.agree("other gradients than", hash_text(parameters_.gradients()),
               "set QKV_ISA to an instruction set that all machines compute alike, such as avx2");
}

void StepExchange::collect_average(std::span<float> own, std::span<float> average) {
  std::vector<ByteParts> parts(to_size(ranks_.size()));
  size_t at = 0;  // averages of this rank are one behind the other
  if (ranks_.is_first()) {
    parts = parts_of(average, values_);
  } else {
    for (const Slice& slice : slices()) {
      parts[to_size(ranks_.rank())].push_back(std::as_writable_bytes(own.subspan(at, to_size(slice.size))));
      at += to_size(slice.size);
    }
  }
  collect(ranks_.communicator(), parts);
}

std::string StepExchange::summary() const {
  size_t gradients = 0, own = 0;  // elements
  for (int rank = 0; rank < ranks_.size(); rank++)
    for (const Slice& slice : slices_[to_size(rank)]) (rank == ranks_.rank() ? own : gradients) += to_size(slice.size);
  const size_t sent = sizeof(float) * (gradients * nodes_.size() + own * to_size(int64_t{ranks_.size()} - 1));
  const int64_t least = shards_ / ranks_.size(), rest = shards_ % ranks_.size();
  return fmt::format("{}; {} shards per step, {} per rank; {:.3g} MB each way per step", ranks_.summary(), shards_,
                     rest == 0 ? fmt::format("{}", least) : fmt::format("{} or {}", least, least + 1),
                     static_cast<double>(sent) / 1e6);
}

size_t StepExchange::bytes() const {
  size_t bytes = gradient_exchange_.bytes() + leaves_.bytes();
  for (const auto& node : kept_) bytes += node.size() * sizeof node[0];
  return bytes;
}

}  // namespace qkv
