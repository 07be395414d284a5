#include "program/lines/parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "program/lines/jobs.h"
#include "qkv/error.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kBuffer = size_t{1} << 16;

// Calls f, and turns its Error into OutputFailure.
template <class F>
decltype(auto) writing(F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw OutputFailure(in_one_line(error.what()));
  }
}

std::string temporary_path(const std::string& folder, const std::string& name) {
  std::random_device random;
  const uint64_t token = random() | uint64_t{random()} << 32;
  return fmt::format("{}/.{}{}{:0{}x}", folder, name, kTemporary, token, kTokenDigits);
}

bool is_token(std::string_view text) {
  return text.size() == kTokenDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

namespace fs = std::filesystem;

// Calls f(name, entry) for the entries of a folder. Throws Error if it cannot be read.
template <class F>
void for_each_entry(const std::string& folder, F&& f) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    f(entry->path().filename().string(), *entry);
  if (error) fail("{}: folder cannot be read: {}", in_one_line(folder), error.message());
}

void remove_leftovers_in(const std::string& folder) {
  for_each_entry(folder, [&](const std::string& name, const fs::directory_entry& entry) {
    std::error_code error;
    const std::string output(output_of_temporary(name));
    if (!output.empty() && fs::is_regular_file(folder + "/" + output, error)) fs::remove(entry.path(), error);
  });
}

// Returns whether `outer` is `inner` or contains it. Both are canonical.
bool contains(const fs::path& outer, const fs::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// Opens a regular file as open_input, whose errors call it `shown`.
FileDescriptor open_regular(const std::string& path, const std::string& shown, struct stat& status) {
  FileDescriptor file = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file || ::fstat(file.get(), &status) != 0) fail_file(shown, "cannot be opened");
  if (!S_ISREG(status.st_mode)) fail("{}: is not a regular file", shown);
  return file;
}

bool is_unchanged(int file, const struct stat& before) {
  struct stat now {};
  return ::fstat(file, &now) == 0 && now.st_size == before.st_size && now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == before.st_mtim.tv_nsec;
}

// Returns whether an output exists. Throws Error if something else has its name.
bool is_written(const std::string& path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISREG(status.st_mode)) return true;
  if (!exists && errno != ENOENT) fail_file(in_one_line(path), "cannot be read");
  if (exists || ::lstat(path.c_str(), &status) == 0) fail("{}: exists, and is not a regular file", in_one_line(path));
  return false;
}

void write_into(PartOutput& to, LineOutput& output) {
  output.write = [&to](std::string_view bytes) { to.write(bytes); };
  output.overwrite = [&to](std::string_view bytes) { to.overwrite(bytes); };
}

// Throws Error for a name that a part cannot have.
void check_name(const std::string& name, const std::string& shown, size_t suffix) {
  constexpr size_t kLongestName = NAME_MAX - 1 - kTemporary.size() - kTokenDigits;
  if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    fail("{}: is not the name of a part, which has no \"/\" and does not begin with \".\"", shown);
  if (name.size() + suffix > kLongestName)
    fail("{}: the name of a part must have at most {} bytes (has {})", shown, kLongestName - suffix, name.size());
}

}  // namespace

void check_apart(const std::string& source, const std::string& target, std::string_view inputs,
                 std::string_view outputs) {
  std::error_code error;
  const fs::path from = fs::canonical(source, error);
  if (error) fail("{}: cannot be opened: {}", in_one_line(source), error.message());
  const fs::path to = (fs::weakly_canonical(target, error) / "").parent_path();
  if (error) fail("{}: cannot be opened: {}", in_one_line(target), error.message());
  if (contains(from, to) || contains(to, from))
    fail("{}: is, contains or is within the folder of the {}, {}; {} require a separate folder", in_one_line(target),
         inputs, in_one_line(source), outputs);
}

std::string_view output_of_temporary(std::string_view name) {
  const size_t end = name.rfind(kTemporary);
  if (!name.starts_with('.') || end == std::string_view::npos || end == 0) return "";
  return is_token(name.substr(end + kTemporary.size())) ? name.substr(1, end - 1) : "";
}

