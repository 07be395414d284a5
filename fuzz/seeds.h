// Seeds: small valid files, from which fuzzing starts.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace qkv::fuzz {

// Numbered files of one target.
class Seeds {
 public:
  Seeds(const std::filesystem::path& directory, const std::string& target) : directory_(directory / target) {
    std::filesystem::create_directories(directory_);
  }
  std::string path() { return directory_ / std::to_string(count_++); }  // of the next file
  void add(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }

 private:
  std::filesystem::path directory_;
  int count_ = 0;
};

// Writes the seeds of every target to directory/TARGET.
void write_seeds(const std::filesystem::path& directory);

// Those of what `qkv import` reads.
void import_seeds(const std::filesystem::path& directory);

// Those of tokenizers.
void tokenizer_seeds(const std::filesystem::path& directory);

// Those of documents.
void document_seeds(const std::filesystem::path& directory);

// Those of GGUF files.
void gguf_seeds(const std::filesystem::path& directory);

// Those of what `qkv serve` answers.
void server_seeds(const std::filesystem::path& directory);

}  // namespace qkv::fuzz
