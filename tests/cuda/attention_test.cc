// Attention of the CUDA plugin against the references, with every option.
#include "ops/cached_attention.h"
#include "ops/reference/cached_attention_reference.h"
#include "tests/cuda/device_matrix.h"
#include "tests/ops/attention_error.h"

namespace qkv {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;
using testing::DeviceMatrix;
using testing::for_each_element;
using testing::normal;
using testing::on_device;
using testing::relative_error;
using testing::tolerance_of;

const std::vector<std::pair<const char*, AttentionShape>> kCases = {
    {"plain, over several warps and columns", {.T = {1, 40, 0}, .S = {70, 33, 5}, .key_width = 7, .value_width = 130}},
    {"causal, over several tiles",
     {.T = {70, 130}, .S = {70, 140}, .heads = 2, .key_width = 40, .value_width = 64, .causal = Causal::bottom_right}},
    {"window, over several tiles of wide rows",
     {.T = {65, 20}, .S = {200, 9}, .key_width = 128, .value_width = 90, .window = {100, 30}}},
    {"causal, grouped heads, gaps",
     {.T = {9, 3}, .S = {9, 7}, .heads = 4, .causal = Causal::bottom_right, .gap = 3, .kv_heads = 2}},
    {"causal from the first key", {.T = {6, 4}, .S = {4, 6}, .heads = 2, .causal = Causal::top_left}},
    {"window, softcap, wide keys", {.T = {40}, .S = {50}, .key_width = 140, .window = {5, 2}, .softcap = 2}},
    {"dropout, alibi", {.T = {5, 36}, .S = {5, 36}, .heads = 3, .dropout = 0.3f, .alibi = true}},
    {"mask", {.T = {5, 4}, .S = {7, 36}, .heads = 2, .mask = true}},
    {"mask that repeats over heads and rows",
     {.T = {5, 4}, .S = {7, 9}, .heads = 2, .mask = true, .repeats = testing::kHeads | testing::kRows}},
    {"mask that repeats over sequences and keys",
     {.T = {5, 4}, .S = {7, 9}, .heads = 2, .mask = true, .repeats = testing::kSequences | testing::kKeys}},
    {"distance bias, causal", {.T = {9, 3}, .S = {9, 3}, .heads = 2, .causal = Causal::bottom_right, .reach = 3}},
    {"distance bias of one bucket", {.T = {3}, .S = {8}, .reach = 0}},
    {"batch", {.T = {5, 5}, .S = {6, 6}, .heads = 2, .dropout = 0.2f, .batched = true}}};

// A problem in the memory of a device. Its numbers are those of another one on the host.
template <class T>
class DeviceProblem {
 public:
  DeviceProblem(Arena& arena, const AttentionProblem<double>& host) : arena_(arena), host_(host) {
    in_.sequences = host.input().sequences;
    const AttentionInput<double> in = host.input();
    in_.heads = in.heads, in_.kv_heads = in.kv_heads, in_.key_width = in.key_width, in_.value_width = in.value_width;
    in_.scale = static_cast<float>(in.scale), in_.softcap = static_cast<float>(in.softcap);
    in_.causal = in.causal, in_.window = in.window, in_.dropout = in.dropout;
    in_.q = at(in.q, host.q), in_.k = at(in.k, host.k), in_.v = at(in.v, host.v);
    if (in.mask.data) in_.mask = at<const Device<float>>(in.mask, on_device<float>(arena, host.mask));
    if (in.alibi) in_.alibi = on_device<float>(arena, host.slopes);
    if (in.distance_bias.data) in_.distance_bias = {on_device<float>(arena, host.distances), in.distance_bias.reach};
    dout_ = on_device<T>(arena, host.dout);
    out_ = on_device<T>(arena, untouched(host.out));
    dq_ = on_device<T>(arena, untouched(host.dq)), dk_ = on_device<T>(arena, untouched(host.dk));
    dv_ = on_device<T>(arena, untouched(host.dv));
    lse_ = on_device<float>(arena, host.lse);
    dmask_ = on_device<float>(arena, std::vector<double>(host.dmask.size()));
    ddistances_ = on_device<float>(arena, untouched(host.ddistances));
  }

  void run() {
    const int64_t width = in_.value_width;
    attention<Device<T>>(in_, host_.queries(out_, width), host_.rows(lse_), {});
    AttentionGradients<Device<T>> to = {
        host_.queries(dq_, in_.key_width), host_.keys(dk_, in_.key_width), host_.keys(dv_, width), {}};
    if (in_.mask.data) to.dmask = at<Device<float>>(host_.input().mask, dmask_);
    if (in_.distance_bias.data) to.ddistance_bias = ddistances_;
    const Device<T>*const out = out_, *const dout = dout_;
    attention_backward<Device<T>>(in_, host_.queries(out, width), host_.rows(lse()), host_.queries(dout, width), to,
                                  {});
  }

