// Compiles the layers and the Transformer for elements that the host cannot read: an error here is a place above the
// ops that touches a number. Parts that exist for float only are left out. The result is not linked, because no op is
// defined for these elements yet.
#include "core/device.h"
#include "model/layers/attention.cc"
#include "model/layers/embedding.cc"
#include "model/layers/feed_forward.cc"
#include "model/layers/finite_check.cc"
#include "model/layers/linear.cc"
#include "model/layers/low_rank.cc"
#include "model/layers/norm.cc"
#include "model/layers/output.cc"
#include "model/layers/parameter.cc"
#include "model/layers/position_tables.cc"
#include "model/layers/relative_bias.cc"
#include "model/layers/residual.cc"
#include "model/layers/sampled_loss.cc"
#include "model/stack.cc"
#include "model/transformer.cc"

namespace qkv {

#define QKV_FOR_ELEMENT(T)                                                                                      \
  template struct Parameter<T>;                                                                                 \
  template class ParameterList<T>;                                                                              \
  template class PositionTables<T>;                                                                             \
  template struct LowRank<T>;                                                                                   \
  template class Linear<T>;                                                                                     \
  template class Norm<T>;                                                                                       \
  template class Embedding<T>;                                                                                  \
  template class RelativeBias<T>;                                                                               \
  template class MultiHeadAttention<T>;                                                                         \
  template class FeedForward<T>;                                                                                \
  template class Residual<T>;                                                                                   \
  template class Output<T>;                                                                                     \
  template class Layer<T>;                                                                                      \
  template class Stack<T>;                                                                                      \
  template class Transformer<T>;                                                                                \
  template Loss sampled_loss_and_gradient(const Parameter<T>&, Matrix<const T>, const Candidates&, SampledLoss, \
                                          Matrix<T>, Context&);                                                 \
  template Loss shared_loss_and_gradient(const Parameter<T>&, Matrix<const T>, std::span<const int32_t>,        \
                                         const SharedNegatives&, SampledLoss, Matrix<T>, Context&)
QKV_FOR_ELEMENT(Device<float>);
QKV_FOR_ELEMENT(Device<bfloat16>);
#undef QKV_FOR_ELEMENT

}  // namespace qkv
