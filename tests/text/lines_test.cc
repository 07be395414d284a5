// Reading lines: ends, validity, and what an error says.
#include "text/lines.h"

#include <gtest/gtest.h>

#include <sstream>

#include "qkv/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& bytes) {
  std::istringstream in(bytes);
  return read_lines(in, "in.txt");
}

TEST(ReadLines, BothLineEndsAreTakenOff) {
  EXPECT_EQ(lines_of("a\nb\r\nc\n"), (Lines{"a", "b", "c"}));
  EXPECT_EQ(lines_of("a\rb\r\r\n"), (Lines{"a\rb\r"}));
}

TEST(ReadLines, TheLastLineMayLackItsEnd) {
  EXPECT_EQ(lines_of("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\n\n"), (Lines{"a", ""}));
  EXPECT_TRUE(lines_of("").empty());
}

TEST(ReadLines, WhatIsNoTextIsNamed) {
  const auto error = [](const std::string& bytes) { return testing::error_of([&] { lines_of(bytes); }); };
  testing::expect_contains(error("\x1F\x8B\x08\n"),
                           "in.txt:1: byte 2 of the line is not valid UTF-8 (the file is "
                           "compressed, \"zcat FILE\" prints its text)");
  testing::expect_contains(error("PK\3\4\xFF"), "the file is a zip archive");
  testing::expect_contains(error(std::string("\xFF\xFE"
                                             "a\0\n\0",
                                             6)),
                           "the file is UTF-16");
}

TEST(ReadLines, InvalidUtf8IsNamedByLineAndByte) {
  try {
    lines_of("fine\nbad \xff\n");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "in.txt:2: byte 5 of the line is not valid UTF-8 (Latin-1? \"iconv -f latin1 -t utf-8 "
                 "FILE\" makes it so)");
  }
  EXPECT_THROW(lines_of("cut \xe2\x82"), Error);
  EXPECT_THROW(lines_of("surrogate \xed\xa0\x80"), Error);
  EXPECT_THROW(lines_of("overlong \xc0\xaf"), Error);
}

TEST(ReadLines, NothingBehindTheFirstLinesIsRead) {
  const testing::TempDir directory;
  testing::spill(directory / "lines", "a\nb\n\xff\n");
  EXPECT_EQ(read_first_lines(directory / "lines", 2), (Lines{"a", "b"}));
  EXPECT_THROW(read_first_lines(directory / "lines", 3), Error);
  testing::spill(directory / "lines", "a\nb");
  EXPECT_EQ(read_first_lines(directory / "lines", 0), (Lines{"a", "b"}));
  EXPECT_EQ(read_first_lines(directory / "lines", 5), (Lines{"a", "b"}));
}

TEST(ReadLines, AFileThatIsNotThereIsNamed) {
  try {
    read_lines("no/such/file.txt");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no/such/file.txt: cannot be opened: No such file or directory");
  }
}

TEST(ReadLines, ADirectoryIsAnError) { EXPECT_THROW(read_lines("."), Error); }

}  // namespace
}  // namespace qkv
