// Lines of text or requests in, labels out.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "qkv/classify_lines.h"
#include "qkv/error.h"
#include "qkv/line_jobs.h"
#include "qkv/result_json.h"
#include "qkv/text.h"

namespace qkv {
namespace {

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

}  // namespace

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

}  // namespace qkv
