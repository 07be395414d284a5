#include "train/optimizer/optimizer_state.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/moment_codes.h"
#include "train/optimizer/schedule.h"

namespace qkv {
namespace {

static_assert(kSliceBlock == kAdamBlock && kSliceBlock % kMomentBlock == 0);

int64_t moment_blocks(int64_t size) { return (size + kMomentBlock - 1) / kMomentBlock; }

double mean_factor(int64_t tokens) { return 1.0 / static_cast<double>(std::max<int64_t>(tokens, 1)); }

template <class T>
OptimizerState::Array array(const char* name, DType dtype, std::span<T> values,
                            OptimizerState::Unit unit = OptimizerState::Unit::parameter) {
  return {name, dtype, std::ssize(values), std::as_writable_bytes(values), unit};
}

}  // namespace

std::vector<Slice> buckets_of(const ParameterList<float>& parameters, int64_t ranks) {
  std::vector<int64_t> sizes;
  for (const auto& range : parameters.trained_ranges()) sizes.push_back(range.size);
  return buckets_of(sizes, ranks);
}

std::vector<Slice> slices_of(const ParameterList<float>& parameters, int64_t rank, int64_t ranks) {
  return slices_of(buckets_of(parameters, ranks), rank, ranks);
}

double sum_of_ranges(std::span<const double> squares, std::span<const ParameterList<float>::Range> ranges) {
  double sum = 0;
  for (const auto& range : ranges) {
    const size_t blocks = to_size(slice_blocks(range.size));
    sum += sum_of_blocks(squares.first(blocks));
    squares = squares.subspan(blocks);
  }
  return sum;
}

template <class T>
std::span<T> OptimizerState::zeros(int64_t count) {
  return {memory_.zeros<T>(1, count).data, to_size(count)};
}

OptimizerState::OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters, bool lazy_rows)
    : OptimizerState(config, parameters, slices_of(parameters, 0, 1)) {
  if (!lazy_rows) return;
  last_ = zeros<int32_t>(parameters.all().front().shape[0]);
  history_.reserve();
}

OptimizerState::OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters,
                               std::span<const Slice> slices)
    : config_(config), parameters_(parameters), ranges_(parameters.trained_ranges()), history_(config) {
  add_parts(slices);
  allocate();
}

void OptimizerState::add_parts(std::span<const Slice> slices) {
  std::vector<int64_t> squares;  // the first of each range
  int64_t blocks = 0;
  for (const auto& range : ranges_) {
    squares.push_back(blocks);
    blocks += slice_blocks(range.size);
  }
  squares_.resize(to_size(blocks));
  int64_t state = 0, block = 0;
  for (const Slice& slice : slices) {
    const auto& range = ranges_[to_size(slice.range)];
    parts_.push_back({slice, range.value + slice.first, range.gradient + slice.first, state, block,
                      squares[to_size(slice.range)] + slice.first / kSliceBlock});
    state += slice.size;
    block += moment_blocks(slice.size);
  }
}

void OptimizerState::allocate() {
  int64_t P = 0, blocks = 0;  // each part begins with a block
  for (const Part& part : parts_) {
    P += part.slice.size;
    blocks += moment_blocks(part.slice.size);
  }
  const int64_t padded = blocks * kMomentBlock;
  switch (config_.moments) {
    case Moments::float32:
      moments_ = Float32Moments{zeros<float>(P), zeros<float>(P)};
      break;
    case Moments::bfloat16:
      moments_ = Bfloat16Moments{zeros<bfloat16>(padded), zeros<bfloat16>(padded)};
      break;
    case Moments::int8:
      moments_ =
          Int8Moments{zeros<uint8_t>(padded), zeros<uint8_t>(padded), zeros<float>(blocks), zeros<float>(blocks)};
      break;
  }
  if (config_.ema_decay <= 0) return;
  ema_ = zeros<float>(P);
  for (const Part& part : parts_)
    std::copy_n(parameters_.values().data() + part.value, part.slice.size, ema_.data() + part.state);
}

