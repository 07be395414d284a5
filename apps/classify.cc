// qkv classify: the labels of texts and pairs of texts.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "line_reader.h"
#include "options.h"
#include "qkv/classifier.h"
#include "qkv/classify_lines.h"
#include "qkv/error.h"
#include "qkv/result_json.h"

namespace {

struct ClassifyCommand {
  std::string run, file = "-", input;
  bool json = false;
  qkv::ClassifyOptions classify;
};

std::string classified_line(const qkv::Classifier& classifier, const std::vector<qkv::LabelScore>& best) {
  std::string line;
  for (const auto& [label, score] : best)
    line += fmt::format("{}{}\t{}", line.empty() ? "" : "\t", classifier.labels()[static_cast<size_t>(label)], score);
  return line;
}

// Answers lines, or requests in JSON. A request that is not valid has an error as its answer.
class ClassifiedLines {
 public:
  ClassifiedLines(const ClassifyCommand& options, const qkv::Classifier& classifier)
      : options_(options),
        classifier_(classifier),
        requests_(!options.input.empty()),
        lines_(requests_ ? options.input : options.file) {}

  void answer_all() {
    std::vector<std::string> window;
    for (bool more = true; more;) {
      const int64_t first = lines_.lines() + 1;
      more = read_window(lines_, window);
      answer(window, first);
      stop_if_interrupted();
      std::fflush(stdout);
    }
    if (cut_ > 0)
      fmt::print(stderr, "qkv: {} of {} lines were truncated to {} tokens\n", cut_, lines_.lines(),
                 options_.classify.max_length.value_or(classifier_.max_length()));
  }

 private:
  void answer(const std::vector<std::string>& window, int64_t first) {
    std::vector<qkv::ClassifierInput> inputs;
    std::vector<std::string> errors(window.size());
    for (size_t i = 0; i < window.size(); i++) {
      const int64_t number = first + static_cast<int64_t>(i);
      if (!requests_) {
        inputs.push_back(qkv::parse_text_line(window[i], number));
        continue;
      }
      try {
        inputs.push_back(qkv::parse_classify_line(window[i]));
      } catch (const qkv::Error& refused) {
        errors[i] = fmt::format("line {}: {}", number, refused.what());
      }
    }
    qkv::ClassifyOptions options = options_.classify;
    options.first_number = first;
    const qkv::Classifications found = classifier_.classify(inputs, options);
    cut_ += found.cut;
    size_t next = 0;
    for (const std::string& error : errors) {
      if (!error.empty()) {
        fmt::print("{}\n", qkv::error_to_json(error));
        continue;
      }
      const auto& best = found.texts[next];
      const qkv::ClassifierInput& input = inputs[next++];
      fmt::print("{}\n", requests_ || options_.json ? qkv::classification_to_json(input, best, classifier_.labels())
                                                    : classified_line(classifier_, best));
    }
  }

  const ClassifyCommand& options_;
  const qkv::Classifier& classifier_;
  bool requests_;
  LineReader lines_;
  int64_t cut_ = 0;
};

}  // namespace

void add_classify_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("classify", "Print the labels of texts or pairs of texts, with scores");
  const auto options = std::make_shared<ClassifyCommand>();
  command->add_option("run", options->run, "Run directory of a classifier")->required();
  CLI::Option* file =
      command
          ->add_option("--file", options->file,
                       "Texts, one per line; a pair of texts has a tab between them; - is standard input")
          ->type_name("FILE")
          ->capture_default_str();
  command
      ->add_option("--input", options->input,
                   "Requests, one JSON object per line: text and, for a pair, pair; - is standard input")
      ->type_name("FILE")
      ->excludes(file);
  add_options(*command, options->classify);
  command->add_flag("--json", options->json, "Print one JSON object per line: text, labels with scores");
  add_threads_option(*command);
  command->callback([options] {
    const qkv::Classifier classifier(options->run);
    listen_for_interrupts();
    ClassifiedLines(*options, classifier).answer_all();
  });
}
