#include "data/examples/shuffled_rows.h"

#include <numeric>

#include "core/random.h"
#include "core/to_size.h"

namespace qkv {

std::vector<int64_t> shuffled_rows(int64_t rows, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(to_size(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  Random(seed, Stream::shuffle, static_cast<uint64_t>(epoch)).shuffle(order);
  return order;
}

}  // namespace qkv