  // Expects the results of the host, where lse may be −∞.
  void expect_host(double tolerance) const {
    expect(out_, host_.out, tolerance), expect(dq_, host_.dq, tolerance);
    expect(dk_, host_.dk, tolerance), expect(dv_, host_.dv, tolerance);
    // A sum over all keys of a query is 0, since its terms cancel.
    const double terms = testing::largest_term(host_) * std::sqrt(static_cast<double>(host_.lse.size()));
    expect(dmask_, host_.dmask, tolerance, terms), expect(ddistances_, host_.ddistances, tolerance, terms);
    std::vector<float> found = testing::numbers_of(std::span(lse_, host_.lse.size()));
    std::vector<double> exact = host_.lse;
    for (size_t i = 0; i < exact.size(); i++)
      if (std::isinf(exact[i])) {
        EXPECT_EQ(found[i], exact[i]);
        found[i] = 0, exact[i] = 0;
      }
    EXPECT_LE(relative_error(found, exact), tolerance);
  }

  // Expects the weights of a head of a sequence.
  void expect_weights(int64_t s, int64_t h, double tolerance) const {
    const std::vector<double> exact = host_.weights(s, h);
    auto* const A = on_device<float>(arena_, exact);
    attention_weights<Device<T>>(in_, host_.rows(lse()), {s, h, 0, host_.shape.T[to_size(s)]}, A);
    expect(A, exact, tolerance);
  }

 private:
  const Device<float>* lse() const { return lse_; }
  static std::vector<double> untouched(const std::vector<double>& x) { return std::vector<double>(x.size(), 776); }

  // Views of the same shape on the device.
  Heads<const Device<T>> at(const Heads<const double>& view, const std::vector<double>& all) const {
    return {on_device<T>(arena_, all) + (view.data - all.data()), view.token_stride, view.head_stride,
            view.sequence_stride};
  }
  template <class U>
  static AttentionMask<U> at(const AttentionMask<const double>& view, Device<float>* data) {
    return {data, view.sequence_stride, view.head_stride, view.row_stride, view.key_stride};
  }

  template <class U>
  static void expect(const Device<U>* found, const std::vector<double>& exact, double tolerance, double least = 0) {
    std::vector<float> numbers(exact.size());
    download(found, numbers);
    std::vector<double> touched = exact;
    for (size_t i = 0; i < exact.size(); i++)
      if (exact[i] == 777) {  // what the reference has not written
        EXPECT_EQ(numbers[i], 776);
        numbers[i] = 0, touched[i] = 0;
      }
    double size = 0;
    for (const double value : touched) size += value * value;
    size = std::sqrt(size);
    EXPECT_LE(relative_error(numbers, touched) * (size > 0 ? size : 1), tolerance * std::max(size, least));
  }

