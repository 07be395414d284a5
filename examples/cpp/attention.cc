// Scaled dot-product attention and its gradients on arrays, causal, with several heads: attention
#include "qkv/attention.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr int64_t T = 4, H = 2, Dh = 8;  // tokens of one sequence, heads, width of a head

// An array [H, T, Dh] of standard normal numbers.
std::vector<float> random_array(std::mt19937& generator) {
  std::normal_distribution<float> normal;
  std::vector<float> x(H * T * Dh);
  for (float& value : x) value = normal(generator);
  return x;
}

// Element e of head h of token n is x[(h T + n) Dh + e].
template <class Real>
qkv::Heads<Real> heads(Real* x) {
  return {x, Dh, T * Dh, H * T * Dh};
}

}  // namespace

int main() {
  std::mt19937 generator(1);
  std::vector<float> q = random_array(generator);
  const std::vector<float> k = random_array(generator), v = random_array(generator);
  const std::vector<float> dout = random_array(generator);  // the gradient of a loss, here Σ dout ∘ out

  qkv::AttentionInput<float> in;
  in.sequences = {.count = 1, .T = T, .S = T};
  in.heads = H;
  in.key_width = in.value_width = Dh;
  in.scale = 1 / std::sqrt(static_cast<float>(Dh));
  in.causal = qkv::Causal::bottom_right;  // a token sees itself and those before it
  in.q = heads<const float>(q.data());
  in.k = heads<const float>(k.data());
  in.v = heads<const float>(v.data());

  // The caller provides the memory, so that a loop of calls allocates nothing.
  std::vector<float> out(q.size()), lse(H * T);
  std::vector<std::byte> workspace(qkv::attention_workspace(in));
  const auto forward = [&] { qkv::attention<float>(in, heads(out.data()), {lse.data(), 1, T}, workspace); };
  forward();
  std::cout << "the first token sees only itself: " << out[0] << " = " << v[0] << "\n";

  std::vector<float> dq(q.size()), dk(q.size()), dv(q.size());
  std::vector<std::byte> backward_workspace(qkv::attention_backward_workspace(in));
  qkv::AttentionGradients<float> gradients;
  gradients.dq = heads(dq.data()), gradients.dk = heads(dk.data()), gradients.dv = heads(dv.data());
  qkv::attention_backward<float>(in, heads<const float>(out.data()), {lse.data(), 1, T},
                                 heads<const float>(dout.data()), gradients, backward_workspace);

  // The gradient of one number of q is the change of the loss when it changes a little.
  const auto loss = [&] {
    forward();
    return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
  };
  const size_t one = (T - 1) * Dh;
  const float h = 1e-2f, before = q[one];
  q[one] = before + h;
  const double above = loss();
  q[one] = before - h;
  const double below = loss();
  std::cout << "gradient of one number: " << dq[one] << ", measured " << (above - below) / (2 * h) << "\n";
}
