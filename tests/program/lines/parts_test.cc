#include "program/lines/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "program/lines/jobs.h"
#include "qkv/error.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// Two folders, with the parts "a" to "c".
class PartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(in_);
    for (const char* name : {"a", "b", "c"}) testing::spill(in_ + "/" + name, std::string(name) + "1\n" + name + "2");
  }
  std::vector<std::string> outputs() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(out_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  const testing::TempDir folder_;
  const std::string in_ = folder_ / "in", out_ = folder_ / "out";
};

void copy_lines(LineReader& lines, LineOutput& output) {
  for (const std::string& line : read_all(lines)) output.write(line + ";");
}

TEST_F(PartsTest, WritesOneOutputForEachPartAndKeepsIt) {
  const PartFolders folders(in_, out_, ".x");
  for (const std::string& name : folders.names()) {
    const PartReport report = folders.run(name, copy_lines);
    EXPECT_EQ(report.state, PartState::written);
    EXPECT_EQ(report.lines, 2);
  }
  EXPECT_EQ(outputs(), (std::vector<std::string>{"a.x", "b.x", "c.x"}));
  EXPECT_EQ(testing::slurp(out_ + "/b.x"), "b1;b2;");
  EXPECT_EQ(folders.run("a", nullptr).state, PartState::present);
}

TEST_F(PartsTest, OverwritesTheFirstBytesOnly) {
  const PartFolders folders(in_, out_);
  const std::string rest(1 << 17, 'r');
  folders.run("a", [&](LineReader&, LineOutput& output) {
    output.write("head");
    output.write(rest);
    output.overwrite("HE");
    output.write("end");
  });
  EXPECT_EQ(testing::slurp(out_ + "/a"), "HEad" + rest + "end");
}

TEST_F(PartsTest, LeavesNothingOfWorkThatThrows) {
  const PartFolders folders(in_, out_);
  const PartReport report = folders.run("a", [](LineReader&, LineOutput& output) {
    output.write("half");
    throw Error("line 7: is bad");
  });
  EXPECT_EQ(report.error, in_ + "/a: line 7: is bad");
  EXPECT_THROW(folders.run("b", [](LineReader&, LineOutput&) { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_TRUE(outputs().empty());
}

TEST_F(PartsTest, RefusesNamesOutsideOfTheFolder) {
  const PartFolders folders(in_, out_);
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string(".a"),
                                  std::string("../in/a"), std::string("/a"), std::string("a/"), std::string("a\0b", 3)})
    EXPECT_EQ(folders.run(name, copy_lines).state, PartState::failed) << name;
  EXPECT_TRUE(outputs().empty());
  EXPECT_THROW(folders.names(3, 2), Error);
}

TEST_F(PartsTest, FindsTheOutputOfAWorkerThatWasFaster) {
  const PartFolders folders(in_, out_);
  const PartReport report = folders.run("a", [&](LineReader& lines, LineOutput& output) {
    EXPECT_EQ(folders.run("a", copy_lines).state, PartState::written);
    EXPECT_EQ(outputs().size(), 2u);
    folders.remove_leftovers();
    EXPECT_EQ(outputs().size(), 1u);
    copy_lines(lines, output);
  });
  EXPECT_EQ(report.state, PartState::written);
  EXPECT_EQ(testing::slurp(out_ + "/a"), "a1;a2;");
}

TEST(PartOutput, NamesOfTemporaryFilesAreRecognized) {
  EXPECT_EQ(output_of_temporary(".a.tmp-0123456789abcdef"), "a");
  EXPECT_EQ(output_of_temporary(".a.tmp-0123456789abcdef.tmp-0123456789abcdef"), "a.tmp-0123456789abcdef");
  for (const char* name : {"", ".", "a", "a.tmp-0123456789abcdef", ".tmp-0123456789abcdef", ".a.tmp-0123456789abcde",
                           ".a.tmp-0123456789abcdeF", ".a.tmp-0123456789abcdef0", ".a.tmp0123456789abcdef"})
    EXPECT_EQ(output_of_temporary(name), "") << name;
}

}  // namespace
}  // namespace qkv
