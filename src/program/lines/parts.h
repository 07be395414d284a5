// The output of one part: complete under its name, or absent.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "io/atomic_file.h"

namespace qkv {

// An output cannot be written. Unlike an Error, it is no fault of one part.
class OutputFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Temporary files are named .NAME.tmp-X with kTokenDigits random hexadecimal digits. No two processes use one name,
// even on several machines: one that removes the file of another cannot hit a new file of a third.
inline constexpr std::string_view kTemporary = ".tmp-";
inline constexpr size_t kTokenDigits = 16;

// Throws Error, with these words for what is in them, if a folder of outputs is that of the inputs, contains it or is
// in it.
void check_apart(const std::string& source, const std::string& target, std::string_view inputs,
                 std::string_view outputs);

// Returns the name of the output that a temporary file is written for; "" if it has no name of this kind.
std::string_view output_of_temporary(std::string_view name);

// A buffered output. Every function throws OutputFailure, naming the file.
class PartOutput {
 public:
  PartOutput(const std::string& folder, const std::string& name);

  void write(std::string_view bytes);
  // Replaces the first bytes.
  void overwrite(std::string_view bytes);
  // Syncs the file to disk and renames it. Succeeds, too, if another worker has written this output, and removed the
  // temporary file.
  void commit();

 private:
  void flush();

  std::string path_, buffer_;
  AtomicFile file_;
};

}  // namespace qkv
