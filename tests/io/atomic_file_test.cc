// A file is written completely or stays as it was.
#include "io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <span>
#include <string>

#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempDir;

size_t files_in(const std::string& directory) {
  const std::filesystem::directory_iterator entries(directory);
  return to_size(std::distance(begin(entries), end(entries)));
}
size_t files_in(const TempDir& directory) { return files_in(directory.path()); }

TEST(AtomicFile, ReplacesTheOldFileAtCommit) {
  const TempDir directory;
  const std::string path = directory / "a";
  write_file_atomic(path, "old");
  AtomicFile file(path);
  file.write("ne");
  EXPECT_EQ(read_file(path, 100), "old");
  file.write("w");
  file.commit();
  EXPECT_EQ(read_file(path, 100), "new");
  EXPECT_EQ(files_in(directory), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TempDir directory;
  { AtomicFile(directory / "a").write("lost"); }
  EXPECT_EQ(files_in(directory), 0u);
}

TEST(AtomicFile, RemovesWhatDeadProcessesLeftOfTheSameFile) {
  const TempDir directory;
  const std::string path = directory / "a";
  for (const char* name : {"a.tmp-123-0", "a.tmp-notes", "b.tmp-123-0"})
    FileDescriptor(::creat((directory / name).c_str(), 0600));
  AtomicFile living(path);
  living.write("first");
  write_file_atomic(path, "second");
  EXPECT_FALSE(std::filesystem::exists(directory / "a.tmp-123-0"));
  EXPECT_TRUE(std::filesystem::exists(directory / "a.tmp-notes"));
  EXPECT_TRUE(std::filesystem::exists(directory / "b.tmp-123-0"));
  living.commit();
  EXPECT_EQ(read_file(path, 100), "first");
}

TEST(AtomicFile, HasThePermissionsOfAnyNewFile) {
  const TempDir directory;
  const mode_t mask = ::umask(027);
  write_file_atomic(directory / "a", "");
  ::umask(mask);
  struct stat status;
  ASSERT_EQ(::stat((directory / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST(AtomicFile, ErrorsNameTheFileAndTheReason) {
  const TempDir directory;
  EXPECT_EQ(error_of([&] { write_file_atomic(directory / "no/a", ""); }),
            directory.path() + "/no/a: cannot be written: No such file or directory");
  make_directory(directory / "a/b");
  EXPECT_EQ(error_of([&] { write_file_atomic(directory / "a", ""); }),
            directory.path() + "/a: cannot be written: Is a directory");
  EXPECT_EQ(files_in(directory), 1u);
}

// Runs f in a child process that can write no file beyond `limit` bytes: the system fails as for a full disk.
std::string error_under_file_limit(rlim_t limit, const std::function<void()>& f) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limits = {limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &limits);
    std::signal(SIGXFSZ, SIG_IGN);
    const std::string error = error_of(f);
    const ssize_t written = ::write(ends[1], error.data(), error.size());
    ::_exit(written < 0);
  }
  ::close(ends[1]);
  std::string error(1000, '\0');
  error.resize(to_size(std::max<ssize_t>(0, ::read(ends[0], error.data(), error.size()))));
  ::close(ends[0]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return error;
}

TEST(AtomicFile, AFullDiskLeavesTheOldFile) {
  const TempDir directory;
  const std::string path = directory / "a";
  write_file_atomic(path, "old");
  const std::string error = error_under_file_limit(1000, [&] { write_file_atomic(path, std::string(3000, 'x')); });
  EXPECT_EQ(error, path + ": cannot be written: File too large");
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(files_in(directory), 1u);
}

TEST(AtomicFile, ADeviceOrAPipeIsWrittenAndNotReplaced) {
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat("/dev/null", &before), 0);
  write_file_atomic("/dev/null", "text");
  ASSERT_EQ(::stat("/dev/null", &after), 0);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_THROW(write_file_atomic("/dev/full", "text"), Error);
  const TempDir directory;
  const std::string pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor reader = open_file(pipe, O_RDONLY | O_NONBLOCK);
  write_file_atomic(pipe, "text");
  std::array<std::byte, 8> bytes;
  ASSERT_EQ(read_some(reader.get(), bytes, pipe), 4u);
}

TEST(AtomicFile, AnOpenFileIsContinued) {
  const TempDir directory;
  const FileDescriptor file = open_file(directory / "file", O_WRONLY | O_CREAT);
  ASSERT_TRUE(write_all(file.get(), std::as_bytes(std::span("begin ", 6))));
  write_file_atomic("/dev/fd/" + std::to_string(file.get()), "middle ");
  ASSERT_TRUE(write_all(file.get(), std::as_bytes(std::span("end", 3))));
  EXPECT_EQ(read_file(directory / "file", 100), "begin middle end");
}

TEST(AtomicFile, TheFileBehindALinkIsReplaced) {
  const TempDir directory;
  write_file_atomic(directory / "file", "old");
  std::filesystem::create_symlink("file", directory / "link");
  write_file_atomic(directory / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "file", 8), "new");
  EXPECT_EQ(files_in(directory), 2u);
}

TEST(ReadFile, RejectsFilesAboveTheLimit) {
  const TempDir directory;
  const std::string path = directory / "a", content(200'000, 'x');
  write_file_atomic(path, content);
  EXPECT_EQ(read_file(path, content.size()), content);
  EXPECT_EQ(error_of([&] { read_file(path, content.size() - 1); }), path + ": has more than 199999 bytes");
  expect_contains(error_of([&] { read_file("/dev/zero", 1000); }), "/dev/zero: is not a regular file");
  EXPECT_EQ(error_of([&] { read_file(directory / "b", 1); }),
            directory.path() + "/b: cannot be opened: No such file or directory");
  expect_contains(error_of([&] { read_file(directory.path(), 1); }), ": cannot be read: Is a directory");
}

TEST(MakeDirectory, MakesParentsAndKeepsExistingOnes) {
  const TempDir directory;
  make_directory(directory / "a/b/c");
  make_directory(directory / "a/b/c/");
  EXPECT_TRUE(std::filesystem::is_directory(directory / "a/b/c"));
  write_file_atomic(directory / "file", "");
  EXPECT_EQ(error_of([&] { make_directory(directory / "file"); }),
            directory.path() + "/file: directory cannot be created: Not a directory");
  expect_contains(error_of([&] { make_directory(directory / "file/a"); }), "cannot be created: Not a directory");
}

TEST(WriteDirectoryAtomic, TakesThePlaceOfADirectoryThatWasRemoved) {
  const TempDir directory;
  const std::string path = directory / "run";
  for (const char* content : {"first", "second"}) {
    write_directory_atomic(path, [&](const std::string& partial) { write_file_atomic(partial + "/a", content); });
    EXPECT_EQ(read_file(path + "/a", 10), content);
    remove_directory_atomic(path);
    EXPECT_EQ(files_in(directory), 0u);
  }
}

TEST(WriteDirectoryAtomic, NeverRemovesWhatItHasNotMade) {
  const TempDir directory;
  const std::string path = directory / "run", partial = path + ".partial";
  const auto write = [&](const std::string& into) { write_file_atomic(into + "/a", "new"); };
  make_directory(partial + "/inner");
  write_file_atomic(partial + "/notes", "foreign");
  const std::string refusal =
      partial + ": exists, and is not what an interrupted command has left; move it away, or choose another output";
  EXPECT_EQ(error_of([&] { write_directory_atomic(path, write); }), refusal);
  EXPECT_EQ(read_file(partial + "/notes", 10), "foreign");
  std::filesystem::rename(partial, directory / "moved");
  write_file_atomic(partial, "a file");
  EXPECT_EQ(error_of([&] { write_directory_atomic(path, write); }), refusal);
  EXPECT_EQ(read_file(partial, 10), "a file");
  remove_file(partial);

  write_directory_atomic(path, write);
  EXPECT_EQ(files_in(path), 1u);
  make_directory(partial);
  write_file_atomic(partial + "/notes", "foreign");
  remove_directory_atomic(path);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(read_file(partial + "/notes", 10), "foreign");
}

TEST(WriteDirectoryAtomic, RemovesWhatAProcessLeftThatWasKilled) {
  const TempDir directory;
  const std::string path = directory / "run";
  const auto write = [&](const std::string& into) { write_file_atomic(into + "/a", "new"); };
  for (const bool is_empty : {false, true}) {
    if (const pid_t child = ::fork(); child == 0) {
      if (is_empty) ::mkdir((path + ".partial").c_str(), 0755);
      if (!is_empty) write_directory_atomic(path, [](const std::string&) { ::_exit(0); });
      ::_exit(0);
    } else {
      ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    }
    ASSERT_TRUE(std::filesystem::exists(path + ".partial"));
    write_directory_atomic(path, write);
    EXPECT_EQ(files_in(path), 1u);
    remove_directory_atomic(path);
    EXPECT_EQ(files_in(directory), 0u);
  }
}

TEST(WriteDirectoryAtomic, TwoProcessesDoNotWriteTheSameDirectory) {
  const TempDir directory;
  const std::string path = directory / "run";
  std::string error;
  write_directory_atomic(path, [&](const std::string&) {
    error = error_of([&] { write_directory_atomic(path, [](const std::string&) {}); });
  });
  EXPECT_EQ(error, path + ".partial: is being written by another process");
}

}  // namespace
}  // namespace qkv
