#include "ops/next_tokens.h"

#include "core/to_size.h"
#include "device/ops/command.h"

namespace qkv {
namespace {

template <class T>
Matrix<Device<float>> float_logits(Matrix<const Device<T>> X, Matrix<const Device<T>> W, const Device<T>* b,
                                   Arena& scratch, float cap) {
  const Matrix<Device<float>> logits = scratch.matrix<Device<float>>(X.rows, W.rows);
  Command c("logits");
  c(c->logits(kElement<Device<T>>, raw(X), raw(W), raw(b), cap, raw(logits)));
  return logits;
}

}  // namespace

template <class T>
void next_tokens(Matrix<const Device<T>> X, Matrix<const Device<T>> W, const Device<T>* b,
                 std::span<const int32_t> hidden, const NextTokens& next, Arena& scratch, float cap) {
  const Arena::Scope scope(scratch);
  const Matrix<Device<float>> logits = float_logits(X, W, b, scratch, cap);
  const int64_t N = X.rows, k = next.tokens.cols;
  const auto floats_of = [&](int64_t count) { return floats(scratch.take<Device<float>>(count)); };
  auto* const tokens = static_cast<int32_t*>(raw(scratch.take<Device<int32_t>>(N * k)));
  const qkv_next_tokens found{k,           floats_of(N * k), tokens, floats_of(N * std::ssize(hidden)), floats_of(N),
                              floats_of(N)};
  Command c("next_tokens");
  c(c->next_tokens(raw(logits), c.numbers(hidden), std::ssize(hidden), &found));
  const auto fetch = [&]<class Number>(Number* to, const Number* from, int64_t count) {
    if (count > 0) c(c->download(to, from, to_size(count) * sizeof(Number)));
  };
  fetch(next.logits.data, found.logits, N * k);
  fetch(next.tokens.data, found.tokens, N * k);
  fetch(next.hidden.data, found.hidden, N * std::ssize(hidden));
  fetch(next.lse, found.lse, N);
  fetch(next.lse_seen, found.lse_seen, N);
}

template <class T>
void logits_to_host(Matrix<const Device<T>> X, Matrix<const Device<T>> W, const Device<T>* b, Matrix<float> logits,
                    Arena& scratch, float cap) {
  const Arena::Scope scope(scratch);
  const Matrix<Device<float>> found = float_logits(X, W, b, scratch, cap);
  Command c("download");
  if (logits.rows > 0) c(c->download(logits.data, raw(found.data), to_size(logits.rows * logits.cols) * sizeof(float)));
}

#define QKV_INSTANTIATE(T)                                                                                           \
  template void next_tokens(Matrix<const T>, Matrix<const T>, const T*, std::span<const int32_t>, const NextTokens&, \
                            Arena&, float);                                                                          \
  template void logits_to_host(Matrix<const T>, Matrix<const T>, const T*, Matrix<float>, Arena&, float);
QKV_FOR_DEVICE_ELEMENTS(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
