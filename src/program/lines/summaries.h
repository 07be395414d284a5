// The work of `qkv summarize`: texts that are read from files, and their summaries.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qkv/jobs.h"
#include "qkv/translator.h"

namespace qkv {

// The unit of a text: a whole file, with its lines, or each line of a file.
enum class TextUnitOfFile { file, line };

// Reads texts from files, in order; "-" is standard input. A file is read when its text is needed. Lines end with "\n"
// or "\r\n", which becomes "\n"; the line end at the end of a file and a byte-order mark are no part of the text.
class TextFiles {
 public:
  // on_signal is called when a signal arrives while next waits, and may throw.
  TextFiles(std::vector<std::string> files, TextUnitOfFile unit, std::function<void()> on_signal = {});

  // Reads the next text, as LineSource specifies, with its name: that of the file, and the number of the line if lines
  // are texts. Throws Error, naming the file, if it cannot be read or a text has more than 16 MiB.
  Next next(SourceLine& text, bool wait);

  // The file of the text that was read last, as it was given.
  const std::string& file() const { return files_[file_]; }

 private:
  void append(const std::string& line);

  const std::vector<std::string> files_;
  const TextUnitOfFile unit_;
  const std::function<void()> on_signal_;
  size_t file_ = 0, opened_ = 0;       // number of the last file, and of those that were opened
  std::unique_ptr<LineReader> lines_;  // of the last file; null after its end
  std::string text_;                   // the lines of the last file so far
};

// Writes a summary for each text, in order: its text as one line, or a JSON object with "file" and the members of a
// translation.
void summarize_texts(const Translator& translator, TextFiles& texts, TranslateOptions options, bool json,
                     const LineOutput& output);

}  // namespace qkv
