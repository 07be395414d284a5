#include "data/examples/shuffled_rows.h"

#include <algorithm>
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

void for_blocks_of_rows(int64_t rows, FunctionRef<void(std::span<const int64_t>)> visit) {
  constexpr int64_t kRows = 2048;  // of a block
  std::vector<int64_t> numbers;
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    numbers.resize(to_size(std::min(kRows, rows - begin)));
    std::iota(numbers.begin(), numbers.end(), begin);
    visit(numbers);
  }
}

}  // namespace qkv
