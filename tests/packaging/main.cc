// A program that links qkv: one score, one attention as the README calls it, one error, one line of output.
#include <cmath>
#include <iostream>
#include <vector>

#include "qkv/qkv.h"

// The first query of a causal head sees one key: its output is that key's value.
bool attends() {
  const int64_t B = 2, H = 3, T = 5, Dh = 4;
  std::vector<float> q(B * H * T * Dh, 0.5f), k = q, v = q, out(q.size());
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<float>(i);
  qkv::AttentionInput<float> in;
  in.sequences = {.count = B, .T = T, .S = T};
  in.heads = H, in.key_width = in.value_width = Dh, in.scale = 1 / std::sqrt(float(Dh));
  in.causal = qkv::Causal::bottom_right;
  in.q = {q.data(), Dh, T * Dh, H * T * Dh}, in.k = {k.data(), Dh, T * Dh, H * T * Dh};
  in.v = {v.data(), Dh, T * Dh, H * T * Dh};
  std::vector<std::byte> workspace(qkv::attention_workspace(in));
  qkv::attention<float>(in, {out.data(), Dh, T * Dh, H * T * Dh}, {}, workspace);
  return std::abs(out[T * Dh + 1] - v[T * Dh + 1]) < 1e-4f;
}

int main() {
  const double score = qkv::bleu({"the cat sat on the mat"}, {"the cat sat on the mat"}).score;
  try {
    const qkv::Translator translator("/nonexistent");
  } catch (const qkv::Error& error) {
    std::cout << qkv::version() << ": " << score << ", " << error.what() << "\n";
    return score > 99.9 && attends() ? 0 : 1;
  }
  return 1;
}
