#include "program/experiments/symbol_source.h"

#include <algorithm>
#include <cmath>

#include "core/to_size.h"
#include "program/experiments/random_vectors.h"

namespace qkv {
namespace {

constexpr uint64_t kSourceIndex = 1000;  // of the stream of its weights

// Returns the bracket that is open after a symbol, or −1.
int64_t open_after(const SymbolShape& shape, int64_t open, int32_t symbol) {
  if (symbol < shape.symbols) return open;
  return symbol < shape.symbols + shape.brackets ? symbol - shape.symbols : -1;
}

}  // namespace

SymbolSource::SymbolSource(const SymbolShape& shape, uint64_t seed) : shape_(shape) {
  Random random(seed, Stream::test, kSourceIndex);
  weights_ = normal_numbers<double>(shape.order * shape.vocab() * shape.symbols, random);
}

void SymbolSource::next(std::span<const int32_t> before, int64_t open, std::vector<double>& p) const {
  const auto [symbols, order, brackets, strength, opens, closes] = shape_;
  p.assign(to_size(shape_.vocab()), 0);
  for (int64_t i = 1; i <= std::min(order, std::ssize(before)); i++) {
    const int64_t row = (i - 1) * shape_.vocab() + before[before.size() - to_size(i)];
    for (int64_t v = 0; v < symbols; v++)
      p[to_size(v)] += strength / static_cast<double>(i) * weights_[to_size(row * symbols + v)];
  }
  double sum = 0;
  for (int64_t v = 0; v < symbols; v++) sum += p[to_size(v)] = std::exp(p[to_size(v)]);
  const double bracket = brackets == 0 ? 0 : open < 0 ? opens : closes;
  for (int64_t v = 0; v < symbols; v++) p[to_size(v)] *= (1 - bracket) / sum;
  for (int64_t b = 0; b < brackets; b++)
    if (open < 0)
      p[to_size(symbols + b)] = bracket / static_cast<double>(brackets);
    else if (b == open)
      p[to_size(symbols + brackets + b)] = bracket;
}

std::vector<int32_t> SymbolSource::text(int64_t length, Random& random) const {
  std::vector<int32_t> text;
  std::vector<double> p;
  int64_t open = -1;
  for (int64_t t = 0; t < length; t++) {
    next(text, open, p);
    double rest = random.uniform();
    size_t symbol = 0;
    while (symbol + 1 < p.size() && (rest -= p[symbol]) > 0) symbol++;
    while (p[symbol] == 0) symbol--;  // after rounding of the last sum
    text.push_back(static_cast<int32_t>(symbol));
    open = open_after(shape_, open, text.back());
  }
  return text;
}

std::vector<double> SymbolSource::losses(std::span<const int32_t> text) const {
  std::vector<double> losses, p;
  int64_t open = -1;
  for (size_t t = 0; t < text.size(); t++) {
    next(text.first(t), open, p);
    losses.push_back(-std::log(p[to_size(text[t])]));
    open = open_after(shape_, open, text[t]);
  }
  return losses;
}

}  // namespace qkv
