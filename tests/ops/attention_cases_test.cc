// The operator cases of ONNX's Attention that qkv's attention covers.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/to_size.h"
#include "qkv/attention.h"
#include "tests/support/npz.h"
#include "tests/support/numeric.h"

namespace qkv::testing {
namespace {

struct Case {
  std::string name;
  double scale = 0;              // 0: 1 / √d_k
  Causal causal = Causal::none;  // ONNX aligns at the top left
  int64_t heads = 0;             // for three-dimensional tensors [batch, tokens, heads · width]
  double softcap = 0;
};

// Returns keys or values [batch, heads, tokens, width], with those of the past first.
Array append_tokens(const Array& past, const Array& now) {
  Array both;
  both.shape = now.shape;
  both.shape[2] += past.shape[2];
  const int64_t a = past.shape[2] * past.shape[3], b = now.shape[2] * now.shape[3];
  for (int64_t i = 0; i < now.shape[0] * now.shape[1]; i++) {
    both.values.insert(both.values.end(), past.values.begin() + i * a, past.values.begin() + (i + 1) * a);
    both.values.insert(both.values.end(), now.values.begin() + i * b, now.values.begin() + (i + 1) * b);
  }
  return both;
}

// Returns the mask of every batch and head: [batch, heads, T, S].
template <class Real>
std::vector<Real> whole_mask(const Case& c, const std::map<std::string, Array>& npz, int64_t B, int64_t H, int64_t T,
                             int64_t S) {
  Array mask{{1, 1, 1, 1}, {0}};
  const bool given = npz.count("input_3");
  if (given) mask = npz.at("input_3");
  while (mask.shape.size() < 4) mask.shape.insert(mask.shape.begin(), 1);
  const auto at = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t place[] = {b, h, i, j};
    int64_t index = 0;
    for (size_t axis = 0; axis < 4; axis++)
      index = index * mask.shape[axis] + (mask.shape[axis] == 1 ? 0 : place[axis]);
    return mask.values[to_size(index)];
  };
  const bool boolean = c.name.find("bool") != c.name.npos;
  std::vector<Real> whole;
  for (int64_t b = 0; b < B; b++)
    for (int64_t h = 0; h < H; h++)
      for (int64_t i = 0; i < T; i++)
        for (int64_t j = 0; j < S; j++) {
          const double m = at(b, h, i, j);
          const bool hidden = boolean && m == 0;
          whole.push_back(hidden ? -std::numeric_limits<Real>::infinity() : boolean ? Real(0) : static_cast<Real>(m));
        }
  return whole;
}

template <class Real>
void expect_case(const Case& c, double tolerance) {
  const auto npz = read_npz(QKV_SHARED_DIR "/cases/attention/" + c.name + ".npz");
  Array Q = npz.at("input_0"), K = npz.at("input_1"), V = npz.at("input_2"), Y = npz.at("output_0");
  if (npz.count("input_4")) {
    K = append_tokens(npz.at("input_4"), K), V = append_tokens(npz.at("input_5"), V);
    EXPECT_EQ(max_error(K.values, npz.at("output_1").values), 0);
    EXPECT_EQ(max_error(V.values, npz.at("output_2").values), 0);
  }
  const bool flat = c.heads;  // [batch, tokens, heads · width], otherwise [batch, heads, tokens, width]
  const int64_t B = Q.shape[0], T = Q.shape[flat ? 1 : 2], S = K.shape[flat ? 1 : 2];
  const int64_t H = flat ? c.heads : Q.shape[1], G = flat ? c.heads : K.shape[1];
  const auto view = [&](auto* data, int64_t heads, int64_t tokens, int64_t width) {
    using Data = std::remove_pointer_t<decltype(data)>;
    const int64_t all = heads * tokens * width;
    return flat ? Heads<Data>{data, heads * width, width, all} : Heads<Data>{data, width, tokens * width, all};
  };
  const auto q = Q.as<Real>(), k = K.as<Real>(), v = V.as<Real>();
  const auto mask = whole_mask<Real>(c, npz, B, H, T, S);
  std::vector<Real> out(Y.values.size());
  AttentionInput<Real> in;
  in.heads = H, in.kv_heads = G;
  in.key_width = Q.shape.back() / (flat ? H : 1), in.value_width = V.shape.back() / (flat ? H : 1);
  in.q = view(q.data(), H, T, in.key_width), in.k = view(k.data(), G, S, in.key_width);
  in.v = view(v.data(), G, S, in.value_width);
  in.sequences = {B, nullptr, nullptr, nullptr, nullptr, T, S};
  in.scale = static_cast<Real>(c.scale ? c.scale : 1 / std::sqrt(static_cast<double>(in.key_width)));
  in.softcap = static_cast<Real>(c.softcap);
  in.causal = c.causal;
  in.mask = {mask.data(), H * T * S, T * S, S};
  std::vector<std::byte> workspace(attention_workspace(in));
  attention<Real>(in, view(out.data(), H, T, in.value_width), {}, workspace);
  EXPECT_LE(max_error(out, Y.values), tolerance) << c.name;
}

TEST(AttentionCases, AgreeWithOnnx) {
  if (!std::filesystem::exists(QKV_SHARED_DIR)) GTEST_SKIP() << "skipped: ../shared not present";
  const std::vector<Case> cases = {{"attention_4d"},
                                   {"attention_4d_causal", 0, Causal::top_left},
                                   {"attention_4d_attn_mask_3d"},
                                   {"attention_4d_attn_mask_bool_4d"},
                                   {"attention_4d_gqa"},
                                   {"attention_4d_gqa_causal", 0, Causal::top_left},
                                   {"attention_4d_softcap", 0, Causal::none, 0, 2},
                                   {"attention_4d_diff_heads_sizes"},
                                   {"attention_4d_scaled", static_cast<double>(0.01f)},
                                   {"attention_3d", 0, Causal::none, 3},
                                   {"attention_4d_with_past_and_present"},
                                   {"attention_23_boolmask_fullymasked_row_nan_robustness"}};
  for (const Case& c : cases) {
    expect_case<double>(c, 2e-7);  // the files hold float32
    expect_case<float>(c, 1e-6);
  }
}

}  // namespace
}  // namespace qkv::testing
