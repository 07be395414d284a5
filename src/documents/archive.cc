#include "documents/archive.h"

#include <zip.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <set>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kMostMembers = 65536;
constexpr uint64_t kMostRatio = 1000;  // of a member beyond a MiB; DEFLATE reaches 1032

struct ZipError {
  zip_error_t error;

  ZipError() { zip_error_init(&error); }
  ~ZipError() { zip_error_fini(&error); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
};

[[noreturn]] void fail_damaged(zip_error_t& error) { fail("the archive is damaged: {}", zip_error_strerror(&error)); }

struct Discard {
  void operator()(zip_t* zip) const { zip_discard(zip); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Zip = std::unique_ptr<zip_t, Discard>;
using ZipFile = std::unique_ptr<zip_file_t, Discard>;
using ZipSource = std::unique_ptr<zip_source_t, Discard>;

struct FreeBytes {
  void operator()(void* bytes) const { std::free(bytes); }
};

// Returns a source that has its own bytes. libzip frees the bytes of a source that it writes to, even if it was asked
// not to: zip_close begins with a clone of the source up to the first member that differs, and takes the clone's bytes
// for its own (libzip 1.7.3, buffer_clone).
zip_source_t* source_with_copy(const std::string& bytes, zip_error_t* error) {
  std::unique_ptr<void, FreeBytes> copy(std::malloc(std::max<size_t>(bytes.size(), 1)));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  zip_source_t* source = zip_source_buffer_create(copy.get(), bytes.size(), 1, error);
  if (source) static_cast<void>(copy.release());
  return source;
}

// Opens an archive in memory. `source` keeps what is written. The bytes outlive both, unless the archive is to be
// written.
Zip open_archive(const std::string& bytes, ZipSource& source, bool is_written = false) {
  ZipError error;
  source.reset(is_written ? source_with_copy(bytes, &error.error)
                          : zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error.error));
  if (!source) throw std::bad_alloc();
  zip_source_keep(source.get());
  Zip zip(zip_open_from_source(source.get(), ZIP_CHECKCONS, &error.error));
  if (!zip) {
    zip_source_free(source.get());  // zip_open_from_source takes it only if it succeeds
    fail_damaged(error.error);
  }
  const int64_t count = zip_get_num_entries(zip.get(), 0);
  if (count > kMostMembers) fail("the archive has {} members, more than {}", count, kMostMembers);
  return zip;
}

zip_stat_t stat_of(zip_t* zip, uint64_t i) {
  zip_stat_t stat;
  if (zip_stat_index(zip, i, 0, &stat) != 0) fail_damaged(*zip_get_error(zip));
  if ((stat.valid & (ZIP_STAT_NAME | ZIP_STAT_SIZE)) != (ZIP_STAT_NAME | ZIP_STAT_SIZE))
    fail("the archive is damaged: member {} has no name or size", i + 1);
  return stat;
}

std::string read_member(zip_t* zip, uint64_t i, const zip_stat_t& stat, uint64_t room, uint64_t most_bytes) {
  if (stat.valid & ZIP_STAT_ENCRYPTION_METHOD && stat.encryption_method != ZIP_EM_NONE)
    fail("{} is encrypted", stat.name);
  const bool is_bomb = stat.size > (1 << 20) && stat.size / kMostRatio > std::max<uint64_t>(stat.comp_size, 1);
  if (stat.size > room || is_bomb)
    fail("the text of the archive is too large: {} has {} bytes ({} compressed), at most {} are read in all", stat.name,
         stat.size, stat.comp_size, most_bytes);
  const ZipFile file(zip_fopen_index(zip, i, 0));
  if (!file) fail("{}: {}", stat.name, zip_error_strerror(zip_get_error(zip)));
  std::string bytes(stat.size, '\0');
  const int64_t size = zip_fread(file.get(), bytes.data(), bytes.size());
  if (size != std::ssize(bytes))
    fail("{} is damaged: {}", stat.name, zip_error_strerror(zip_file_get_error(file.get())));
  char more;
  if (zip_fread(file.get(), &more, 1) != 0) fail("{} is damaged: wrong size or checksum", stat.name);
  return bytes;
}

void replace_member(zip_t* zip, const ArchiveMember& member) {
  const int64_t i = zip_name_locate(zip, member.name.c_str(), 0);
  if (i < 0) fail("the archive has no member {}", member.name);
  const auto index = static_cast<uint64_t>(i);
  const zip_stat_t stat = stat_of(zip, index);
  zip_source_t* source = zip_source_buffer(zip, member.bytes.data(), member.bytes.size(), 0);
  if (!source) throw std::bad_alloc();
  if (zip_file_replace(zip, index, source, 0) != 0) {
    zip_source_free(source);
    fail_damaged(*zip_get_error(zip));
  }
  const int32_t method = stat.valid & ZIP_STAT_COMP_METHOD ? stat.comp_method : ZIP_CM_DEFLATE;
  const bool is_stored = method == ZIP_CM_STORE;
  zip_set_file_compression(zip, index, is_stored ? ZIP_CM_STORE : ZIP_CM_DEFLATE, 0);
  if (stat.valid & ZIP_STAT_MTIME) zip_file_set_mtime(zip, index, stat.mtime, 0);
}

std::string written(zip_source_t* source) {
  if (zip_source_open(source) != 0) fail_damaged(*zip_source_error(source));
  std::string bytes;
  char buffer[1 << 16];
  for (int64_t count; (count = zip_source_read(source, buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, to_size(count));
  zip_source_close(source);
  return bytes;
}

}  // namespace

std::vector<ArchiveMember> read_members(const std::string& archive,
                                        const std::function<bool(std::string_view name)>& is_wanted,
                                        uint64_t most_bytes) {
  ZipSource source;
  const Zip zip = open_archive(archive, source);
  std::vector<ArchiveMember> members;
  std::set<std::string_view> names;
  uint64_t room = most_bytes;
  const auto count = static_cast<uint64_t>(zip_get_num_entries(zip.get(), 0));
  for (uint64_t i = 0; i < count; i++) {
    const zip_stat_t stat = stat_of(zip.get(), i);
    if (!names.insert(stat.name).second) fail("the archive has two members {}", stat.name);
    if (!is_wanted(stat.name)) continue;
    members.push_back({stat.name, read_member(zip.get(), i, stat, room, most_bytes)});
    room -= stat.size;
  }
  return members;
}

std::string replace_members(const std::string& archive, std::span<const ArchiveMember> members) {
  if (members.empty()) return archive;
  ZipSource source;
  Zip zip = open_archive(archive, source, true);
  for (const ArchiveMember& member : members) replace_member(zip.get(), member);
  if (zip_close(zip.get()) != 0)
    fail("the archive cannot be written: {}", zip_error_strerror(zip_get_error(zip.get())));
  static_cast<void>(zip.release());  // zip_close frees it
  return written(source.get());
}

}  // namespace qkv
