#include "data/log/event_time.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "data/log/time_format.h"
#include "tests/support/errors.h"

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
                                                      {"1.7145576e9", 1714557600, 0, false},
                                                      {"1.7145576E+18", 1714557600000000000, 0, false},
                                                      {"1.71455760025e+9", 1714557600, 250000, false},
                                                      {"-1.5e-3", -1, 998500, false},
                                                      {"1e-7", 0, 0, false},
                                                      {"0e99", 0, 0, false},
                                                      {"9007199254740993.0", 9007199254740993, 0, false},
                                                      {"-9223372036854775807.0", -INT64_MAX, 0, false},
                                                      {"+5.", 5, 0, false},
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
                                 "9223372036854775807.5e1",
                                 "1e19",
                                 "1e500",
                                 "1e",
                                 "e5",
                                 "1e+-5",
                                 "1.2.3",
                                 ".",
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
                                 "2024-05-01T10:30:05+02:",
                                 "2024-05-01T10:30:05 CEST",
                                 "2024-05-01T10:-0",
                                 "20240501T",
                                 "20240501T10",
                                 "20240501T103005x",
                                 "20240501T10:30",
                                 "Wed 01 May 2024 10:30:05 GMT",
                                 "01 Mai 2024 10:30:05 GMT",
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

TEST(EventTime, TextsAreReadAsByPandas) {
  std::ifstream file(QKV_GOLDEN_DIR "/times/times.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  EXPECT_GT(golden["cases"].size(), 80u);
  for (const nlohmann::json& expected : golden["cases"]) {
    const std::string format = expected["format"], text = expected["text"];
    if (!format.empty()) check_time_format(format);
    const auto time = format.empty() ? parse_event_time(text) : parse_time_by(format, text);
    ASSERT_EQ(time.has_value(), !expected["microseconds"].is_null()) << format << " " << text;
    if (!time) continue;
    EXPECT_EQ(time->whole * 1'000'000 + time->millionths, expected["microseconds"]) << format << " " << text;
    EXPECT_TRUE(time->date);
  }
}

TEST(TimeFormat, HasMoreDirectivesThanPandas) {
  const auto seconds = [](const char* format, const char* text) {
    const auto time = parse_time_by(format, text);
    return time ? std::optional(time->whole) : std::nullopt;
  };
  EXPECT_EQ(seconds("%F %T", "2024-05-01 10:30:05"), 1714559405);
  EXPECT_EQ(seconds("%D %R", "05/01/24 10:30"), 1714559400);
  EXPECT_EQ(seconds("at %s", "at -5"), -5);
  EXPECT_EQ(seconds("%F %H:%M %Z", "2024-05-01 10:30 GMT"), 1714559400);
  EXPECT_EQ(seconds(" %F", "  2024-05-01  "), 1714521600);
  EXPECT_EQ(seconds("%F %Z", "2024-05-01 CEST"), std::nullopt);
  EXPECT_EQ(seconds("%F", ""), std::nullopt);
}

TEST(TimeFormat, MustGiveADate) {
  const auto error = [](const std::string& format) { return testing::error_of([&] { check_time_format(format); }); };
  for (const char* format : {"%d.%m.%Y %H:%M", "%s", "%D"}) check_time_format(format);
  testing::expect_contains(error("%d.%m.%Q"), "time_format \"%d.%m.%Q\": unknown directive %Q (choose from %Y %m %d");
  testing::expect_contains(error("%d.%m.%Y %"), "unknown directive %");
  testing::expect_contains(error("%H:%M"), "must have a year, a month and a day");
  testing::expect_contains(error("MM/DD/YYYY"), "must have a year, a month and a day");
  testing::expect_contains(error("%d.%m.%Y %I:%M"), "%I and %p");
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
  EXPECT_TRUE(large_first.add({7, 0}));
  EXPECT_EQ(large_first.take(), (std::vector<int64_t>{INT64_MAX, 7}));  // as before the time that was refused
  EXPECT_TRUE(large_last.add({1, 5}));
  EXPECT_FALSE(large_last.add({INT64_MAX / 1000000 + 1, 0}));
}

}  // namespace
}  // namespace qkv
