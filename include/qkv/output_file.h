// A file that is written completely or not at all.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] qkv {

class AtomicFile;

// A file that replaces `path` when it is complete. It is written under a temporary name next to it; commit() syncs it
// to disk and renames it. Without commit() the temporary file is removed and `path` stays as it was. Every function
// throws Error, naming the file.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  // Replaces the first bytes that were written.
  void overwrite(std::string_view bytes);
  void commit();

 private:
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace qkv
