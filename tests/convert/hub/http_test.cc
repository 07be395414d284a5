// URLs as errors show them.
#include "convert/hub/http.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(WithoutPassword, NothingOfANameAndAPasswordIsShown) {
  EXPECT_EQ(without_password("https://huggingface.co"), "https://huggingface.co");
  EXPECT_EQ(without_password("https://me:secret@hub.local:8080/a?b=c"), "https://***@hub.local:8080/a?b=c");
  EXPECT_EQ(without_password("https://token@hub.local"), "https://***@hub.local");
  EXPECT_EQ(without_password("https://me:se@cr/et@hub.local/a"), "https://***@hub.local/a");
  EXPECT_EQ(without_password("me:secret@hub.local"), "***@hub.local");
  EXPECT_EQ(without_password(""), "");
}

}  // namespace
}  // namespace qkv
