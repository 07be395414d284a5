#include "model/layers/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ops/distance_bias.h"

namespace qkv {

// In float32, with the operations of transformers in their order: a distance at the border of two buckets must round to
// the same one.
int64_t relative_bucket(int64_t distance, const AttentionConfig& config, bool causal) {
  const int64_t n = causal ? config.relative_buckets : config.relative_buckets / 2, exact = n / 2;
  const int64_t first = !causal && distance > 0 ? n : 0;
  const int64_t x = causal ? std::max<int64_t>(-distance, 0) : std::abs(distance);
  if (x < exact) return first + x;
  const double range = std::log(static_cast<double>(config.relative_distance) / static_cast<double>(exact));
  const float share = std::log(static_cast<float>(x) / static_cast<float>(exact)) / static_cast<float>(range) *
                      static_cast<float>(n - exact);
  return first + std::min(exact + static_cast<int64_t>(share), n - 1);
}

template <class Real>
RelativeBias<Real>::RelativeBias(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                                 bool causal)
    : weight_(list.add(name + ".weight", {config.attention.relative_buckets, config.attention.heads},
                       Init::gaussian(1 / std::sqrt(static_cast<double>(config.d_model))))),
      heads_(config.attention.heads) {
  // All distances from relative_distance on have the same bucket.
  const int64_t reach = std::min(config.attention.relative_distance, config.max_length);
  for (int64_t distance = -reach; distance <= reach; distance++)
    buckets_.push_back(static_cast<int32_t>(relative_bucket(distance, config.attention, causal)));
}

template <class Real>
DistanceBias<const Statistic<Real>> RelativeBias<Real>::distances(Arena& arena) const {
  const int64_t width = std::ssize(buckets_);
  const auto bias = arena.matrix<Statistic<Real>>(heads_, width);
  distance_bias<Real>(weight_->matrix(), buckets_, bias);
  return {bias.data, width / 2};
}

template <class Real>
void RelativeBias<Real>::backward(const Statistic<Real>* ddistances) const {
  if (!weight_->gradient) return;  // frozen
  const Matrix<const Statistic<Real>> dbias(ddistances, heads_, std::ssize(buckets_));
  distance_bias_backward(dbias, buckets_, weight_->gradient_matrix());
}

QKV_FOR_ELEMENTS(template class RelativeBias);

}  // namespace qkv
