// Jobs over the lines of files: the work of qkv translate, embed and recommend on a file, and on the parts of a folder.
// Results do not depend on how many lines arrive together.
//
// A job over many files has a folder of input files, the parts, and a folder with one output for each. The outputs are
// the state of the job: a part whose output exists is done. So workers need not know of each other, a job continues
// when the same command is started again, and a part that two workers do has the same output. docs/jobs.md.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/embedder.h"
#include "qkv/pivot.h"
#include "qkv/recommender.h"
#include "qkv/translator.h"

namespace [[gnu::visibility("default")]] qkv {

// Reads the same lines as read_lines, but does not check that they are UTF-8. A line has at most 16 MiB.
class LineReader {
 public:
  // Opens a file; "-" is standard input. on_signal is called when a signal arrives while next waits, and may throw.
  // Throws Error, naming the file, if it cannot be opened.
  explicit LineReader(const std::string& path, std::function<void()> on_signal = {});
  // Reads an open file, which must outlive the reader. name: in errors.
  LineReader(int file, std::string name) : name_(std::move(name)), fd_(file) {}
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Reads the next line, as LineSource specifies. Throws Error, naming the file, if it cannot be read or the line is
  // too long.
  Next next(std::string& line, bool wait);

  const std::string& name() const { return name_; }
  int64_t lines() const { return lines_; }  // read so far

 private:
  bool take(std::string& line);
  bool fill(bool wait);

  std::string name_, buffer_;  // bytes before begin_ are consumed; bytes before searched_ contain no "\n"
  std::function<void()> on_signal_;
  size_t begin_ = 0, searched_ = 0;
  int fd_ = 0;
  bool owned_ = false, ended_ = false;
  int64_t lines_ = 0;
};

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

// Where answers go. Functions are called from the calling thread.
struct LineOutput {
  std::function<void(std::string_view)> write;  // appends to the output
  // Replaces the first bytes of the output. Required by VectorForm::npy only.
  std::function<void(std::string_view)> overwrite = {};
  // Called with the number of lines answered since the last call, perhaps 0. May throw to stop.
  std::function<void(int64_t)> progress = [](int64_t) {};
  // Called with one line of text on input that was truncated or split.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

// The contents of a line of a translation in addition to the text.
struct TranslationForm {
  bool json = false, n_best = false, scores = false, word_scores = false, alignment = false, attention = false;
};

// Returns the form in which qkv translate prints what the options ask for: n-best lists, alignments, weights of
// attention.
TranslationForm form_of(const TranslateOptions& options, bool json);

// Translates lines as they arrive.
void translate_lines(const Translator& translator, const LineSource& read, TranslateOptions options,
                     const TranslationForm& form, const LineOutput& output);
// By a chain of models: one entry of `options` for each, or none. Throws Error for another number.
void translate_lines(const PivotTranslator& chain, const LineSource& read, std::vector<TranslateOptions> options,
                     const TranslationForm& form, const LineOutput& output);

// The options of a translator that summaries do not have.
inline constexpr std::array<std::string_view, 11> kNotOfSummaries = {
    "sentences", "protected_parts", "protect",         "glossary",        "n_best",        "alternatives",
    "alignment", "attention",       "replace_unknown", "attention_layer", "attention_head"};

// How vectors are written: numbers separated by spaces, or a JSON object, in one line each; or all as a float32 array
// [lines, d] in NumPy's format, version 1.0.
enum class VectorForm { text, json, npy };

// Embeds lines as they arrive.
void embed_lines(const Embedder& embedder, LineReader& lines, EmbedOptions options, VectorForm form,
                 const LineOutput& output);

// Answers requests for recommendations, JSON lines (docs/recommend.md), by JSON as they arrive. `options` has the
// values that a request does not set. A request that is not valid has an error as its answer.
void recommend_lines(const Recommender& recommender, const Titles& titles, LineReader& lines,
                     const std::shared_ptr<const RecommendOptions>& options, const LineOutput& output);

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

}  // namespace qkv
