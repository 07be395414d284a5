// The memory that vectors hold.
#include "core/vector_bytes.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(VectorBytes, CountElementsAndTheCharactersOfLongTexts) {
  EXPECT_EQ(vector_bytes(std::vector<int64_t>(7)), 56u);
  EXPECT_EQ(vector_bytes(std::vector<std::string>{"a", "b"}), 2 * sizeof(std::string));
  std::vector<std::string> one(1);
  one[0].assign(1000, 'x');
  EXPECT_EQ(vector_bytes(one), sizeof(std::string) + one[0].capacity() + 1);
}

}  // namespace
}  // namespace qkv
