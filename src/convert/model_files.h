// The files of a model to import: those of a directory, or those of a zip archive, which is not unpacked to disk.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/mapped_file.h"

namespace qkv {

// The bytes of one file.
class FileBytes {
 public:
  explicit FileBytes(MappedFile file) : mapped_(std::move(file)) {}
  explicit FileBytes(std::vector<std::byte> bytes) : read_(std::move(bytes)) {}

  std::span<const std::byte> bytes() const { return mapped_ ? mapped_->bytes() : std::span<const std::byte>(read_); }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }

 private:
  std::optional<MappedFile> mapped_;
  std::vector<std::byte> read_;
};

class ModelFiles {
 public:
  static ModelFiles of_directory(const std::string& path);

  // Opens the folder of an archive that has a metadata.json, or else its root. Throws Error, naming the archive, if it
  // is not a zip archive, has a name twice, or has more entries than its bytes can hold.
  static ModelFiles of_archive(const std::string& path);
  static bool is_archive(const std::string& path);  // whether it starts like a zip archive

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }  // of a file, for errors
  // Returns the files of a folder among these.
  ModelFiles inside(const std::string& folder) const;

  bool has(const std::string& name) const;
  bool is_torch_checkpoint() const;  // whether torch.save wrote the archive
  // Opens a file. Throws Error, naming it, if it is missing or cannot be read. A file of an archive may have at most 60
  // MiB more than the whole archive, so that a small archive cannot take much memory.
  std::shared_ptr<const FileBytes> open(const std::string& name) const;
  // Opens a file of settings or a list of tokens, of at most 16 MiB.
  std::shared_ptr<const FileBytes> open_small(const std::string& name) const;

 private:
  struct Archive;

  std::string path_, folder_;         // of the directory or archive; "a/b/" inside it
  std::shared_ptr<Archive> archive_;  // null for a directory
};

}  // namespace qkv
