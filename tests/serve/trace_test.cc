// The header traceparent: what is taken, and what is dropped.
#include "serve/metrics/trace.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace qkv {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736", kSpan = "00f067aa0ba902b7";
const std::string kHeader = "00-" + kTrace + "-" + kSpan + "-01";

TEST(Trace, IsReadFromTheHeader) {
  const auto context = parse_traceparent(kHeader);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace, kTrace);
  EXPECT_EQ(context->parent, kSpan);
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(parse_traceparent("00-" + kTrace + "-" + kSpan + "-00")->sampled);
  EXPECT_FALSE(parse_traceparent("00-" + kTrace + "-" + kSpan + "-fe")->sampled);
  EXPECT_TRUE(parse_traceparent("00-" + kTrace + "-" + kSpan + "-0b")->sampled);
}

TEST(Trace, IsDroppedUnlessItIsOfVersion00) {
  const std::vector<std::string> headers = {"",
                                            "00",
                                            "01-" + kTrace + "-" + kSpan + "-01",
                                            "ff-" + kTrace + "-" + kSpan + "-01",
                                            kHeader + "-",
                                            kHeader + " ",
                                            " " + kHeader,
                                            kHeader + "-extra",
                                            "00-" + std::string(32, '0') + "-" + kSpan + "-01",
                                            "00-" + kTrace + "-" + std::string(16, '0') + "-01"};
  for (const std::string& header : headers) EXPECT_FALSE(parse_traceparent(header)) << header;
}

TEST(Trace, IsDroppedWithACharacterThatIsNoLowerCaseHexadecimalDigit) {
  for (size_t i = 0; i < kHeader.size(); i++)
    for (const char c : {'A', 'F', 'g', 'G', '/', ':', '`', ' ', '\0', '\x80'}) {
      std::string header = kHeader;
      header[i] = c;
      EXPECT_FALSE(parse_traceparent(header)) << header;
    }
}

TEST(Trace, IsDroppedWhenItIsCut) {
  for (size_t size = 0; size < kHeader.size(); size++) EXPECT_FALSE(parse_traceparent(kHeader.substr(0, size)));
}

TEST(Trace, GivesASpanThatIsNewAndValid) {
  std::set<std::string> spans;
  for (int i = 0; i < 1000; i++) {
    const std::string span = new_span();
    EXPECT_TRUE(parse_traceparent("00-" + kTrace + "-" + span + "-01")) << span;
    spans.insert(span);
  }
  EXPECT_EQ(spans.size(), 1000u);
}

}  // namespace
}  // namespace qkv
