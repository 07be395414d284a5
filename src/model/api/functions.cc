// The functions of qkv/layers.h: positional encoding, softmax and cross-entropy.
#include <algorithm>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "model/api/check_matrix.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/rows.h"
#include "ops/softmax.h"
#include "qkv/layers.h"

namespace qkv::layers {
namespace {

template <class A, class B>
void check_same_shape(const char* function, const char* name, Matrix<A> found, Matrix<B> wanted) {
  check_matrix(function, name, found);
  if (found.rows != wanted.rows || found.cols != wanted.cols)
    fail("{}: {} has shape [{}, {}], expected [{}, {}]", function, name, found.rows, found.cols, wanted.rows,
         wanted.cols);
}

void check_cross_entropy(int64_t N, int64_t V, std::span<const int32_t> labels, double smoothing, int32_t ignored) {
  if (std::ssize(labels) != N) fail("cross_entropy: expected {} labels, found {}", N, labels.size());
  if (!(smoothing >= 0 && smoothing < 1))
    fail("cross_entropy: label_smoothing must be at least 0 and below 1 (is {})", smoothing);
  for (const int32_t label : labels)
    if (label != ignored && (label < 0 || label >= V))
      fail("cross_entropy: labels must be from 0 to {}, or {} (found {})", V - 1, ignored, label);
}

// Calls f(begin, end) for each run of rows whose label is not `ignored`.
template <class F>
void for_runs(std::span<const int32_t> labels, int32_t ignored, F&& f) {
  for (size_t begin = 0; begin < labels.size();) {
    size_t end = begin;
    while (end < labels.size() && labels[end] != ignored) end++;
    if (end > begin) f(static_cast<int64_t>(begin), static_cast<int64_t>(end));
    begin = end + 1;
  }
}

}  // namespace

template <class Real>
void positional_encoding(Matrix<Real> P, Positions kind) {
  ModelConfig config;
  config.positions = kind;
  check_matrix("positional_encoding", "P", P);
  if (!config.has_sinusoids()) fail("positional_encoding: kind must be sinusoidal (is {})", name_of(kind));
  if (kind != Positions::interleaved && (P.cols % 2 != 0 || P.cols < 4))
    fail("positional_encoding: the width must be even and at least 4 (is {})", P.cols);
  if (P.rows > 0) sinusoidal_positions(kind, P);  // no rows may have any width
}

template <class Real>
void softmax(Matrix<const Real> x, Matrix<Real> y) {
  check_matrix("softmax", "x", x);
  check_same_shape("softmax", "y", y, x);
  if (x.cols > 0) qkv::softmax(x, y);
}

template <class Real>
void softmax_backward(Matrix<const Real> y, Matrix<const Real> dy, Matrix<Real> dx) {
  check_matrix("softmax_backward", "y", y);
  check_same_shape("softmax_backward", "dy", dy, y);
  check_same_shape("softmax_backward", "dx", dx, y);
  if (y.cols > 0) qkv::softmax_backward(y, dy, dx);
}

template <class Real>
CrossEntropy cross_entropy(Matrix<const Real> logits, std::span<const int32_t> labels, double label_smoothing,
                           Matrix<Real> dlogits, int32_t ignored) {
  check_matrix("cross_entropy", "logits", logits);
  check_cross_entropy(logits.rows, logits.cols, labels, label_smoothing, ignored);
  if (dlogits.data) check_same_shape("cross_entropy", "dlogits", dlogits, logits);
  CrossEntropy result;
  result.tokens = std::ssize(labels) - std::ranges::count(labels, ignored);
  if (dlogits.data && dlogits.data != logits.data) copy_rows<Real>(logits, dlogits);
  std::vector<Real> loss(labels.size()), nll(labels.size());
  const Real smoothing = static_cast<Real>(label_smoothing);
  const Real scale = static_cast<Real>(1 / static_cast<double>(std::max<int64_t>(result.tokens, 1)));
  for_runs(labels, ignored, [&](int64_t begin, int64_t end) {
    const std::span<const int32_t> run = labels.subspan(to_size(begin), to_size(end - begin));
    if (dlogits.data)
      cross_entropy_with_gradient(dlogits.row_range(begin, end), run, smoothing, scale, &loss[to_size(begin)],
                                  &nll[to_size(begin)]);
    else
      qkv::cross_entropy(logits.row_range(begin, end), run, smoothing, &loss[to_size(begin)], &nll[to_size(begin)]);
  });
  for (size_t n = 0; n < labels.size(); n++) {
    result.loss += static_cast<double>(loss[n]);
    result.nll += static_cast<double>(nll[n]);
    if (dlogits.data && labels[n] == ignored) std::fill_n(dlogits.row(static_cast<int64_t>(n)), dlogits.cols, Real(0));
  }
  result.loss /= static_cast<double>(std::max<int64_t>(result.tokens, 1));
  result.nll /= static_cast<double>(std::max<int64_t>(result.tokens, 1));
  return result;
}

template void positional_encoding(Matrix<float>, Positions);
template void positional_encoding(Matrix<double>, Positions);
template void softmax(Matrix<const float>, Matrix<float>);
template void softmax(Matrix<const double>, Matrix<double>);
template void softmax_backward(Matrix<const float>, Matrix<const float>, Matrix<float>);
template void softmax_backward(Matrix<const double>, Matrix<const double>, Matrix<double>);
template CrossEntropy cross_entropy(Matrix<const float>, std::span<const int32_t>, double, Matrix<float>, int32_t);
template CrossEntropy cross_entropy(Matrix<const double>, std::span<const int32_t>, double, Matrix<double>, int32_t);

}  // namespace qkv::layers
