#include "core/placeholders.h"

#include <gtest/gtest.h>

#include "qkv/error.h"

namespace qkv {
namespace {

TEST(Placeholders, AreReplacedInTheTemplateAlone) {
  EXPECT_EQ(fill_in("a {{x}} b {{y}} c", {{"{{x}}", "{{y}}"}, {"{{y}}", "{{x}}"}}), "a {{y}} b {{x}} c");
  EXPECT_EQ(fill_in("{{x}}", {{"{{x}}", ""}}), "");
  EXPECT_EQ(fill_in("{{x}}", {}), "{{x}}");
}

TEST(Placeholders, MustBeInTheTemplateInOrder) {
  EXPECT_THROW(fill_in("a", {{"{{x}}", "1"}}), Error);
  EXPECT_THROW(fill_in("{{y}} {{x}}", {{"{{x}}", "1"}, {"{{y}}", "2"}}), Error);
}

}  // namespace
}  // namespace qkv
