#include "qkv/error.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(Error, IsOneLineWhateverTheNamesInIt) {
  EXPECT_STREQ(Error("a\nb\r\t\x7f: cannot be read").what(), "a?b???: cannot be read");
  EXPECT_STREQ(Error("Übung: ok").what(), "Übung: ok");
}

}  // namespace
}  // namespace qkv
