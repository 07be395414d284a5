// Jobs over many files: a folder of input files, the parts, and a folder with one output for each. The outputs are the
// state of the job: a part whose output exists is done. So workers need not know of each other, a job continues when
// the same command is started again, and a part that two workers do has the same output. docs/jobs.md.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/line_jobs.h"
#include "qkv/line_reader.h"

namespace [[gnu::visibility("default")]] qkv {

enum class PartState { written, present, failed };
constexpr std::array<std::string_view, 3> names_of(PartState) { return {"written", "present", "failed"}; }

struct PartReport {
  PartState state = PartState::written;
  std::string error = "";  // one line that names the part, if it failed
  int64_t lines = 0;       // that were read
};

// Writes the answers to the lines of a part. It may set the other members of `output`, and must not change write and
// overwrite.
using PartWork = std::function<void(LineReader& lines, LineOutput& output)>;

// The folders of a job. Methods may be called from several threads and processes, on several machines.
//
// Names that begin with "." are not parts. While a part is being done, its output has the name .NAME.tmp-X, with 16
// hexadecimal digits that no other process uses. It is synced to disk and renamed when it is complete.
class PartFolders {
 public:
  // The output of a part has its name with `suffix` appended. Makes the folder `target`. Throws Error if `source` is
  // not a folder, or if the folders are the same or one is in the other.
  PartFolders(const std::string& source, const std::string& target, std::string suffix = "");

  // Returns the names of the parts of worker 1 ≤ worker ≤ workers: every `workers`-th one in the order of bytes. Throws
  // Error if `source` contains no parts or contains folders.
  std::vector<std::string> names(int64_t worker = 1, int64_t workers = 1) const;

  // Does a part, unless its output exists. A part that cannot be read, that `work` throws Error for, or that changes
  // while it is read, has failed and has no output. Throws Error if the output cannot be written, and passes on all
  // other exceptions of `work`.
  PartReport run(const std::string& name, const PartWork& work) const;

  // Removes the temporary files of parts whose outputs exist. Processes that were killed leave them. One that is still
  // at work on such a part then finds the output of the other.
  void remove_leftovers() const;

  // Returns the path of a part as errors show it, in one line.
  std::string shown(const std::string& name) const;

 private:
  std::string output_of(const std::string& name) const { return target_ + "/" + name + suffix_; }
  bool is_done(const std::string& name) const;
  int64_t write(const std::string& name, const PartWork& work) const;

  std::string source_, target_, suffix_;
};

// Writes an output of a job that has no input files into a folder, unless it exists: as PartFolders does, complete or
// not at all. Returns whether it was written. Throws Error if it cannot be written, and passes on the exceptions of
// `work`.
bool write_part(const std::string& folder, const std::string& name, const std::function<void(LineOutput&)>& work);

// Removes the temporary files in a folder whose outputs exist, and makes the folder if there is none.
void prepare_folder(const std::string& folder);

}  // namespace qkv