AdamStep OptimizerState::adam_step(int64_t step, int64_t tokens, double squares) const {
  const double mean = mean_factor(tokens);
  AdamStep s;
  s.learning_rate = rate_factor_ * learning_rate(config_, step);
  s.beta1 = config_.beta1;
  s.beta2 = config_.beta2;
  s.epsilon = config_.epsilon;
  s.weight_decay = config_.weight_decay;
  s.decoupled = config_.optimizer == Optimizer::adamw;
  s.gradient_scale = mean;
  if (config_.clip_norm > 0) s.gradient_scale *= std::min(1.0, config_.clip_norm / (std::sqrt(squares) * mean));
  s.step = step;
  s.seed = static_cast<uint64_t>(config_.seed);
  s.average_decay = average_decay(config_, step);
  return s;
}

double OptimizerState::update(int64_t step, int64_t tokens, Gather gather) {
  for (const Part& part : parts_) sum_of_squares<float>(gradient_of(part), squares_of(part));
  const double squares = sum_of_squares_of_all(gather);
  if (std::isfinite(squares)) {
    const AdamStep s = adam_step(step, tokens, squares);
    for (const Part& part : parts_) update_part(s, part);
    clear_other_gradients();
  } else {
    clear_gradients();
  }
  return std::sqrt(squares) * mean_factor(tokens);
}

void OptimizerState::clear_gradients() { std::ranges::fill(parameters_.gradients(), 0.0f); }

std::span<float> OptimizerState::gradient_of(const Part& part) const {
  return parameters_.gradients().subspan(to_size(part.gradient), to_size(part.slice.size));
}

std::span<double> OptimizerState::squares_of(const Part& part) {
  return std::span(squares_).subspan(to_size(part.squares), to_size(slice_blocks(part.slice.size)));
}

double OptimizerState::sum_of_squares_of_all(Gather gather) {
  if (gather) gather(squares_);
  return sum_of_ranges(squares_, ranges_);
}

void OptimizerState::update_part(AdamStep s, const Part& part) {
  const auto of = [](auto all, int64_t from, int64_t count) {
    return all.empty() ? all : all.subspan(to_size(from), to_size(count));
  };
  const int64_t size = part.slice.size, blocks = moment_blocks(size);
  const int64_t from = part.block * kMomentBlock, padded = blocks * kMomentBlock;
  const std::span<float> w = of(parameters_.values(), part.value, size), gradient = gradient_of(part),
                         average = of(ema_, part.state, size);
  // Another stream of random numbers for the rounding of each range.
  s.seed += 0x9E3779B97F4A7C15u * static_cast<uint64_t>(part.slice.range);
  s.first_block = part.slice.first / kMomentBlock;
  if (const auto* f = std::get_if<Float32Moments>(&moments_)) {
    adam_update<float>(s, w, gradient, of(f->m, part.state, size), of(f->v, part.state, size), average);
  } else if (const auto* b = std::get_if<Bfloat16Moments>(&moments_)) {
    adam_update(s, w, gradient, Bfloat16Moments{of(b->m, from, padded), of(b->v, from, padded)}, average);
  } else {
    const Int8Moments& i = std::get<Int8Moments>(moments_);
    adam_update(s, w, gradient,
                Int8Moments{of(i.m, from, padded), of(i.v, from, padded), of(i.m_scale, part.block, blocks),
                            of(i.v_scale, part.block, blocks)},
                average);
  }
}

// Sets the gradients of frozen parameters to zero, which have some where they are computed anyway.
void OptimizerState::clear_other_gradients() {
  for (const auto& p : parameters_.all())
    if (p.frozen && p.gradient) std::fill_n(p.gradient, p.size(), 0.0f);
}

AdamRow<float> OptimizerState::table() const {
  const Float32Moments& f = std::get<Float32Moments>(moments_);
  return {parameters_.values().data(), f.m.data(), f.v.data(), ema_.empty() ? nullptr : ema_.data()};
}

double OptimizerState::update(int64_t step, int64_t tokens, const RowGradients& g) {
  const double squares =
      sum_of_squares<float>({g.table.data, to_size(g.table.rows * g.table.cols)}) + sum_of_squares<float>(g.others);
  if (std::isfinite(squares)) apply(adam_step(step, tokens, squares), g);
  return std::sqrt(squares) * mean_factor(tokens);
}

