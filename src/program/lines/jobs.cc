// Jobs over many lines: texts in, and texts, vectors or labels out; requests for recommendations in, answers out.
#include "program/lines/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/to_size.h"
#include "program/lines/classify_lines.h"
#include "program/lines/recommend_lines.h"
#include "program/lines/result_json.h"
#include "qkv/error.h"
#include "qkv/text.h"
#include "text/lines.h"

namespace qkv {
namespace {

// The format of fast_align and Moses: source-target, with tokens counted from 0.
std::string pharaoh(const std::vector<Alignment>& alignment) {
  std::string text;
  for (const Alignment& a : alignment) text += fmt::format("{}{}-{}", text.empty() ? "" : " ", a.source, a.target);
  return text;
}

std::string word_scores(const Hypothesis& h) {
  std::vector<std::string> scores;
  for (const WordScore& w : h.words) scores.push_back(fmt::format("{:.4f}", w.log_probability));
  return fmt::format("{}", fmt::join(scores, " "));
}

constexpr int64_t kNotes = 10;  // on single lines

// The header of a file in NumPy's format. Its length does not depend on the number of lines.
std::string npy_header(int64_t lines, int64_t width) {
  constexpr size_t kBytes = 128, kLength = kBytes - 10;  // a multiple of 64; the first ten bytes are binary
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", lines, width);
  text.resize(kLength - 1, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(kLength) + '\0' + text + '\n';
}

void write_vector(const std::string& text, std::span<const float> vector, VectorForm form, const LineOutput& output) {
  if (form == VectorForm::npy)
    output.write({reinterpret_cast<const char*>(vector.data()), vector.size_bytes()});
  else
    output.write(form == VectorForm::json ? embedding_to_json(text, vector) + "\n"
                                          : fmt::format("{}\n", fmt::join(vector, " ")));
}

// The inputs of a window of lines, and for each line the error of a request that is not valid, or "".
struct Window {
  std::vector<ClassifierInput> inputs;
  std::vector<std::string> errors;
};

Window parse(const std::vector<std::string>& lines, int64_t first, ClassifyForm form) {
  Window window;
  window.errors.resize(lines.size());
  for (size_t i = 0; i < lines.size(); i++) {
    const int64_t number = first + static_cast<int64_t>(i);
    if (form != ClassifyForm::requests) {
      window.inputs.push_back(parse_text_line(lines[i], number));
      continue;
    }
    try {
      window.inputs.push_back(parse_classify_line(lines[i]));
    } catch (const Error& refused) {
      window.errors[i] = fmt::format("line {}: {}", number, refused.what());
    }
  }
  return window;
}

// Returns a label as a field of a line.
std::string label_field(const std::string& label) {
  std::string field = one_line(label);
  std::ranges::replace(field, '\t', ' ');
  return field;
}

std::string labelled(const Classifier& classifier, const std::vector<LabelScore>& best) {
  std::string line;
  for (const auto& [label, score] : best)
    line += fmt::format("{}{}\t{}", line.empty() ? "" : "\t", label_field(classifier.labels()[to_size(label)]), score);
  return line;
}

constexpr size_t kTogether = 256, kBytesTogether = size_t{1} << 24;

// Answers requests in order. Requests that are available at once are computed together.
class RecommendJob {
 public:
  RecommendJob(const Recommender& recommender, const Titles& titles,
               const std::shared_ptr<const RecommendOptions>& options, const LineOutput& output)
      : recommender_(recommender), titles_(titles), options_(options), output_(output) {}

  void run(LineReader& lines) {
    std::string line;
    while (true) {
      const Next next = lines.next(line, waiting_.empty());
      if (next == Next::line) take(line, lines.lines());
      if (next != Next::line || waiting_.size() == kTogether || bytes_ > kBytesTogether) answer();
      if (next == Next::end) return;
    }
  }

 private:
  void take(const std::string& line, int64_t number) {
    std::optional<RecommendLine> request;
    std::string id, error;
    try {
      request = parse_recommend_line(line, options_, recommender_, titles_, id);
    } catch (const Error& refused) {
      error = error_to_json(fmt::format("line {}: {}", number, refused.what()), id) + "\n";
    }
    bytes_ += line.size();
    if (request) {
      waiting_.push_back(std::move(*request));
    } else {
      answer();
      output_.write(error);
      output_.progress(1);
    }
  }

  void answer() {
    std::vector<RecommendRequest> histories;
    for (RecommendLine& request : waiting_)
      if (!request.similar)
        histories.push_back({std::move(request.history), std::move(request.times), request.options});
    auto answers = recommender_.recommend_all(histories);
    auto next = answers.begin();
    for (const RecommendLine& request : waiting_) {
      const Recommendations answer =
          request.similar ? recommender_.similar(*request.similar, *request.options) : std::move(*next++);
      output_.write(recommendations_to_json(request, answer, titles_) + "\n");
    }
    const auto answered = std::ssize(waiting_);
    waiting_.clear();
    bytes_ = 0;
    output_.progress(answered);
  }

  const Recommender& recommender_;
  const Titles& titles_;
  const std::shared_ptr<const RecommendOptions> options_;
  const LineOutput& output_;
  std::vector<RecommendLine> waiting_;
  size_t bytes_ = 0;  // of the waiting lines
};

// Translates by a translator or a chain. callbacks: those of the options that have the callbacks.
template <class AnyTranslator, class Options>
void write_translations(const AnyTranslator& translator, const LineSource& read, const Options& options,
                        TranslateOptions& callbacks, const TranslationForm& form, const LineOutput& output) {
  FewNotes notes(output.note);
  callbacks.on_note = [&](const std::string& note) { notes.add(note); };
  callbacks.on_progress = output.progress;
  int64_t number = 0;
  translator.translate(
      read, [&](Translation&& t) { output.write(translation_lines(t, number++, form)); }, options);
  notes.finish();
}

std::string csv_rows(const std::string& user, const Recommendations& answer) {
  std::string rows;
  for (size_t i = 0; i < answer.items.size(); i++)
    rows +=
        fmt::format("{},{},{},{}\n", csv_field(user), csv_field(answer.items[i].item), i + 1, answer.items[i].score);
  return rows;
}

}  // namespace

void FewNotes::add(const std::string& note) {
  if (++notes_ <= kNotes) report_(note);
}

void FewNotes::finish() const {
  if (notes_ > kNotes) report_(fmt::format("{} further notes are not shown", notes_ - kNotes));
}

TranslationForm form_of(const TranslateOptions& options, bool json) {
  return {.json = json, .n_best = options.n_best > 1, .alignment = options.alignment, .attention = options.attention};
}

std::string translation_lines(const Translation& translation, int64_t number, const TranslationForm& form) {
  if (form.json) return translation_to_json(translation, {form.word_scores, form.alignment, form.attention}) + "\n";
  std::string lines;
  for (const Hypothesis& h : translation.hypotheses) {
    std::vector<std::string> fields;
    if (form.n_best) fields.push_back(fmt::format("{}", number));
    fields.push_back(one_line(h.text));
    if (form.alignment) fields.push_back(pharaoh(h.alignment));
    if (form.word_scores) fields.push_back(word_scores(h));
    if (form.n_best || form.scores) fields.push_back(fmt::format("{:.6f}", h.score));
    lines += fmt::format("{}\n", fmt::join(fields, " ||| "));
  }
  return lines;
}

void translate_lines(const Translator& translator, const LineSource& read, TranslateOptions options,
                     const TranslationForm& form, const LineOutput& output) {
  write_translations(translator, read, options, options, form, output);
}

void translate_lines(const PivotTranslator& chain, const LineSource& read, std::vector<TranslateOptions> options,
                     const TranslationForm& form, const LineOutput& output) {
  if (options.empty()) options.resize(chain.translators().size());
  write_translations(chain, read, options, options.front(), form, output);
}

void generate_lines(const Generator& generator, const std::vector<std::string>& prompts, GenerateOptions options,
                    bool json, const LineOutput& output) {
  options.on_text = [&](std::string_view) { output.progress(0); };
  generator.generate_all(prompts, options, [&](size_t i, const Generation& found) {
    // JSON has U+FFFD in place of incomplete UTF-8 characters.
    output.write((json ? generation_to_json(prompts[i], found) : prompts[i] + found.text) + "\n");
    if (options.alternatives > 0 && !json) output.write("\n" + tokens_to_text(found) + "\n");
    output.progress(1);
  });
}

void embed_lines(const Embedder& embedder, LineReader& lines, EmbedOptions options, VectorForm form,
                 const LineOutput& output) {
  if (form == VectorForm::npy) output.write(npy_header(0, embedder.width()));
  const size_t width = to_size(embedder.width());
  int64_t cut = 0;
  std::vector<std::string> window;
  for (bool more = true; more;) {
    options.first_number = lines.lines() + 1;
    more = read_window(lines, window);
    const Embeddings found = embedder.embed(window, options);
    cut += found.cut;
    for (size_t i = 0; i < window.size(); i++)
      write_vector(window[i], std::span(found.values).subspan(i * width, width), form, output);
    output.progress(std::ssize(window));
  }
  if (form == VectorForm::npy) output.overwrite(npy_header(lines.lines(), embedder.width()));
  if (cut > 0)
    output.note(fmt::format("{} of {} lines were truncated to {} tokens", cut, lines.lines(),
                            options.max_length.value_or(embedder.max_length())));
}

void classify_lines(const Classifier& classifier, LineReader& lines, ClassifyOptions options, ClassifyForm form,
                    const LineOutput& output) {
  int64_t cut = 0;
  std::vector<std::string> texts;
  for (bool more = true; more;) {
    options.first_number = lines.lines() + 1;
    more = read_window(lines, texts);
    const Window window = parse(texts, options.first_number, form);
    const Classifications found = classifier.classify(window.inputs, options);
    cut += found.cut;
    size_t next = 0;
    for (const std::string& error : window.errors) {
      if (!error.empty()) {
        output.write(error_to_json(error) + "\n");
        continue;
      }
      const std::vector<LabelScore>& best = found.texts[next];
      const ClassifierInput& input = window.inputs[next++];
      output.write((form == ClassifyForm::text ? labelled(classifier, best)
                                               : classification_to_json(input, best, classifier.labels())) +
                   "\n");
    }
    output.progress(std::ssize(texts));
  }
  if (cut > 0)
    output.note(fmt::format("{} of {} lines were truncated to {} tokens", cut, lines.lines(),
                            options.max_length.value_or(classifier.max_length())));
}

void recommend_lines(const Recommender& recommender, const Titles& titles, LineReader& lines,
                     const std::shared_ptr<const RecommendOptions>& options, const LineOutput& output) {
  RecommendJob(recommender, titles, options, output).run(lines);
}

void recommend_users(const Recommender& recommender, const Titles& titles, int64_t begin, int64_t end,
                     const std::shared_ptr<const RecommendOptions>& options, UserForm form, const LineOutput& output) {
  if (form == UserForm::csv && begin == 0) output.write("user,item,rank,score\n");
  const std::vector<std::string>& users = recommender.users();
  while (begin < end) {
    std::vector<RecommendLine> lines;
    std::vector<RecommendRequest> requests;
    for (size_t bytes = 0; begin < end && lines.size() < kTogether && bytes <= kBytesTogether; begin++) {
      RecommendLine& line = lines.emplace_back();
      line.options = options;
      add_user(line, users[static_cast<size_t>(begin)], recommender);
      for (const std::string& item : line.history) bytes += item.size() + sizeof item;
      requests.push_back({std::move(line.history), std::move(line.times), options});
    }
    const std::vector<Recommendations> answers = recommender.recommend_all(requests);
    for (size_t i = 0; i < lines.size(); i++)
      output.write(form == UserForm::csv ? csv_rows(*lines[i].user, answers[i])
                                         : recommendations_to_json(lines[i], answers[i], titles) + "\n");
    output.progress(std::ssize(lines));
  }
}

}  // namespace qkv