  Arena& arena_;
  const AttentionProblem<double>& host_;
  AttentionInput<Device<T>> in_;
  Device<T>*dout_, *out_, *dq_, *dk_, *dv_;
  Device<float>*lse_, *dmask_, *ddistances_;
};

// Backward reads the rounded results of forward, whose error D = dO · O carries into dS = A ∘ (dA − D), and terms of dS
// cancel.
TEST(CudaAttention, IsThatOfTheReferenceWithEveryOption) {
  const testing::CudaDevice device;
  for (auto [name, shape] : kCases) {
    SCOPED_TRACE(name);
    shape.rounded = true;
    AttentionProblem<double> exact(shape);
    exact.plain();
    for_each_element([&]<class T>(T) {
      Arena arena;
      DeviceProblem<T> problem(arena, exact);
      problem.run();
      problem.expect_host(4 * tolerance_of<T>(shape.S[0] * shape.key_width));
      problem.expect_weights(0, shape.heads - 1, tolerance_of<float>(shape.S[0] * shape.key_width));
    });
  }
}

std::vector<double> rows_of_8(int64_t count, uint64_t seed) {
  return testing::representable<bfloat16>(count * 8, seed);
}

// Causal attention of a head of width 8 of the last queries of a text, each of which sees what is before it.
template <class T>
std::vector<float> attend_from(int64_t first, const std::vector<double>& q, const std::vector<double>& k,
                               const std::vector<double>& v) {
  Arena arena;
  const int64_t keys = std::ssize(k) / 8, queries = keys - first;
  AttentionInput<Device<T>> in;
  in.sequences = {.count = 1, .T = queries, .S = keys};
  in.key_width = in.value_width = 8, in.causal = Causal::bottom_right;
  const auto heads = [&](const std::vector<double>& x, int64_t begin) {
    return Heads<const Device<T>>{on_device<T>(arena, x) + begin * 8, 8, 8};
  };
  in.q = heads(q, first), in.k = heads(k, 0), in.v = heads(v, 0);
  Device<T>* const out = on_device<T>(arena, std::vector<double>(to_size(queries * 8)));
  attention<Device<T>>(in, Heads<Device<T>>{out, 8, 8}, {}, {});
  return testing::numbers_of(std::span(out, to_size(queries * 8)));
}

TEST(CudaAttention, ANaNStaysInItsRow) {
  const testing::CudaDevice device;
  std::vector<double> q = rows_of_8(40, 1);
  q[8 * 2] = std::nan("");
  for_each_element([&]<class T>(T) {
    const std::vector<float> found = attend_from<T>(0, q, rows_of_8(40, 2), rows_of_8(40, 3));
    for (size_t i = 0; i < found.size(); i++) EXPECT_EQ(std::isnan(found[i]), i / 8 == 2) << i;
  });
}

TEST(CudaAttention, QueriesDoNotDependOnOtherQueries) {
  const testing::CudaDevice device;
  const std::vector<double> q = rows_of_8(150, 1), k = rows_of_8(150, 2), v = rows_of_8(150, 3);
  for_each_element([&]<class T>(T) {
    const std::vector<float> all = attend_from<T>(0, q, k, v);
    for (const int64_t first : {1, 64, 70, 149})
      EXPECT_EQ(attend_from<T>(first, q, k, v), std::vector(all.begin() + first * 8, all.end())) << first;
  });
}

TEST(CudaAttention, AValueThatIsNotFiniteDoesNotReachQueriesThatDoNotSeeIt) {
  const testing::CudaDevice device;
  const std::vector<double> q = rows_of_8(150, 1), k = rows_of_8(150, 2), v = rows_of_8(150, 3);
  std::vector<double> infinite = v;
  infinite[100 * 8 + 2] = std::numeric_limits<double>::infinity();
  for_each_element([&]<class T>(T) {
    const std::vector<float> all = attend_from<T>(0, q, k, v), found = attend_from<T>(0, q, k, infinite);
    for (size_t i = 0; i < found.size(); i++)
      if (i % 8 == 2 && i / 8 >= 100)
        EXPECT_EQ(found[i], std::numeric_limits<float>::infinity()) << i;
      else
        EXPECT_NEAR(found[i], all[i], 0.02) << i;
  });
}

TEST(CudaCachedAttention, IsThatOfTheReference) {
  const testing::CudaDevice device;
  const std::vector<int32_t> rows = [] {
    std::vector<int32_t> r;
    for (int32_t i = 0; i < 90; i++) r.push_back(i * 37 % 80);
    return r;
  }();
  const std::vector<int32_t> begin = {0, 3, 3, 40}, end = {1, 3, 70, 90};  // the second has no keys
  for (const bool has_rows : {true, false})
    for_each_element([&]<class T>(T) {
      const int64_t H = 4, K = 2, dk = 6, dv = 9, reach = 4;
      Arena arena;
      DeviceMatrix<T> q(arena, {4, H * dk}, 1), cache(arena, {90, K * (dk + dv)}, 2), y(arena, {4, H * dv}, 3);
      const std::vector<double> slopes = testing::representable<float>(H, 4),
                                bias = testing::representable<float>(H * (2 * reach + 1), 5);
      const CachedKeys keys = {has_rows ? rows.data() : nullptr, begin.data(), end.data()};
      const CachedAttention<double> in = {q.host(),      cache.host(),        keys, H, K, dk, dv, 0.5, 3,
                                          slopes.data(), {bias.data(), reach}};
      const CachedAttention<Device<T>> on = {q.view(),
                                             cache.view(),
                                             keys,
                                             H,
                                             K,
                                             dk,
                                             dv,
                                             0.5f,
                                             3,
                                             on_device<float>(arena, slopes),
                                             {on_device<float>(arena, bias), reach}};
      cached_attention<Device<T>>(on, y.view(), arena);
      reference::cached_attention<double>(in, y.host());
      y.expect_host(tolerance_of<T>(70));
    });
}

TEST(CudaCachedAttention, QueriesDoNotDependOnOtherQueries) {
  const testing::CudaDevice device;
  const std::vector<int32_t> begin = {0, 7, 20, 20}, end = {50, 90, 70, 21}, one_begin = {20}, one_end = {70};
  for_each_element([&]<class T>(T) {
    Arena arena;
    const DeviceMatrix<T> q(arena, {4, 12}, 1), cache(arena, {90, 24}, 2), all(arena, {4, 12}, 3),
        one(arena, {1, 12}, 4);
    CachedAttention<Device<T>> in = {q.view(), cache.view(), {nullptr, begin.data(), end.data()}, 2, 2, 6, 6, 0.5f};
    cached_attention<Device<T>>(in, all.view(), arena);
    in.q = q.view().row_range(2, 3), in.keys = {nullptr, one_begin.data(), one_end.data()};
    cached_attention<Device<T>>(in, one.view(), arena);
    EXPECT_EQ(testing::numbers_of(std::span(all.view().row(2), 12)),
              testing::numbers_of(std::span(one.view().row(0), 12)));
  });
}

}  // namespace
}  // namespace qkv
