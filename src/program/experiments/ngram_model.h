// An n-gram language model with interpolated Kneser–Ney smoothing. Kneser, Ney, "Improved Backing-off for M-gram
// Language Modeling" (1995); Chen, Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling" (1999):
//   p_k(w | h) = max(c(h w) − D, 0) / c(h) + D N(h) / c(h) · p_{k−1}(w | h'),   p_0 = 1 / V
// h' is h without its first symbol, N(h) the number of symbols that follow h, D = n_1 / (n_1 + 2 n_2) with the numbers
// of k-grams counted once and twice. Below the highest order, c(h w) is the number of symbols that precede h w.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace qkv {

class NgramModel {
 public:
  // order: 1 to 5; vocab: 1 to 256. Texts are counted one by one, so no n-gram spans two.
  NgramModel(int64_t order, int64_t vocab, const std::vector<std::vector<int32_t>>& texts);

  // Returns p of a symbol, given all symbols before it in its text, of which the last order − 1 count.
  double probability(std::span<const int32_t> before, int32_t symbol) const;

 private:
  struct Followers {
    int64_t count = 0, symbols = 0;  // c(h), N(h)
  };
  struct Level {
    std::unordered_map<uint64_t, int64_t> grams;  // c(h w)
    std::unordered_map<uint64_t, Followers> contexts;
    double discount = 0;
  };

  void count_top(const std::vector<std::vector<int32_t>>& texts);
  void finish(Level& level);
  double probability(size_t order, std::span<const int32_t> before, int32_t symbol) const;

  int64_t vocab_;
  std::vector<Level> levels_;  // of orders 1, 2, …
};

}  // namespace qkv
