#include <vector>

#include "host_device/arguments.h"
#include "host_device/table.h"
#include "ops/reference/cross_entropy_reference.h"
#include "ops/reference/gathered_logits_reference.h"
#include "ops/reference/linear_reference.h"
#include "ops/reference/next_tokens_reference.h"
#include "ops/reference/r_drop_reference.h"
#include "ops/reference/sampled_loss_reference.h"
#include "ops/reference/softcap_reference.h"

namespace qkv::host_device {
namespace {

void cross_entropy(qkv_element e, qkv_matrix logits, const int32_t* targets, float smoothing, float* loss, float* nll) {
  reference::cross_entropy<float>(Floats(e, logits), numbers(targets, logits.rows), smoothing, loss, nll);
}

void cross_entropy_with_gradient(qkv_element e, qkv_matrix logits, const int32_t* targets, float smoothing, float scale,
                                 float* loss, float* nll) {
  reference::cross_entropy_with_gradient<float>(Result(e, logits), numbers(targets, logits.rows), smoothing, scale,
                                                loss, nll);
}

void log_softmax(qkv_element e, qkv_matrix logits) { reference::log_softmax<float>(Result(e, logits)); }

void sum_losses(const float* loss, int64_t N, int64_t block, double* sum) {
  *sum = 0;
  for (int64_t begin = 0; begin < N; begin += block) {
    double part = 0;
    for (int64_t n = begin; n < std::min(N, begin + block); n++) part += loss[n];
    *sum += part;
  }
}

void r_drop_with_gradient(qkv_element e, qkv_matrix a, qkv_matrix b, const int32_t* targets, float smoothing,
                          float alpha, float* loss, float* nll) {
  reference::r_drop_with_gradient<float>(Result(e, a), Result(e, b), numbers(targets, a.rows), smoothing, alpha, loss,
                                         nll);
}

void softcap_backward(qkv_element e, qkv_matrix y, float cap, qkv_matrix d) {
  reference::softcap_backward<float>(Floats(e, y), cap, Result(e, d));
}

void sampled_loss(qkv_element e, qkv_sampled_loss kind, const float* log_draws, qkv_matrix scores, float* loss) {
  const Result result(e, scores);
  const Matrix<float> s = result.matrix();
  for (int64_t n = 0; n < s.rows; n++)
    loss[n] = kind.kind == QKV_SAMPLED_SOFTMAX
                  ? reference::sampled_softmax_loss(log_draws + n * s.cols, s.row(n), s.cols)
                  : reference::binary_loss(static_cast<float>(kind.beta), s(n, 0), s.row(n) + 1, s.cols - 1);
}

void shared_sampled_loss(qkv_element e, qkv_sampled_loss kind, const int32_t* labels, const int32_t* ids,
                         qkv_matrix scores, float* loss) {
  const Result result(e, scores);
  const Matrix<float> s = result.matrix();
  const int64_t K = s.cols - 1;
  reference::hide_labels<float>(numbers(labels, s.rows), numbers(ids, K), s);
  if (kind.kind == QKV_SAMPLED_SOFTMAX) {
    const std::vector<int32_t> target(to_size(s.rows), static_cast<int32_t>(K));
    std::vector<float> nll(to_size(s.rows));
    return reference::cross_entropy_with_gradient<float>(s, target, 0, 1, loss, nll.data());
  }
  for (int64_t n = 0; n < s.rows; n++)
    loss[n] = reference::binary_loss(static_cast<float>(kind.beta), s(n, K), s.row(n), K);
}

void logits(qkv_element e, qkv_matrix X, qkv_matrix W, const void* b, float cap, qkv_matrix to) {
  reference::linear<float>(Floats(e, X), Floats(e, W), Vector(e, b, to.cols), floats(to));
  if (cap != 0) reference::softcap<float>(floats(to), cap);
}

void next_tokens(qkv_matrix logits, const int32_t* hidden, int64_t hidden_count, const qkv_next_tokens* next) {
  const int64_t N = logits.rows, k = next->k;
  reference::next_tokens(
      floats(logits), numbers(hidden, hidden_count),
      {{next->logits, N, k}, {next->tokens, N, k}, {next->hidden, N, hidden_count}, next->lse, next->lse_seen});
}

void gathered_logits(qkv_element e, qkv_matrix h, qkv_matrix E, const int32_t* ids, qkv_matrix s) {
  reference::gathered_logits<float>(Floats(e, h), Floats(e, E), {ids, s.rows, s.cols}, Result(e, s));
}

void gathered_logits_backward(qkv_element e, qkv_matrix h, qkv_matrix E, const int32_t* ids, qkv_matrix ds,
                              qkv_matrix dh, qkv_matrix dE) {
  reference::gathered_logits_backward<float>(Floats(e, h), Floats(e, E), {ids, ds.rows, ds.cols}, Floats(e, ds),
                                             Result(e, dh), floats(dE));
}

}  // namespace

void add_losses(qkv_device& t) {
  t.cross_entropy = entry<cross_entropy>;
  t.cross_entropy_with_gradient = entry<cross_entropy_with_gradient>;
  t.log_softmax = entry<log_softmax>;
  t.sum_losses = entry<sum_losses>;
  t.r_drop_with_gradient = entry<r_drop_with_gradient>;
  t.softcap_backward = entry<softcap_backward>;
  t.sampled_loss = entry<sampled_loss>;
  t.shared_sampled_loss = entry<shared_sampled_loss>;
  t.logits = entry<logits>;
  t.next_tokens = entry<next_tokens>;
  t.gathered_logits = entry<gathered_logits>;
  t.gathered_logits_backward = entry<gathered_logits_backward>;
}

}  // namespace qkv::host_device
