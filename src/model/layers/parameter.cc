#include "model/layers/parameter.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/fail.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {

template <class Real>
int64_t Parameter<Real>::size() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

template <class Real>
const Parameter<Real>* ParameterList<Real>::add(std::string name, std::vector<int64_t> shape, Init init, int least_bits,
                                                bool joined) {
  if (shares_) {
    const auto declared = std::ranges::find(parameters_, name, &Parameter<Real>::name);
    if (declared == parameters_.end() || declared->shape != shape) fail("model: {} cannot be shared", name);
    return &*declared;
  }
  parameters_.push_back({std::move(name), std::move(shape), init, least_bits, joined});
  return &parameters_.back();
}

template <class Real>
int64_t ParameterList<Real>::size() const {
  int64_t total = 0;
  for (const auto& p : parameters_) total += p.size();
  return total;
}

template <class Real>
void ParameterList<Real>::allocate() {
  const Matrix<Real> block =
      value_memory_.matrix<Real>(1, size());  // fresh pages are zero and take no memory until used
  place({block.data, to_size(block.cols)});
}

template <class Real>
void ParameterList<Real>::place(std::span<Real> values) {
  values_ = values;
  Real* next = values.data();
  for (auto& p : parameters_) {
    p.value = next;
    next += p.size();
  }
}

template <class Real>
void ParameterList<Real>::use(std::span<const Real> values, std::shared_ptr<const void> owner) {
  place({const_cast<Real*>(values.data()), values.size()});
  owners_.push_back(std::move(owner));
}

template <class Real>
void ParameterList<Real>::use_int8(size_t parameter, const Int8Matrix& weights, std::shared_ptr<const void> owner) {
  parameters_[parameter].int8 = weights;
  owners_.push_back(std::move(owner));
}

template <class Real>
void ParameterList<Real>::use_int4(size_t parameter, const Int4Matrix& weights, std::shared_ptr<const void> owner) {
  parameters_[parameter].int4 = weights;
  owners_.push_back(std::move(owner));
}

template <class Real>
void ParameterList<Real>::close_gaps() {
  Real* next = values_.data();
  for (auto& p : parameters_) {
    p.value = p.is_quantized() ? nullptr : next;
    if (p.value) next += p.size();
  }
  values_ = values_.first(to_size(next - values_.data()));
}

template <class Real>
void ParameterList<Real>::allocate_gradients() {
  int64_t total = 0;
  for (size_t i = 0; i < parameters_.size(); i++)
    if (has_gradient(i)) total += parameters_[i].size();
  const auto block = gradient_memory_.matrix<Statistic<Real>>(1, total);
  gradients_ = {block.data, to_size(block.cols)};
  Statistic<Real>* next = block.data;
  for (size_t i = 0; i < parameters_.size(); i++) {
    parameters_[i].gradient = has_gradient(i) ? next : nullptr;
    if (has_gradient(i)) next += parameters_[i].size();
  }
}

// The matrices of a linear layer have gradients together, because they are computed as one matrix.
template <class Real>
bool ParameterList<Real>::has_gradient(size_t i) const {
  if (parameters_[i].shape.size() == 1) return true;
  size_t first = i, last = i;
  while (parameters_[first].joined) first--;
  while (last + 1 < parameters_.size() && parameters_[last + 1].joined) last++;
  for (size_t j = first; j <= last; j++)
    if (!parameters_[j].frozen) return true;
  return false;
}

template <class Real>
void ParameterList<Real>::freeze(const std::function<bool(const Parameter<Real>&)>& is_frozen) {
  for (auto& p : parameters_) p.frozen = is_frozen(p);
}

template <class Real>
std::vector<typename ParameterList<Real>::Range> ParameterList<Real>::trained_ranges() const {
  std::vector<Range> ranges;
  bool open = false;  // whether the last range ends here
  int64_t value = 0, gradient = 0;
  for (size_t i = 0; i < parameters_.size(); i++) {
    const int64_t size = parameters_[i].size();
    const bool trained = !parameters_[i].frozen;
    if (trained && !open) ranges.push_back({value, gradient, 0});
    if (trained) ranges.back().size += size;
    open = trained;
    value += size;
    if (has_gradient(i)) gradient += size;
  }
  return ranges;
}

template <class Real>
int64_t ParameterList<Real>::trained_size() const {
  int64_t total = 0;
  for (const auto& p : parameters_) total += p.frozen ? 0 : p.size();
  return total;
}

template <class Real>
void ParameterList<Real>::add_update(size_t parameter, LowRank<Real> update) {
  for (; parameters_[parameter].joined; parameter--) {
    const int64_t outputs = parameters_[parameter - 1].shape[0];
    update.begin += outputs, update.end += outputs;
  }
  parameters_[parameter].updates.push_back(update);
}

template <class Real>
void ParameterList<Real>::initialize(uint64_t seed, double deviation) {
  parallel_for(static_cast<int64_t>(parameters_.size()), [&](int64_t i) {
    const Parameter<Real>& p = parameters_[to_size(i)];
    const bool noisy = p.init.uniform > 0 || p.init.normal > 0;
    const Init init = deviation > 0 && noisy ? Init{p.init.mean, 0, deviation} : p.init;
    initial_values(init, Random(seed, Stream::parameters, static_cast<uint64_t>(i)), p.value, p.size());
  });
}

QKV_FOR_ELEMENTS(template struct Parameter);
QKV_FOR_ELEMENTS(template class ParameterList);

}  // namespace qkv
