#include "train/optimizer_state.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/threads.h"
#include "core/to_size.h"
#include "ops/optimizer/moment_codes.h"
#include "train/schedule.h"

namespace qkv {
namespace {

int64_t blocks_of(int64_t size) { return (size + kMomentBlock - 1) / kMomentBlock; }

double mean_factor(int64_t tokens) { return 1.0 / static_cast<double>(std::max<int64_t>(tokens, 1)); }

template <class T>
OptimizerState::Array array(const char* name, DType dtype, std::span<T> values) {
  return {name, dtype, std::ssize(values), std::as_writable_bytes(values)};
}

}  // namespace

template <class T>
std::span<T> OptimizerState::zeros(int64_t count) {
  return {memory_.zeros<T>(1, count).data, to_size(count)};
}

OptimizerState::OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters, bool lazy_rows)
    : config_(config), parameters_(parameters), ranges_(parameters.trained_ranges()), history_(config) {
  const int64_t P = parameters.trained_size();
  int64_t blocks = 0;  // each range begins with a block
  for (const auto& range : ranges_) blocks += blocks_of(range.size);
  const int64_t padded = blocks * kMomentBlock;
  switch (config.moments) {
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
  if (lazy_rows) {
    last_ = zeros<int32_t>(parameters.all().front().shape[0]);
    history_.reserve();
  }
  if (config.ema_decay <= 0) return;
  ema_ = zeros<float>(P);
  int64_t first = 0;
  for (const auto& range : ranges_) {
    std::copy_n(parameters.values().data() + range.value, range.size, ema_.data() + first);
    first += range.size;
  }
}

// `mean` is 1 / tokens. `squares` is only read if there is clipping.
AdamStep OptimizerState::adam_step(int64_t step, double mean, double squares) const {
  AdamStep s;
  s.learning_rate = learning_rate(config_, step);
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

double OptimizerState::update(int64_t step, int64_t tokens) {
  const double mean = mean_factor(tokens);
  const auto norm_of = [&](double squares) { return std::sqrt(squares) * mean; };
  double squares = 0;
  if (config_.clip_norm > 0)
    for (const auto& range : ranges_)
      squares += sum_of_squares<float>(parameters_.gradients().subspan(to_size(range.gradient), to_size(range.size)));
  AdamStep s = adam_step(step, mean, squares);
  squares = 0;
  int64_t first = 0, block = 0;
  for (const auto& range : ranges_) {
    squares += update_range(s, range, first, block);
    first += range.size;
    block += blocks_of(range.size);
    s.seed += 0x9E3779B97F4A7C15u;  // another stream of random numbers for the rounding of each range
  }
  clear_other_gradients();
  return norm_of(squares);
}

// Updates the parameters of a range, whose state begins at element `first`, and at block `block` of packed moments.
// Returns the sum of the squares of their gradients.
double OptimizerState::update_range(const AdamStep& s, const ParameterList<float>::Range& range, int64_t first,
                                    int64_t block) {
  const auto part = [](auto all, int64_t from, int64_t count) {
    return all.empty() ? all : all.subspan(to_size(from), to_size(count));
  };
  const std::span<float> w = part(parameters_.values(), range.value, range.size),
                         gradient = part(parameters_.gradients(), range.gradient, range.size),
                         average = part(ema_, first, range.size);
  const int64_t blocks = blocks_of(range.size), from = block * kMomentBlock, padded = blocks * kMomentBlock;
  if (const auto* f = std::get_if<Float32Moments>(&moments_))
    return adam_update<float>(s, w, gradient, part(f->m, first, range.size), part(f->v, first, range.size), average);
  if (const auto* b = std::get_if<Bfloat16Moments>(&moments_))
    return adam_update(s, w, gradient, Bfloat16Moments{part(b->m, from, padded), part(b->v, from, padded)}, average);
  const Int8Moments& i = std::get<Int8Moments>(moments_);
  return adam_update(s, w, gradient,
                     Int8Moments{part(i.m, from, padded), part(i.v, from, padded), part(i.m_scale, block, blocks),
                                 part(i.v_scale, block, blocks)},
                     average);
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
  const double mean = mean_factor(tokens);
  double squares = 0;
  if (config_.clip_norm > 0)
    squares =
        sum_of_squares<float>({g.table.data, to_size(g.table.rows * g.table.cols)}) + sum_of_squares<float>(g.others);
  const AdamStep s = adam_step(step, mean, squares);
  const Float32Moments& f = std::get<Float32Moments>(moments_);
  const auto others = [&](std::span<float> all) {
    return all.empty() ? all : all.subspan(all.size() - g.others.size());
  };
  squares = adam_update<float>(s, others(parameters_.values()), g.others, others(f.m), others(f.v), others(ema_));
  squares += adam_update_rows<float>(s, g.rows, g.table, table());
  for (const int32_t row : g.rows) last_[to_size(row)] = static_cast<int32_t>(step);
  return std::sqrt(squares) * mean;
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
    int64_t first = 0;
    for (const auto& range : ranges_) {
      std::copy_n(ema_.data() + first, range.size, out.data() + range.value);
      first += range.size;
    }
    return;
  }
  caught_up_into(step, ema_, out, caught_up_average<float>);
}

void OptimizerState::check_rows(const std::string& path, int64_t step) const {
  for (const int32_t last : last_)
    if (last < 0 || last > step)
      fail("{}: \"adam.rows_step\" must be between 0 and {}, the step (is {})", path, step, last);
}

std::vector<OptimizerState::Array> OptimizerState::arrays() const {
  std::vector<Array> all;
  if (const auto* f = std::get_if<Float32Moments>(&moments_)) {
    all = {array("adam.m", DType::f32, f->m), array("adam.v", DType::f32, f->v)};
  } else if (const auto* b = std::get_if<Bfloat16Moments>(&moments_)) {
    all = {array("adam.m", DType::bf16, b->m), array("adam.v", DType::bf16, b->v)};
  } else {
    const Int8Moments& i = std::get<Int8Moments>(moments_);
    all = {array("adam.m", DType::u8, i.m), array("adam.v", DType::u8, i.v),
           array("adam.m_scale", DType::f32, i.m_scale), array("adam.v_scale", DType::f32, i.v_scale)};
  }
  if (!ema_.empty()) all.push_back(array("ema", DType::f32, ema_));
  if (!last_.empty()) all.push_back(array("adam.rows_step", DType::i32, last_));
  return all;
}

}  // namespace qkv
