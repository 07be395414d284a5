#include "data/event_time.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace qkv {
namespace {

struct Case {
  std::string text;
  int64_t whole;
  int32_t millionths;
  bool date;
};

TEST(EventTime, ParsesNumbersAndDates) {
  // Seconds of dates are those of `date -u -d TEXT +%s`.
  for (const auto& [text, whole, millionths, date] : {Case{"978300760", 978300760, 0, false},
                                                      {"-5", -5, 0, false},
                                                      {"1369699200.0", 1369699200, 0, false},
                                                      {"1369699200.250001", 1369699200, 250001, false},
                                                      {"-1.25", -2, 750000, false},
                                                      {".5", 0, 500000, false},
                                                      {"2.9999999", 3, 0, false},
                                                      {"1.5e3", 1500, 0, false},
                                                      {" 12 ", 12, 0, false},
                                                      {"9223372036854775807", INT64_MAX, 0, false},
                                                      {"1970-01-01", 0, 0, true},
                                                      {"2024-05-01", 1714521600, 0, true},
                                                      {"2024-02-29T12:30", 1709209800, 0, true},
                                                      {"2024-05-01T10:30:05Z", 1714559405, 0, true},
                                                      {"2024-05-01 10:30:05", 1714559405, 0, true},
                                                      {"2024-05-01 10:30:05 UTC", 1714559405, 0, true},
                                                      {"2024-05-01T10:30:05.125Z", 1714559405, 125000, true},
                                                      {"2024-05-01T10:30:05.1234567899Z", 1714559405, 123456, true},
                                                      {"2024-05-01T10:30:05+02:00", 1714552205, 0, true},
                                                      {"2024-05-01T10:30:05-0130", 1714564805, 0, true},
                                                      {"2024-05-01 10:30:05 +0200", 1714552205, 0, true},
                                                      {"2010/12/01 08:26", 1291191960, 0, true},
                                                      {"Tue Apr 03 18:00:09 +0000 2012", 1333476009, 0, true},
                                                      {"Sun Jul 30 07:44:10 -0700 2017", 1501425850, 0, true},
                                                      {"1969-12-31T23:59:59Z", -1, 0, true}}) {
    const auto time = parse_event_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->whole, whole) << text;
    EXPECT_EQ(time->millionths, millionths) << text;
    EXPECT_EQ(time->date, date) << text;
  }
}

TEST(EventTime, RejectsOtherText) {
  for (const std::string text : {"",
                                 " ",
                                 "-",
                                 "soon",
                                 "12x",
                                 "1,5",
                                 "nan",
                                 "inf",
                                 "-inf",
                                 "9007199254740993.0",
                                 "9223372036854775808",
                                 "2024-02-30",
                                 "2023-02-29",
                                 "2024-13-01",
                                 "2024-5-1",
                                 "24-05-01",
                                 "2024-05-01T",
                                 "2024-05-01T24:00",
                                 "2024-05-01T10:60",
                                 "2024-05-01T10",
                                 "2024-05-01x",
                                 "2024-05-01T10:30:05.",
                                 "2024-05-01T10:30:05+2",
                                 "2024-05-01T10:30:05Zx",
                                 "2024/05-01",
                                 "12/1/2010 8:26",
                                 "Tue Apr 31 18:00:09 +0000 2012",
                                 "Tue April 03 18:00:09 +0000 2012",
                                 "ueA Apr 03 18:00:09 +0000 2012",
                                 "Tue Apr 03 18:00:09 +0000",
                                 "Tue Apr 03 18:00:09 +0000 2012x",
                                 "0x10"})
    EXPECT_FALSE(parse_event_time(text)) << text;
}

TEST(EventTimes, AreMillionthsOnceOneHasAFraction) {
  EventTimes whole, mixed;
  for (const int64_t value : {3, 5}) EXPECT_TRUE(whole.add({value, 0}));
  EXPECT_EQ(whole.take(), (std::vector<int64_t>{3, 5}));
  EXPECT_TRUE(mixed.add({3, 0}) && mixed.add({-2, 750000}) && mixed.add({4, 0}));
  EXPECT_EQ(mixed.take(), (std::vector<int64_t>{3000000, -1250000, 4000000}));
}

TEST(EventTimes, RejectTimesThatOverflow) {
  EventTimes large_first, large_last;
  EXPECT_TRUE(large_first.add({INT64_MAX, 0}));
  EXPECT_FALSE(large_first.add({1, 5}));
  EXPECT_TRUE(large_last.add({1, 5}));
  EXPECT_FALSE(large_last.add({INT64_MAX / 1000000 + 1, 0}));
}

}  // namespace
}  // namespace qkv
