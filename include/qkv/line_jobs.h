// Answers to the lines of a text: the work of qkv translate, embed, classify, recommend and generate on a file, and of
// qkv::PartFolders on many. Results do not depend on how many lines arrive together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/classifier.h"
#include "qkv/embedder.h"
#include "qkv/generator.h"
#include "qkv/line_reader.h"
#include "qkv/recommender.h"
#include "qkv/titles.h"
#include "qkv/translator.h"

namespace [[gnu::visibility("default")]] qkv {

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

// Returns the lines of translation `number`, which counts from 0: one per hypothesis, or one JSON object. A plain line
// is the text as one_line() writes it, or fields separated by " ||| ": number (of an n-best list), text, alignment, word
// scores, score. JSON has the text as it is.
std::string translation_lines(const Translation& translation, int64_t number, const TranslationForm& form);

// Translates lines as they arrive.
void translate_lines(const Translator& translator, const LineSource& read, TranslateOptions options,
                     const TranslationForm& form, const LineOutput& output);

// How vectors are written: numbers separated by spaces, or a JSON object, in one line each; or all as a float32 array
// [lines, d] in NumPy's format, version 1.0.
enum class VectorForm { text, json, npy };

// Embeds lines as they arrive.
void embed_lines(const Embedder& embedder, LineReader& lines, EmbedOptions options, VectorForm form,
                 const LineOutput& output);

// The lines for a classifier and their answers: text (parse_text_line) by labels and scores separated by tabs, with
// spaces for the tabs and line ends of a label; text by JSON; or requests in JSON (parse_classify_line) by JSON. A
// request that is not valid has an error as its answer.
enum class ClassifyForm { text, json, requests };

// Classifies lines as they arrive.
void classify_lines(const Classifier& classifier, LineReader& lines, ClassifyOptions options, ClassifyForm form,
                    const LineOutput& output);

// Answers requests for recommendations (parse_recommend_line) by JSON as they arrive. `options` has the values that a
// request does not set. A request that is not valid has an error as its answer.
void recommend_lines(const Recommender& recommender, const Titles& titles, LineReader& lines,
                     const std::shared_ptr<const RecommendOptions>& options, const LineOutput& output);

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

}  // namespace qkv
