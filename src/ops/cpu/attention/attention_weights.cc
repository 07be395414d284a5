// Attention weights for display. They are recomputed in the way that forward computed them, by tiles or by rows.
#include <vector>

#include "core/to_size.h"
#include "ops/cpu/attention/attention_check.h"
#include "ops/cpu/attention/attention_workspace.h"

namespace qkv {
namespace {

template <class T>
void weights_by_rows(const AttentionInput<T>& in, Heads<const float> lse, const AttentionRows& rows, Matrix<float> A) {
  const ForwardKernels<T> kernels = forward_kernels().of<T>();
  const Span at = span(in.sequences, rows.sequence);
  std::vector<std::byte> room(to_size(padded(at.S) + 3 * kLanes) * sizeof(float));
  float* a = Workspace(room).take<float>(padded(at.S) + 3);
  for (int64_t i = rows.begin; i < rows.end; i++)
    kernels.weights(in, rows.sequence, rows.head, i, *lse.at(rows.sequence, at.q0 + i, rows.head), a,
                    A.row(i - rows.begin));
}

template <class T>
void weights_by_tiles(const AttentionInput<T>& in, Heads<const float> lse, const AttentionRows& rows, Matrix<float> A) {
  const BackwardKernels<T> kernels = backward_kernels().of<T>();
  const BackwardCall<T> call{in, {}, lse, {}, {}};
  Workspace size;
  BackwardScratch(in, kBlockRows, 0, size);
  std::vector<std::byte> rooms(to_size(threads()) * size.bytes());
  parallel_blocks(A.rows, kBlockRows, [&](int64_t begin, int64_t end) {
    const size_t thread = to_size(thread_number());
    Workspace w(std::span<std::byte>(rooms).subspan(thread * size.bytes(), size.bytes()));
    const BackwardPart part{rows.sequence, {rows.head, rows.head + 1}, {rows.begin + begin, rows.begin + end}, {}};
    kernels.weights(call, part, A.row_range(begin, end), BackwardScratch(in, kBlockRows, 0, w));
  });
}

template <class T>
void compute_weights(const AttentionInput<T>& in, Heads<const float> lse, const AttentionRows& rows, float* data,
                     int64_t stride) {
  check_weights(in, lse, rows, data, stride);
  const Span at = span(in.sequences, rows.sequence);
  if (at.S == 0) return;  // lse and A may be null
  const Matrix<float> A(data, rows.end - rows.begin, at.S, stride ? stride : at.S);
  at.T > kFewQueries ? weights_by_tiles(in, lse, rows, A) : weights_by_rows(in, lse, rows, A);
}

}  // namespace

template <>
void attention_weights<float>(const AttentionInput<float>& in, Heads<const float> lse, const AttentionRows& rows,
                              float* A, int64_t stride) {
  compute_weights(in, lse, rows, A, stride);
}
template <>
void attention_weights<bfloat16>(const AttentionInput<bfloat16>& in, Heads<const float> lse, const AttentionRows& rows,
                                 float* A, int64_t stride) {
  compute_weights(in, lse, rows, A, stride);
}

}  // namespace qkv
