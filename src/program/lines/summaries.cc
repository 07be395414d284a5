#include "program/lines/summaries.h"

#include <deque>
#include <utility>

#include "core/fail.h"
#include "program/lines/jobs.h"
#include "program/lines/result_json.h"
#include "qkv/text.h"

namespace qkv {
namespace {

constexpr size_t kLongestText = size_t{16} << 20;  // bytes, as of a line

}  // namespace

TextFiles::TextFiles(std::vector<std::string> files, TextUnitOfFile unit, std::function<void()> on_signal)
    : files_(std::move(files)), unit_(unit), on_signal_(std::move(on_signal)) {}

Next TextFiles::next(SourceLine& text, bool wait) {
  while (true) {
    if (!lines_) {
      if (opened_ == files_.size()) return Next::end;
      file_ = opened_++;
      lines_ = std::make_unique<LineReader>(files_[file_], on_signal_);
      text_.clear();
    }
    std::string line;
    const Next found = lines_->next(line, wait);
    if (found == Next::later) return found;
    text.name = lines_->name();
    if (unit_ == TextUnitOfFile::line && found == Next::line) {
      text.text = std::move(line);
      text.name += fmt::format(", line {}", lines_->lines());
      return found;
    }
    if (found == Next::line) {
      append(line);
      continue;
    }
    lines_.reset();
    if (unit_ == TextUnitOfFile::line) continue;
    text.text = std::move(text_);
    return Next::line;
  }
}

// Appends a line to the text of the file.
void TextFiles::append(const std::string& line) {
  if (lines_->lines() > 1) text_ += '\n';
  text_ += line;
  if (text_.size() > kLongestText) fail("{}: is longer than {} bytes", lines_->name(), kLongestText);
}

void summarize_texts(const Translator& translator, TextFiles& texts, TranslateOptions options, bool json,
                     const LineOutput& output) {
  FewNotes notes(output.note);
  options.on_note = [&](const std::string& note) { notes.add(note); };
  options.on_progress = output.progress;
  std::deque<std::string> files;  // of the texts without a summary
  const auto read = [&](SourceLine& text, bool wait) {
    const Next found = texts.next(text, wait);
    if (found == Next::line) files.push_back(texts.file());
    return found;
  };
  const auto write = [&](Translation&& summary) {
    output.write((json ? summary_to_json(files.front(), summary) : one_line(summary.text())) + "\n");
    files.pop_front();
  };
  translator.translate(read, write, options);
  notes.finish();
}

}  // namespace qkv
