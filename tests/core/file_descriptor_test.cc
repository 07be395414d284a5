// Files that readers open: what is refused, and what is never waited for.
#include "core/system/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/fail.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;

std::string descriptor_name(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

// open(2) would wait for the writer of a named pipe.
TEST(OpenInput, RefusesNamedPipesAndDevicesWithoutWaiting) {
  const testing::TempDir directory;
  const std::string pipe = directory / "pipe", zero = directory / "zero";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", zero);
  for (const Accepts accepts : {Accepts::file, Accepts::unnamed_pipe})
    for (const std::string& path : {pipe, zero, std::string("/dev/null")}) {
      EXPECT_EQ(error_of([&] { open_input(path, accepts); }), path + ": is not a regular file");
      EXPECT_EQ(error_of([&] { read_file(path, 100, accepts); }), path + ": is not a regular file");
      EXPECT_EQ(read_beginning(path, 100), "");
    }
}

TEST(OpenInput, TakesAPipeWithoutANameOnlyIfItIsAccepted) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const std::string path = descriptor_name(ends[0]), text = "text of a command";
  ASSERT_TRUE(write_all(writing.get(), std::as_bytes(std::span(text))));
  EXPECT_EQ(error_of([&] { read_file(path, 100); }), path + ": is not a regular file");
  writing.close();
  EXPECT_EQ(read_file(path, 100, Accepts::unnamed_pipe), text);
}

TEST(ReadInput, RefusesAFileByItsSizeBeforeItIsRead) {
  const testing::TempDir directory;
  const std::string path = directory / "sparse";
  const FileDescriptor file = open_file(path, O_RDWR | O_CREAT);
  ASSERT_TRUE(resize_file(file.get(), int64_t{1} << 40));  // reading it would take minutes
  EXPECT_EQ(error_of([&] { read_file(path, 1000); }), path + ": has more than 1000 bytes");
  ASSERT_TRUE(resize_file(file.get(), 1000));
  EXPECT_EQ(read_file(path, 1000), std::string(1000, '\0'));
  EXPECT_EQ(error_of([&] { read_file(path, 999); }), path + ": has more than 999 bytes");
  EXPECT_EQ(read_file("/proc/self/comm", 100).back(), '\n');  // has no size
}

}  // namespace
}  // namespace qkv
