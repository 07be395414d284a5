// Softmax and cross-entropy: ops/cross_entropy.h, ops/r_drop.h. A warp has a row.
#include <cmath>
#include <vector>

#include "arguments.h"
#include "grid.h"
#include "softmax.h"
#include "table.h"
#include "warp.h"

namespace qkv::cuda {

// The labels of rows: q_v = ε/V + (1 − ε) [v = target]
struct Labels {
  const int32_t* targets;
  float smoothing;

  __device__ float probability(int64_t n, int64_t v, int64_t V) const {
    return smoothing / float(V) + (v == targets[n] ? 1 - smoothing : 0);
  }
};

struct RowLoss {
  float loss, nll;
};

// Returns −Σ_v q_v log p_v and −log p_t of a row of logits.
template <class T>
__device__ RowLoss loss_of_row(Matrix<const T> logits, int64_t n, const Labels& labels, float lse) {
  const float nll = lse - logits(n, labels.targets[n]);
  if (labels.smoothing == 0) return {nll, nll};  // a logit of −∞ would give 0 · ∞
  float sum = 0;
  for (int64_t v = lane_number(); v < logits.cols; v += kLanes) sum += lse - logits(n, v);
  return {(1 - labels.smoothing) * nll + labels.smoothing / float(logits.cols) * warp_sum(sum), nll};
}

template <class T>
__device__ float row_log_sum_exp(Matrix<const T> logits, int64_t n) {
  return log_sum_exp(logits.cols, [&](int64_t v) { return float(logits(n, v)); });
}

namespace kernel {

// loss_n, nll_n
template <class T>
__global__ void cross_entropy(Matrix<const T> logits, Labels labels, float* loss, float* nll) {
  const int64_t n = warp_number();
  if (n >= logits.rows) return;
  const RowLoss row = loss_of_row(logits, n, labels, row_log_sum_exp(logits, n));
  if (lane_number() == 0) loss[n] = row.loss, nll[n] = row.nll;
}

// The same, and logits ← scale · (p − q)
template <class T>
__global__ void cross_entropy_with_gradient(Matrix<T> logits, Labels labels, float scale, float* loss, float* nll) {
  const int64_t n = warp_number();
  if (n >= logits.rows) return;
  const float lse = row_log_sum_exp<T>(logits, n);
  const RowLoss row = loss_of_row<T>(logits, n, labels, lse);
  __syncwarp();  // all lanes have read the row
  for (int64_t v = lane_number(); v < logits.cols; v += kLanes)
    logits(n, v) = T(scale * (std::exp(logits(n, v) - lse) - labels.probability(n, v, logits.cols)));
  if (lane_number() == 0) loss[n] = row.loss, nll[n] = row.nll;
}

// logits ← log softmax(logits)
template <class T>
__global__ void log_softmax(Matrix<T> logits) {
  const int64_t n = warp_number();
  if (n >= logits.rows) return;
  const float lse = row_log_sum_exp<T>(logits, n);
  for (int64_t v = lane_number(); v < logits.cols; v += kLanes) logits(n, v) = T(logits(n, v) - lse);
}

// sums_b = Σ loss over the rows of block b, in order. A thread has a block.
__global__ void sum_blocks_of_losses(const float* loss, int64_t N, int64_t block, Matrix<double> sums) {
  const Place at = place_in(1, sums.cols);
  if (!at.inside) return;
  double sum = 0;
  for (int64_t n = at.col * block; n < N && n < (at.col + 1) * block; n++) sum += loss[n];
  sums(0, at.col) = sum;
}

// With log p, log q of rows a, b and d = log p − log q:
//   loss = ½ (loss_a + loss_b) + α/4 (KL(p‖q) + KL(q‖p)),   KL(p‖q) = Σ p d,   KL(q‖p) = −Σ q d
//   a ← ½ (p − label) + α/4 (p (d − KL(p‖q)) + p − q),      b ← the same with p and q swapped
template <class T>
__global__ void r_drop_with_gradient(Matrix<T> a, Matrix<T> b, Labels labels, float alpha, float* loss, float* nll) {
  const int64_t n = warp_number(), V = a.cols;
  if (n >= a.rows) return;
  const float a_lse = row_log_sum_exp<T>(a, n), b_lse = row_log_sum_exp<T>(b, n);
  const RowLoss a_loss = loss_of_row<T>(a, n, labels, a_lse), b_loss = loss_of_row<T>(b, n, labels, b_lse);
  float kl_pq = 0, kl_qp = 0;
  for (int64_t v = lane_number(); v < V; v += kLanes) {
    const float log_p = a(n, v) - a_lse, log_q = b(n, v) - b_lse;
    kl_pq += std::exp(log_p) * (log_p - log_q);
    kl_qp -= std::exp(log_q) * (log_p - log_q);
  }
  kl_pq = warp_sum(kl_pq), kl_qp = warp_sum(kl_qp);
  __syncwarp();  // all lanes have read the rows
  for (int64_t v = lane_number(); v < V; v += kLanes) {
    const float log_p = a(n, v) - a_lse, log_q = b(n, v) - b_lse, p = std::exp(log_p), q = std::exp(log_q);
    const float d = log_p - log_q, label = labels.probability(n, v, V);
    a(n, v) = T((p - label) / 2 + alpha / 4 * (p * (d - kl_pq) + p - q));
    b(n, v) = T((q - label) / 2 + alpha / 4 * (q * (-d - kl_qp) + q - p));
  }
  if (lane_number() > 0) return;
  loss[n] = (a_loss.loss + b_loss.loss) / 2 + alpha / 4 * (kl_pq + kl_qp);
  nll[n] = (a_loss.nll + b_loss.nll) / 2;
}

}  // namespace kernel

namespace {

void cross_entropy(qkv_element e, qkv_matrix logits, const int32_t* targets, float smoothing, float* loss, float* nll) {
  with_type(e, [&]<class T>(T) {
    launch_warps(logits.rows, kernel::cross_entropy<T>, matrix<const T>(logits), Labels{targets, smoothing}, loss, nll);
  });
}

void cross_entropy_with_gradient(qkv_element e, qkv_matrix logits, const int32_t* targets, float smoothing, float scale,
                                 float* loss, float* nll) {
  with_type(e, [&]<class T>(T) {
    launch_warps(logits.rows, kernel::cross_entropy_with_gradient<T>, matrix<T>(logits), Labels{targets, smoothing},
                 scale, loss, nll);
  });
}

void log_softmax(qkv_element e, qkv_matrix logits) {
  with_type(e, [&]<class T>(T) { launch_warps(logits.rows, kernel::log_softmax<T>, matrix<T>(logits)); });
}

void sum_losses(const float* loss, int64_t N, int64_t block, double* sum) {
  const int64_t blocks = blocks_for(N, block);
  std::vector<double> sums(static_cast<size_t>(blocks));
  if (blocks > 0) {
    const Matrix<double> on_device(workspace<double>(blocks), 1, blocks);
    launch_elements(1, blocks, kernel::sum_blocks_of_losses, loss, N, block, on_device);
    download(sums.data(), on_device.data, sums.size() * sizeof(double));
  }
  *sum = 0;
  for (const double part : sums) *sum += part;
}

void r_drop_with_gradient(qkv_element e, qkv_matrix a, qkv_matrix b, const int32_t* targets, float smoothing,
                          float alpha, float* loss, float* nll) {
  with_type(e, [&]<class T>(T) {
    launch_warps(a.rows, kernel::r_drop_with_gradient<T>, matrix<T>(a), matrix<T>(b), Labels{targets, smoothing}, alpha,
                 loss, nll);
  });
}

}  // namespace

void add_cross_entropy(qkv_device& t) {
  t.cross_entropy = entry<cross_entropy>;
  t.cross_entropy_with_gradient = entry<cross_entropy_with_gradient>;
  t.log_softmax = entry<log_softmax>;
  t.sum_losses = entry<sum_losses>;
  t.r_drop_with_gradient = entry<r_drop_with_gradient>;
}

}  // namespace qkv::cuda
