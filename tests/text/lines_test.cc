// Reading lines: ends, validity, and what an error says.
#include "text/lines.h"

#include <gtest/gtest.h>

#include <sstream>

#include "qkv/error.h"

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

TEST(ReadLines, InvalidUtf8IsNamedByLineAndByte) {
  try {
    lines_of("fine\nbad \xff\n");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "in.txt:2: byte 5 of the line is not valid UTF-8");
  }
  EXPECT_THROW(lines_of("cut \xe2\x82"), Error);
  EXPECT_THROW(lines_of("surrogate \xed\xa0\x80"), Error);
  EXPECT_THROW(lines_of("overlong \xc0\xaf"), Error);
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
