// Attention with random arguments. Arrays are views of the middle of one buffer, and strides and offsets stay within
// it, because the memory behind a pointer is the only thing that cannot be checked.
#include "qkv/attention.h"
#include "tests/properties/random_arguments.h"

namespace qkv::testing {
namespace {

constexpr int64_t kTokens = 12, kHeads = 4, kWidth = 9, kBatch = 3;
constexpr int64_t kReach = 4 * kBatch * kTokens * kHeads * kWidth;  // of any element, from the middle of a buffer

template <class T>
class AttentionCall {
 public:
  using Real = Arithmetic<T>;

  explicit AttentionCall(Arguments& a) : a_(a), numbers_(to_size(2 * kReach)), reals_(to_size(2 * kReach)) {
    for (T& x : numbers_) x = T(static_cast<float>(a.random().normal()));
    for (Real& x : reals_) x = static_cast<Real>(a.random().normal());
    in_.heads = a.size(kHeads);
    in_.kv_heads = a.one_in(2) ? 0 : a.size(kHeads);
    in_.key_width = a.size(kWidth), in_.value_width = a.size(kWidth);
    in_.scale = static_cast<Real>(a.one_in(3) ? a.real() : 0.5);
    in_.softcap = static_cast<Real>(a.one_in(3) ? a.real() : 0);
    in_.causal = static_cast<Causal>(a.up_to(2));
    if (a.one_in(3)) in_.window = {a.size(kTokens), a.size(kTokens)};
    if (a.one_in(4)) in_.dropout = {static_cast<float>(a.real()), 1, 2, 3};
    set_sequences();
    in_.q = heads<const T>(), in_.k = heads<const T>(), in_.v = heads<const T>();
    if (a.one_in(4)) in_.mask = mask<const Real>(real());
    if (a.one_in(8)) in_.allowed = mask<const uint8_t>(allowed_);
    if (a.one_in(6)) in_.alibi = real();
    if (a.one_in(4)) in_.distance_bias = {real(), a.size(kTokens)};
  }

  void run() {
    std::vector<std::byte> workspace(workspace_bytes(attention_workspace<T>(in_)));
    attention<T>(in_, own_heads<T>(out_), own_heads<Real>(lse_), workspace);
    const AttentionRows rows{a_.index(kBatch), a_.index(kHeads), a_.up_to(2), a_.size(kTokens)};
    std::vector<Real> A(to_size(2 * kTokens * kTokens * kBatch));
    if (a_.one_in(2))
      attention_weights<T>(in_, heads<const Real>(real()), rows, A.data(),
                           a_.one_in(2) ? 0 : a_.up_to(2 * kTokens) - 1);
    std::vector<std::byte> more(workspace_bytes(attention_backward_workspace<T>(in_)));
    AttentionGradients<T> gradients{own_heads<T>(dq_), own_heads<T>(dk_), own_heads<T>(dv_), {}, nullptr};
    if (a_.one_in(4)) gradients.dmask = mask<Real>(own_real(dmask_));
    if (a_.one_in(2)) gradients.ddistance_bias = own_real(ddistances_);
    attention_backward<T>(in_, heads<const T>(), heads<const Real>(real()), heads<const T>(), gradients, more);
  }

 private:
  // Ranges that are usually valid: consecutive, and within kTokens.
  void set_sequences() {
    Sequences& x = in_.sequences;
    x.count = a_.one_in(20) ? a_.absurd_integer() : a_.up_to(kBatch);
    x.T = a_.size(kTokens), x.S = a_.size(kTokens);
    if (x.count > kBatch && x.count < int64_t{1} << 31) x.count = kBatch;
    for (std::vector<int32_t>* offsets : {&queries_, &keys_}) {
      offsets->push_back(0);
      for (int64_t s = 0; s < kBatch; s++)
        offsets->push_back(std::min<int32_t>(kTokens, offsets->back() + static_cast<int32_t>(a_.up_to(4))));
      if (a_.one_in(10)) (*offsets)[to_size(a_.up_to(kBatch))] = static_cast<int32_t>(a_.up_to(2 * kTokens)) - kTokens;
    }
    if (a_.one_in(2)) x.q_begin = queries_.data(), x.q_end = queries_.data() + 1;
    if (a_.one_in(2)) x.k_begin = keys_.data(), x.k_end = keys_.data() + 1;
    if (a_.one_in(20)) x.q_begin = nullptr;
    if (a_.one_in(20)) x.k_end = nullptr;
  }

  size_t workspace_bytes(size_t needed) {
    if (needed > size_t{1} << 26) fail_large();
    return a_.one_in(30) ? needed / 2 : needed;
  }
  [[noreturn]] static void fail_large() { throw Error("a workspace that is too large for the test"); }

  const Real* real() { return a_.one_in(50) ? nullptr : reals_.data() + kReach; }
  Real* own_real(std::vector<Real>& memory) {
    memory.resize(to_size(2 * kReach));
    return memory.data() + kReach;
  }

  // Strides within the buffer, for the numbers of heads and tokens that are valid here.
  template <class E>
  Heads<E> with_strides(E* data) {
    const int64_t width = std::clamp<int64_t>(std::max(in_.key_width, in_.value_width), 1, kWidth);
    Heads<E> h{data, kHeads * width, width, kTokens * kHeads * width};
    if (a_.one_in(2)) h = {data, width, kTokens * width, kHeads * kTokens * width};
    if (in_.sequences.q_begin && in_.sequences.k_begin) h.sequence_stride = 0;
    if (a_.one_in(10)) h.token_stride = a_.up_to(2 * kWidth) - kWidth;
    if (a_.one_in(10)) h.head_stride = a_.up_to(2 * kWidth) - kWidth;
    if (a_.one_in(10)) h.sequence_stride = a_.up_to(2 * kWidth) - kWidth;
    if (a_.one_in(100)) h.data = nullptr;
    return h;
  }
  template <class E>
  Heads<E> heads() {
    return with_strides<E>(numbers_.data() + kReach);
  }
  template <class E>
  Heads<E> heads(E* data) {
    return with_strides<E>(data);
  }
  template <class E>
  Heads<E> own_heads(std::vector<E>& memory) {
    memory.resize(to_size(2 * kReach));
    return with_strides<E>(memory.data() + kReach);
  }
  template <class E, class M>
  AttentionMask<E> mask(M* data) {
    const auto stride = [&](int64_t most) { return a_.one_in(3) ? 0 : a_.one_in(3) ? a_.up_to(most) : most; };
    return {data, stride(kHeads * kTokens * kTokens), stride(kTokens * kTokens), stride(kTokens),
            a_.one_in(5) ? a_.up_to(2) : 1};
  }

  Arguments& a_;
  std::vector<T> numbers_, out_, dq_, dk_, dv_;
  std::vector<Real> reals_, lse_, dmask_, ddistances_;
  uint8_t allowed_[kReach] = {1, 0, 1};
  std::vector<int32_t> queries_, keys_;
  AttentionInput<T> in_;
};

TEST(RandomCalls, OfAttentionSucceedOrThrow) {
  make_calls(calls(3000), [](Arguments& a) { AttentionCall<float>(a).run(); });
  make_calls(calls(1000), [](Arguments& a) { AttentionCall<double>(a).run(); });
  make_calls(calls(1000), [](Arguments& a) { AttentionCall<bfloat16>(a).run(); });
}

}  // namespace
}  // namespace qkv::testing
