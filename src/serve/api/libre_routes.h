// The state that the routes of LibreTranslate keep between requests: suggestions, and files that have been translated.
#pragma once

#include <chrono>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "serve/api/append_file.h"
#include "serve/engine/api_family.h"

namespace qkv {

// Translated files in memory until they are fetched: for ten minutes, and 64 MiB in all.
// Thread-safe.
class TranslatedFiles {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct File {
    std::string id, name, bytes;
    Time until;
  };

  static constexpr size_t kMost = size_t{64} << 20;
  static constexpr std::chrono::minutes kKept{10};

  // Returns the file's id, 128 random bits in hexadecimal. The oldest files give way to it.
  std::string add(std::string name, std::string bytes, Time now);
  // Returns a file; nothing if it is not there (any more).
  std::optional<File> find(const std::string& id, Time now);

 private:
  void drop_old(Time now, size_t room);

  std::mutex mutex_;       // of the following
  std::list<File> files_;  // the oldest first
  size_t size_ = 0;
};

// The state of LibreTranslate's routes.
class LibreState : public FamilyState {
 public:
  // Throws Error if the file of suggestions is not sound.
  explicit LibreState(const ServerOptions& options);

  TranslatedFiles files;
  std::optional<AppendFile> suggestions;  // nothing: they are not stored
};

}  // namespace qkv