PartOutput::PartOutput(const std::string& folder, const std::string& name)
    : path_(folder + "/" + name), file_(writing([&] { return AtomicFile(path_, temporary_path(folder, name)); })) {}

void PartOutput::flush() {
  writing([&] { file_.write(buffer_); });
  buffer_.clear();
}

void PartOutput::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBuffer) flush();
}

void PartOutput::overwrite(std::string_view bytes) {
  flush();
  writing([&] { file_.overwrite(bytes); });
}

void PartOutput::commit() {
  flush();
  try {
    file_.commit();
  } catch (const Error& failed) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path_, error)) throw OutputFailure(in_one_line(failed.what()));
  }
}

PartFolders::PartFolders(const std::string& source, const std::string& target, std::string suffix)
    : source_(source), target_(target), suffix_(std::move(suffix)) {
  std::error_code error;
  if (!fs::is_directory(source, error)) fail("{}: is not a folder", source.empty() ? "\"\"" : in_one_line(source));
  if (target.empty()) fail("\"\": is not a folder");
  check_apart(source, target, "parts", "outputs");
  make_directory(target);
}

std::vector<std::string> PartFolders::names(int64_t worker, int64_t workers) const {
  if (workers < 1 || worker < 1 || worker > workers)
    fail("worker must be between 1 and the number of workers (is {} of {})", worker, workers);
  std::vector<std::string> all, mine;
  for_each_entry(source_, [&](std::string name, const fs::directory_entry& entry) {
    std::error_code error;
    if (name.starts_with('.')) return;
    if (entry.is_directory(error)) fail("{}: is a folder; parts must be files", shown(name));
    all.push_back(std::move(name));
  });
  if (all.empty()) fail("{}: contains no parts", in_one_line(source_));
  std::ranges::sort(all);
  for (int64_t i = 0; i < std::ssize(all); i++)
    if (i % workers == worker - 1) mine.push_back(std::move(all[to_size(i)]));
  return mine;
}

PartReport PartFolders::run(const std::string& name, const PartWork& work) const {
  const std::string own = shown(name);
  try {
    check_name(name, own, suffix_.size());
    if (is_done(name)) return {PartState::present};
    return {PartState::written, "", write(name, work)};
  } catch (const Error& error) {
    const std::string text = error.what();
    return {PartState::failed, text.starts_with(own) ? text : own + ": " + text};
  } catch (const OutputFailure& failure) {
    throw Error(failure.what());
  }
}

bool PartFolders::is_done(const std::string& name) const { return is_written(output_of(name)); }

// Returns the number of lines of the part.
int64_t PartFolders::write(const std::string& name, const PartWork& work) const {
  struct stat before {};
  const FileDescriptor file = open_regular(source_ + "/" + name, shown(name), before);
  LineReader lines(file.get(), shown(name));
  PartOutput to(target_, name + suffix_);
  LineOutput output;
  write_into(to, output);
  work(lines, output);
  if (!is_unchanged(file.get(), before)) fail("{}: was changed while it was read", shown(name));
  to.commit();
  return lines.lines();
}

void PartFolders::remove_leftovers() const { remove_leftovers_in(target_); }

std::string PartFolders::shown(const std::string& name) const { return in_one_line(source_ + "/" + name); }

OutputFile::OutputFile(const std::string& path) : file_(std::make_unique<AtomicFile>(path)) {}
OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view bytes) { file_->write(bytes); }
void OutputFile::overwrite(std::string_view bytes) { file_->overwrite(bytes); }
void OutputFile::commit() { file_->commit(); }

bool write_part(const std::string& folder, const std::string& name, const std::function<void(LineOutput&)>& work) {
  if (is_written(folder + "/" + name)) return false;
  try {
    PartOutput to(folder, name);
    LineOutput output;
    write_into(to, output);
    work(output);
    to.commit();
  } catch (const OutputFailure& failure) {
    throw Error(failure.what());
  }
  return true;
}

void prepare_folder(const std::string& folder) {
  make_directory(folder);
  remove_leftovers_in(folder);
}

}  // namespace qkv
