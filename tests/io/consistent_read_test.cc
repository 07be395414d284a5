#include "io/consistent_read.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

class ReadUnchanged : public ::testing::Test {
 protected:
  ReadUnchanged() {
    fs::create_directory(path_);
    testing::spill(path_ + "/a", "1");
  }

  // Puts another directory in the place of the one that is read.
  void replace() {
    fs::rename(path_, directory_ / ("old" + std::to_string(replaced_++)));
    fs::create_directory(path_);
  }

  testing::TempDir directory_;
  const std::string path_ = directory_ / "run";
  int replaced_ = 0, reads_ = 0;
};

TEST_F(ReadUnchanged, ReadsOnceIfNothingChanges) {
  EXPECT_EQ(read_consistently(path_, [&] { return ++reads_; }), 1);
}

TEST_F(ReadUnchanged, ReadsAgainIfTheDirectoryWasReplaced) {
  EXPECT_EQ(read_consistently(path_,
                              [&] {
                                if (replaced_ < 3) replace();
                                return ++reads_;
                              }),
            4);
}

TEST_F(ReadUnchanged, ReadsAgainAfterAnErrorOfMixedFiles) {
  EXPECT_EQ(read_consistently(path_,
                              [&] {
                                if (++reads_ == 1) {
                                  replace();
                                  fail("mixed");
                                }
                                return reads_;
                              }),
            2);
}

TEST_F(ReadUnchanged, KeepsTheErrorOfADirectoryThatStays) {
  EXPECT_THROW(read_consistently(path_,
                                 [&]() -> int {
                                   reads_++;
                                   fail("invalid");
                                 }),
               Error);
  EXPECT_EQ(reads_, 1);
}

TEST_F(ReadUnchanged, EndsIfTheDirectoryIsReplacedEachTime) {
  EXPECT_THROW(read_consistently(path_,
                                 [&] {
                                   replace();
                                   return ++reads_;
                                 }),
               Error);
  EXPECT_EQ(reads_, 100);
}

TEST_F(ReadUnchanged, TakesFilesThatATrainingReplacesEachTime) {
  const int reads = read_consistently(path_, [&] {
    testing::spill(path_ + "/" + std::to_string(reads_), "1");
    return ++reads_;
  });
  EXPECT_LE(reads, 100);
}

}  // namespace
}  // namespace qkv