void OptimizerState::apply(AdamStep s, const RowGradients& g) {
  const Float32Moments& f = std::get<Float32Moments>(moments_);
  const auto others = [&](std::span<float> all) {
    return all.empty() ? all : all.subspan(all.size() - g.others.size());
  };
  adam_update<float>(s, others(parameters_.values()), g.others, others(f.m), others(f.v), others(ema_));
  adam_update_rows<float>(s, g.rows, g.table, table());
  for (const int32_t row : g.rows) last_[to_size(row)] = static_cast<int32_t>(s.step);
}

namespace {

template <class Real>
AdamRow<Real> row_of(const AdamRow<float>& table, int64_t row, int64_t width) {
  const int64_t first = row * width;
  return {table.w + first, table.m + first, table.v + first, table.average ? table.average + first : nullptr};
}

}  // namespace

void OptimizerState::catch_up(int64_t step, std::span<const int32_t> rows) {
  history_.extend(step);
  const AdamRow<float> all = table();
  parallel_blocks(std::ssize(rows), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int32_t row = rows[to_size(i)];
      int32_t& last = last_[to_size(row)];
      if (last == 0 || last == step) continue;
      qkv::catch_up<float>(history_.between(last, step), row_of<float>(all, row, width()), width());
      last = static_cast<int32_t>(step);
    }
  });
}

template <class F>
void OptimizerState::caught_up_into(int64_t step, std::span<const float> from, std::span<float> out, F&& f) {
  std::ranges::copy(from, out.begin());
  if (last_.empty()) return;
  history_.extend(step);
  const AdamRow<float> all = table();
  parallel_blocks(std::ssize(last_), 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const int32_t last = last_[to_size(row)];
      if (last == 0 || last == step) continue;
      f(history_.between(last, step), row_of<const float>(all, row, width()), width(), &out[to_size(row * width())]);
    }
  });
}

void OptimizerState::weights_into(int64_t step, std::span<float> out) {
  caught_up_into(step, parameters_.values(), out, caught_up_weights<float>);
}

void OptimizerState::average_into(int64_t step, std::span<float> out) {
  if (std::ssize(ema_) < parameters_.size()) {
    std::ranges::copy(parameters_.values(), out.begin());
    for (const Part& part : parts_) std::copy_n(ema_.data() + part.state, part.slice.size, out.data() + part.value);
    return;
  }
  caught_up_into(step, ema_, out, caught_up_average<float>);
}

void OptimizerState::check_rows(const std::string& path, int64_t step) const {
  for (const int32_t last : last_)
    if (last < 0 || last > step)
      fail("{}: \"adam.rows_step\" must be between 0 and {}, the step (is {})", path, step, last);
}

int64_t OptimizerState::elements(Unit unit, int64_t parameters) {
  if (unit == Unit::parameter) return parameters;
  return moment_blocks(parameters) * (unit == Unit::block ? 1 : kMomentBlock);
}

std::vector<OptimizerState::Array> OptimizerState::arrays() const {
  std::vector<Array> all;
  if (const auto* f = std::get_if<Float32Moments>(&moments_)) {
    all = {array("adam.m", DType::f32, f->m), array("adam.v", DType::f32, f->v)};
  } else if (const auto* b = std::get_if<Bfloat16Moments>(&moments_)) {
    all = {array("adam.m", DType::bf16, b->m, Unit::padded_parameter),
           array("adam.v", DType::bf16, b->v, Unit::padded_parameter)};
  } else {
    const Int8Moments& i = std::get<Int8Moments>(moments_);
    all = {array("adam.m", DType::u8, i.m, Unit::padded_parameter),
           array("adam.v", DType::u8, i.v, Unit::padded_parameter),
           array("adam.m_scale", DType::f32, i.m_scale, Unit::block),
           array("adam.v_scale", DType::f32, i.v_scale, Unit::block)};
  }
  if (config_.ema_decay > 0) all.push_back(array("ema", DType::f32, ema_));
  if (!last_.empty()) all.push_back(array("adam.rows_step", DType::i32, last_));
  return all;
}

}  // namespace qkv
