#include "convert/model_files.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>

#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr uint64_t kSpare = uint64_t{60} << 20;  // bytes that a file may have beyond its archive
constexpr size_t kSmall = size_t{16} << 20;      // bytes of a file of settings
constexpr size_t kMaxEntryName = 1024;

}  // namespace

struct ModelFiles::Archive {
  zip_t* zip = nullptr;
  uint64_t size = 0;                        // of the archive, in bytes
  std::map<std::string, uint64_t> entries;  // their numbers

  Archive() = default;
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  ~Archive() {
    if (zip) zip_discard(zip);
  }
};

ModelFiles ModelFiles::of_directory(const std::string& path) {
  ModelFiles files;
  files.path_ = path;
  while (files.path_.size() > 1 && files.path_.back() == '/') files.path_.pop_back();
  return files;
}

bool ModelFiles::is_archive(const std::string& path) { return read_beginning(path, 4) == "PK\3\4"; }

ModelFiles ModelFiles::of_archive(const std::string& path) {
  ModelFiles files;
  files.path_ = path;
  files.archive_ = std::make_shared<Archive>();
  Archive& archive = *files.archive_;
  archive.size = MappedFile(path).bytes().size();
  int code = 0;
  archive.zip = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!archive.zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail("{}: not a complete zip archive: {}", path, reason);
  }
  const zip_int64_t count = zip_get_num_entries(archive.zip, 0);
  for (zip_int64_t i = 0; i < count; i++) {
    const char* name = zip_get_name(archive.zip, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
    if (!name || std::string_view(name).size() > kMaxEntryName) fail("{}: entry {} has an invalid name", path, i);
    if (!archive.entries.emplace(name, i).second) fail("{}: two entries are named {}", path, excerpt(name));
  }
  std::string metadata;
  for (const auto& [name, number] : archive.entries) {
    if (name != "metadata.json" && !name.ends_with("/metadata.json")) continue;
    if (std::ranges::count(name, '/') > 1) continue;  // of a tool inside the package
    if (!metadata.empty())
      fail("{}: must hold one metadata.json (holds {} and {})", path, excerpt(metadata), excerpt(name));
    metadata = name;
  }
  files.folder_ = metadata.substr(0, metadata.rfind('/') + 1);
  return files;
}

ModelFiles ModelFiles::inside(const std::string& folder) const {
  ModelFiles files = *this;
  files.path_ += "/" + folder;
  if (archive_) files.folder_ += folder + "/";
  return files;
}

bool ModelFiles::has(const std::string& name) const {
  std::error_code error;
  return archive_ ? archive_->entries.contains(folder_ + name) : std::filesystem::is_regular_file(path(name), error);
}

bool ModelFiles::is_torch_checkpoint() const {
  return archive_ &&
         std::ranges::any_of(archive_->entries, [](const auto& e) { return e.first.ends_with("/data.pkl"); });
}

std::shared_ptr<const FileBytes> ModelFiles::open(const std::string& name) const {
  if (!archive_) return std::make_shared<FileBytes>(MappedFile(path(name)));
  const auto entry = archive_->entries.find(folder_ + name);
  if (entry == archive_->entries.end()) fail("{}: is missing", path(name));
  zip_stat_t status;
  if (zip_stat_index(archive_->zip, entry->second, 0, &status) != 0 || !(status.valid & ZIP_STAT_SIZE))
    fail("{}: cannot be read: {}", path(name), zip_strerror(archive_->zip));
  if (status.size > archive_->size + kSpare)
    fail("{}: must have at most 60 MiB more than the archive of {} bytes (has {})", path(name), archive_->size,
         status.size);
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(archive_->zip, entry->second, 0),
                                                               zip_fclose);
  if (!file) fail("{}: cannot be read: {}", path(name), zip_strerror(archive_->zip));
  std::vector<std::byte> bytes(status.size);
  size_t done = 0;
  for (;;) {  // the read at the end verifies the checksum
    std::byte beyond;
    const bool full = done == bytes.size();
    const zip_int64_t count =
        zip_fread(file.get(), full ? &beyond : bytes.data() + done, full ? 1 : bytes.size() - done);
    if (count < 0) fail("{}: cannot be read: {}", path(name), zip_file_strerror(file.get()));
    if (count == 0) break;
    if (full) fail("{}: has more than the {} bytes that the archive states", path(name), bytes.size());
    done += to_size(count);
  }
  if (done != bytes.size())
    fail("{}: must have the {} bytes that the archive states (has {})", path(name), bytes.size(), done);
  return std::make_shared<FileBytes>(std::move(bytes));
}

std::shared_ptr<const FileBytes> ModelFiles::open_small(const std::string& name) const {
  auto file = open(name);
  if (file->bytes().size() > kSmall)
    fail("{}: must have at most 16 MiB (has {} bytes)", path(name), file->bytes().size());
  return file;
}

}  // namespace qkv
