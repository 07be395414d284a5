// Sizes and times as text.
#include <gtest/gtest.h>

#include <limits>

#include "qkv/field.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

TEST(Bytes, AreReadWithAUnit) {
  constexpr int64_t K = 1024;
  for (const auto& [text, bytes] : {std::pair("0", int64_t{0}),
                                    {"500", 500},
                                    {"64K", 64 * K},
                                    {"64k", 64 * K},
                                    {"2M", 2 * K * K},
                                    {"2 M", 2 * K * K},
                                    {"1G", K * K * K},
                                    {"1GiB", K * K * K},
                                    {"3 mib", 3 * K * K},
                                    {"7T", 7 * K * K * K * K},
                                    {"0T", 0},
                                    {"007", 7},
                                    {"9223372036854775807", std::numeric_limits<int64_t>::max()},
                                    {"8388607T", 8388607 * K * K * K * K}})
    EXPECT_EQ(parse_bytes(text), bytes) << text;
}

TEST(Bytes, AreRefusedInAnotherForm) {
  for (const std::string text : {"",         "K",
                                 "-1",       "+1",
                                 "1.5M",     "1e6",
                                 "2MB",      "2B",
                                 "2 ",       " 2",
                                 "2  M",     "2M ",
                                 "2P",       "M2",
                                 "0x10",     "1,000",
                                 "inf",      "9223372036854775808",
                                 "8388608T", "99999999999999999999999",
                                 "2Mi",      "2\xc3\xa9"})
    EXPECT_EQ(error_of([&] { parse_bytes(text); }),
              "must be a size in bytes, such as 500, 64K, 2M or 1G (is \"" + text + "\")");
}

TEST(Durations, AreReadWithAUnit) {
  for (const auto& [text, seconds] : {std::pair("0", 0.0),
                                      {"5", 5},
                                      {"0.25", 0.25},
                                      {"60 s", 60},
                                      {"60s", 60},
                                      {"500ms", 0.5},
                                      {"9 MS", 0.009},
                                      {"1.5 min", 90},
                                      {"2h", 7200},
                                      {"1e3", 1000},
                                      {"1000000000", 1e9}})
    EXPECT_EQ(parse_duration(text), seconds) << text;
}

TEST(Durations, AreRefusedInAnotherForm) {
  for (const std::string text : {"", "s", "-1", "+1", ".5", "1m", "1 d", "5 ", " 5", "5  s", "inf", "nan", "1e400",
                                 "1000000001", "300000h", "0x10s", "5s5", "5,5"})
    EXPECT_EQ(error_of([&] { parse_duration(text); }),
              "must be a time such as 5, 500ms, 60s, 2min or 1h (is \"" + text + "\")");
}

TEST(Quantities, AreWrittenAsTheyAreRead) {
  for (const auto& [bytes, text] : {std::pair(int64_t{0}, "0"),
                                    {1, "1"},
                                    {1023, "1023"},
                                    {1024, "1K"},
                                    {1536, "1536"},
                                    {2 << 20, "2M"},
                                    {(2 << 20) + 1024, "2049K"},
                                    {int64_t{1} << 50, "1024T"}}) {
    EXPECT_EQ(bytes_text(bytes), text);
    EXPECT_EQ(parse_bytes(text), bytes);
  }
  for (const auto& [seconds, text] : {std::pair(0.0, "0s"),
                                      {60.0, "60s"},
                                      {75.0, "75s"},
                                      {0.5, "500ms"},
                                      {1.5, "1500ms"},
                                      {3600.0, "1h"},
                                      {86400.0, "24h"},
                                      {6000.0, "6000s"},
                                      {600000.0, "600000s"},
                                      {1'800'000.0, "500h"},
                                      {90060.0, "90060s"},
                                      {0.0005, "0.0005s"}}) {
    EXPECT_EQ(duration_text(seconds), text);
    EXPECT_EQ(parse_duration(text), seconds);
  }
}

TEST(Quantities, AreCheckedAgainstTheRangeOfTheirField) {
  int64_t bytes = 7;
  double seconds = 7;
  const QuantityField size = quantity({"Size", "", between(1 << 10, 1 << 30)}), time = quantity({"Time", "", above(0)}),
                      both = quantity({"Time", "", between(0, 60).without_min()}),
                      most = quantity({"Time", "", Range{.max = 3600}});
  set_quantity(bytes, "1K", size);
  set_quantity(seconds, "1 ms", time);
  EXPECT_EQ(bytes, 1024);
  EXPECT_EQ(seconds, 0.001);
  EXPECT_EQ(error_of([&] { set_quantity(bytes, "1023", size); }), "must be between 1K and 1G (is \"1023\")");
  EXPECT_EQ(error_of([&] { set_quantity(seconds, "0 s", time); }), "must be above 0s (is \"0 s\")");
  EXPECT_EQ(error_of([&] { set_quantity(seconds, "61", both); }), "must be above 0s and at most 60s (is \"61\")");
  EXPECT_EQ(error_of([&] { set_quantity(seconds, "61min", most); }), "must be at most 1h (is \"61min\")");
  EXPECT_EQ(bytes, 1024);
  EXPECT_EQ(seconds, 0.001);
}

TEST(Quantities, AreFieldsOnlyWhereTheyAreNamed) {
  struct Visitor {
    bool operator()(double, const Field&) { return false; }
    bool operator()(double, const QuantityField&) { return true; }
  } visit;
  EXPECT_FALSE(visit(1, {"Number"}));
  EXPECT_FALSE(visit(1, {"Number", "group"}));
  EXPECT_TRUE(visit(1, quantity({"Time"})));
}

}  // namespace
}  // namespace qkv
