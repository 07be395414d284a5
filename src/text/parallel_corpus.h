// Parallel text: line i of the source belongs to line i of the target.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "text/line_file.h"

namespace qkv {

struct ParallelText {
  std::vector<std::string> source, target;  // of equal size, valid UTF-8

  int64_t size() const { return static_cast<int64_t>(source.size()); }
};

// Parallel text on disk: two files, line by line, or one file of lines "source TAB target". Immutable; all methods may
// be called from many threads.
class ParallelCorpus {
 public:
  // Scans the files. Throws Error, naming file and line: what LineFile throws, files of unequal length, a missing or
  // second tab.
  explicit ParallelCorpus(const std::vector<std::string>& files, bool lower_case = false, int64_t chunk_pairs = 1024);

  int64_t size() const { return files_[0].lines(); }  // pairs
  int64_t chunks() const { return files_[0].chunks(); }
  int64_t pairs(int64_t chunk) const { return std::min(chunk_pairs_, size() - chunk * chunk_pairs_); }
  const std::string& path() const { return files_[0].path(); }  // of the only file, or of the source
  std::string fingerprint() const;  // of the files' bytes, in hexadecimal: distinguishes texts

  ParallelText read(int64_t chunk) const;
  std::vector<std::string> read_source(int64_t chunk) const;  // in the case of the file
  void will_need(int64_t chunk) const;                        // soon: see LineFile

  // The pairs of sampled_chunks(most).
  ParallelText sample(int64_t most) const;
  // All chunks in order. For a text with more than `most` pairs, chunks of about `most` pairs, one from each of equal
  // parts of the text, the same ones each time.
  std::vector<int64_t> sampled_chunks(int64_t most) const;

 private:
  std::vector<LineFile> files_;
  bool lower_case_;
  int64_t chunk_pairs_;
};

// All of a text that fits into memory. Throws what ParallelCorpus throws.
ParallelText read_parallel(const std::vector<std::string>& files, bool lower_case = false);

}  // namespace qkv
