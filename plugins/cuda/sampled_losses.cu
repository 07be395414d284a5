// Losses over samples and their logits: ops/sampled_loss.h, ops/gathered_logits.h. A warp has a row.
#include <cmath>

#include "arguments.h"
#include "grid.h"
#include "ops/reference/sampled_loss_reference.h"
#include "softmax.h"
#include "table.h"
#include "warp.h"

namespace qkv::cuda {

// Scores of negatives that all rows have: before that of the next item, which is the last. A negative that is the label
// of a row does not count there.
template <class T>
struct SharedScores {
  using Element = T;
  Matrix<T> s;
  const int32_t *labels, *ids;

  __device__ int64_t positive() const { return s.cols - 1; }
  __device__ float operator()(int64_t n, int64_t k) const {
    return k < positive() && ids[k] == labels[n] ? float(reference::kHiddenScore) : float(s(n, k));
  }
};

// Scores of negatives of each row: after that of the next item, which is the first. log_draws may be null.
template <class T>
struct OwnScores {
  using Element = T;
  Matrix<T> s;
  const float* log_draws;

  __device__ int64_t positive() const { return 0; }
  __device__ float operator()(int64_t n, int64_t k) const {
    return float(s(n, k)) - (k > 0 && log_draws ? log_draws[n * s.cols + k] : 0);
  }
};

namespace kernel {

// loss_n = −log softmax of the positive, s ← softmax − [k is the positive]
template <class Scores>
__global__ void softmax_loss(Scores scores, float* loss) {
  using Element = typename Scores::Element;
  const int64_t n = warp_number();
  if (n >= scores.s.rows) return;
  const float lse = log_sum_exp(scores.s.cols, [&](int64_t k) { return scores(n, k); });
  const float positive = scores(n, scores.positive());
  __syncwarp();  // all lanes have read the row
  for (int64_t k = lane_number(); k < scores.s.cols; k += kLanes)
    scores.s(n, k) = Element(std::exp(scores(n, k) - lse) - (k == scores.positive() ? 1 : 0));
  if (lane_number() == 0) loss[n] = lse - positive;
}

// loss_n = −β log σ(s of the positive) − Σ log(1 − σ(s of a negative)), s ← its gradient
template <class Scores>
__global__ void binary_loss(Scores scores, float beta, float* loss) {
  using Element = typename Scores::Element;
  const int64_t n = warp_number();
  if (n >= scores.s.rows) return;
  float sum = 0;
  for (int64_t k = lane_number(); k < scores.s.cols; k += kLanes) {
    const float x = scores(n, k);
    const bool positive = k == scores.positive();
    sum += positive ? beta * reference::softplus(-x) : reference::softplus(x);
    scores.s(n, k) = Element(positive ? -beta * reference::sigmoid(-x) : reference::sigmoid(x));
  }
  sum = warp_sum(sum);
  if (lane_number() == 0) loss[n] = sum;
}

// s(n, k) = h_n · E[ids(n, k)]. A warp has a logit.
template <class T>
__global__ void gathered_logits(Matrix<const T> h, Matrix<const T> E, const int32_t* ids, Matrix<T> s) {
  const int64_t i = warp_number();
  if (i >= s.rows * s.cols) return;
  const int64_t n = i / s.cols, k = i % s.cols, id = ids[i];
  float sum = 0;
  for (int64_t c = lane_number(); c < h.cols; c += kLanes) sum += h(n, c) * E(id, c);
  sum = warp_sum(sum);
  if (lane_number() == 0) s(n, k) = T(sum);
}

// dh_n = Σ_k ds(n, k) E[ids(n, k)]
template <class T>
__global__ void hidden_gradient(Matrix<const T> E, const int32_t* ids, Matrix<const T> ds, Matrix<T> dh) {
  const Place at = place_in(dh.rows, dh.cols);
  if (!at.inside) return;
  float sum = 0;
  for (int64_t k = 0; k < ds.cols; k++) sum += ds(at.row, k) * E(ids[at.row * ds.cols + k], at.col);
  dh(at.row, at.col) = T(sum);
}

// dE[id] += Σ ds(n, k) h_n over the n, k of the id, in order. A warp has a row of dE.
template <class T>
__global__ void table_gradient(Matrix<const T> h, const int32_t* ids, Matrix<const T> ds, Matrix<float> dE) {
  const int64_t id = warp_number();
  if (id >= dE.rows) return;
  for_each_match(ids, ds.rows * ds.cols, id, [&](int64_t i) {
    const int64_t n = i / ds.cols;
    for (int64_t c = lane_number(); c < dE.cols; c += kLanes) dE(id, c) += ds(n, i % ds.cols) * h(n, c);
  });
}

}  // namespace kernel

namespace {

template <class Scores>
void loss_of(qkv_sampled_loss kind, const Scores& scores, float* loss) {
  if (kind.kind == QKV_SAMPLED_SOFTMAX)
    launch_warps(scores.s.rows, kernel::softmax_loss<Scores>, scores, loss);
  else
    launch_warps(scores.s.rows, kernel::binary_loss<Scores>, scores, static_cast<float>(kind.beta), loss);
}

void sampled_loss(qkv_element e, qkv_sampled_loss kind, const float* log_draws, qkv_matrix s, float* loss) {
  const float* const draws = kind.kind == QKV_SAMPLED_SOFTMAX ? log_draws : nullptr;
  with_type(e, [&]<class T>(T) { loss_of(kind, OwnScores<T>{matrix<T>(s), draws}, loss); });
}

void shared_sampled_loss(qkv_element e, qkv_sampled_loss kind, const int32_t* labels, const int32_t* ids, qkv_matrix s,
                         float* loss) {
  with_type(e, [&]<class T>(T) { loss_of(kind, SharedScores<T>{matrix<T>(s), labels, ids}, loss); });
}

void gathered_logits(qkv_element e, qkv_matrix h, qkv_matrix E, const int32_t* ids, qkv_matrix s) {
  with_type(e, [&]<class T>(T) {
    launch_warps(s.rows * s.cols, kernel::gathered_logits<T>, matrix<const T>(h), matrix<const T>(E), ids,
                 matrix<T>(s));
  });
}

void gathered_logits_backward(qkv_element e, qkv_matrix h, qkv_matrix E, const int32_t* ids, qkv_matrix ds,
                              qkv_matrix dh, qkv_matrix dE) {
  with_type(e, [&]<class T>(T) {
    launch_elements(dh.rows, dh.cols, kernel::hidden_gradient<T>, matrix<const T>(E), ids, matrix<const T>(ds),
                    matrix<T>(dh));
    launch_warps(dE.rows, kernel::table_gradient<T>, matrix<const T>(h), ids, matrix<const T>(ds), matrix<float>(dE));
  });
}

}  // namespace

void add_sampled_losses(qkv_device& t) {
  t.sampled_loss = entry<sampled_loss>;
  t.shared_sampled_loss = entry<shared_sampled_loss>;
  t.gathered_logits = entry<gathered_logits>;
  t.gathered_logits_backward = entry<gathered_logits_backward>;
}

}  // namespace qkv::cuda
