// qkv classify: the labels of texts and pairs of texts.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "options.h"
#include "parts.h"
#include "program/lines/jobs.h"
#include "qkv/classifier.h"
#include "signals.h"

namespace {

struct ClassifyCommand {
  std::string run, file = "-", input;
  bool json = false;
  qkv::ClassifyOptions classify;
  qkv::Placement placement;
  PartsOptions parts;

  qkv::ClassifyForm form() const {
    if (!input.empty()) return qkv::ClassifyForm::requests;
    return json ? qkv::ClassifyForm::json : qkv::ClassifyForm::text;
  }
};

void classify(const ClassifyCommand& options) {
  const qkv::Classifier classifier(options.run, options.placement);
  listen_for_interrupts();
  qkv::LineReader lines(options.input.empty() ? options.file : options.input, stop_if_interrupted);
  qkv::LineOutput output{print_out};
  output.note = [](const std::string& text) { print_error("qkv: {}\n", text); };
  output.progress = [](int64_t) {
    flush_out();
    stop_if_interrupted();
  };
  qkv::classify_lines(classifier, lines, options.classify, options.form(), output);
}

void classify_parts(const ClassifyCommand& options) {
  PartsJob job(options.parts);
  const qkv::Classifier classifier(options.run, options.placement);
  classifier.classify({}, options.classify);  // checks the options
  job.run([&](qkv::LineReader& lines, const qkv::LineOutput& output) {
    qkv::classify_lines(classifier, lines, options.classify, options.form(), output);
  });
}

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
  add_options(*command, options->placement);
  command->add_flag("--json", options->json, "Print one JSON object per line: text, labels with scores");
  add_parts_options(*command, options->parts, {"--file", "--input"});
  add_threads_option(*command);
  command->callback([options] { options->parts.given() ? classify_parts(*options) : classify(*options); });
}
