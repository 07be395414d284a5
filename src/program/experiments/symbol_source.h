// Generated text of which the entropy is known: the probability of each symbol given all before it can be computed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"

namespace qkv {

// Plain symbols 0 … symbols − 1 follow p(v) ∝ exp(Σ_i strength/i · w_i[x_{t−i}, v]) over the last `order` symbols, with
// random weights w of variance 1. An opening bracket symbols + b may stand at any place where none is open; it is
// closed by symbols + brackets + b, at any distance from it.
struct SymbolShape {
  int64_t symbols = 16, order = 2, brackets = 0;
  double strength = 1.5;
  double opens = 0.1, closes = 0.1;  // probability of a bracket at each place where it may stand

  int64_t vocab() const { return symbols + 2 * brackets; }
};

class SymbolSource {
 public:
  SymbolSource(const SymbolShape& shape, uint64_t seed);

  const SymbolShape& shape() const { return shape_; }
  std::vector<int32_t> text(int64_t length, Random& random) const;
  // Returns −log p of each symbol given those before it, in nats. Its mean estimates the entropy rate.
  std::vector<double> losses(std::span<const int32_t> text) const;

 private:
  // Assigns the probabilities of the next symbol. open: the bracket that is open, or −1.
  void next(std::span<const int32_t> before, int64_t open, std::vector<double>& p) const;

  SymbolShape shape_;
  std::vector<double> weights_;  // [order, vocab, symbols]
};

}  // namespace qkv
