// Parts of jobs over lines that only the program needs; qkv/jobs.h has the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "qkv/classifier.h"
#include "qkv/generator.h"
#include "qkv/jobs.h"

namespace qkv {

// Reads all lines up to the end of the input.
std::vector<std::string> read_all(LineReader& reader);

// Reads the lines that have arrived, at least one unless the input ends, and at most some thousands. Returns false at
// the end of the input.
bool read_window(LineReader& reader, std::vector<std::string>& lines);

// Passes on the first ten notes on lines, or on texts of a document, and counts the others.
class FewNotes {
 public:
  explicit FewNotes(std::function<void(const std::string&)> report) : report_(std::move(report)) {}

  void add(const std::string& note);
  // Reports how many notes were not passed on, if any.
  void finish() const;

 private:
  const std::function<void(const std::string&)> report_;
  int64_t notes_ = 0;
};

// Returns the lines of translation `number`, which counts from 0: one per hypothesis, or one JSON object. A plain line
// is the text as one_line() writes it, or fields separated by " ||| ": number (of an n-best list), text, alignment,
// word scores, score. JSON has the text as it is.
std::string translation_lines(const Translation& translation, int64_t number, const TranslationForm& form);

// The lines for a classifier and their answers: text (parse_text_line) by labels and scores separated by tabs, with
// spaces for the tabs and line ends of a label; text by JSON; or requests in JSON (parse_classify_line) by JSON. A
// request that is not valid has an error as its answer.
enum class ClassifyForm { text, json, requests };

// Classifies lines as they arrive.
void classify_lines(const Classifier& classifier, LineReader& lines, ClassifyOptions options, ClassifyForm form,
                    const LineOutput& output);

// How recommendations for users are written: as the answers to the requests {"user": …}, one JSON object per line, or
// as lines user,item,rank,score after a header with these names.
enum class UserForm { json, csv };

// Recommends for the users of the run from number `begin` to before `end`, in the order of Recommender::users. The
// header of CSV is written if begin is 0.
void recommend_users(const Recommender& recommender, const Titles& titles, int64_t begin, int64_t end,
                     const std::shared_ptr<const RecommendOptions>& options, UserForm form, const LineOutput& output);

// Continues prompts. A plain answer is the prompt with its continuation, and options.alternatives adds one line for
// each token; it may contain line breaks. An answer in JSON is one line.
void generate_lines(const Generator& generator, const std::vector<std::string>& prompts, GenerateOptions options,
                    bool json, const LineOutput& output);

// Writes an output of a job that has no input files into a folder, unless it exists: as PartFolders does, complete or
// not at all. Returns whether it was written. Throws Error if it cannot be written, and passes on the exceptions of
// `work`.
bool write_part(const std::string& folder, const std::string& name, const std::function<void(LineOutput&)>& work);

// Removes the temporary files in a folder whose outputs exist, and makes the folder if there is none.
void prepare_folder(const std::string& folder);

}  // namespace qkv
