// qkv summarize: a summary of each text, by a model of whole texts.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "default_options.h"
#include "options.h"
#include "program/lines/summaries.h"
#include "qkv/error.h"
#include "qkv/jobs.h"
#include "qkv/translator.h"
#include "signals.h"

namespace {

struct SummarizeCommand {
  std::string run;
  std::vector<std::string> files = {"-"};
  bool lines = false, json = false;
  qkv::TranslateOptions summarize;
  qkv::Placement placement;
};

void summarize(const SummarizeCommand& command) {
  const qkv::Translator translator(command.run, {}, command.placement);
  listen_for_interrupts();
  qkv::LineOutput output{print_out};
  output.note = [](const std::string& text) { print_error("qkv: {}\n", text); };
  output.progress = [](int64_t done) {
    if (done > 0) flush_out();
    stop_if_interrupted();
  };
  const qkv::TextUnitOfFile unit = command.lines ? qkv::TextUnitOfFile::line : qkv::TextUnitOfFile::file;
  qkv::TextFiles texts(command.files, unit, stop_if_interrupted);
  qkv::summarize_texts(translator, texts, command.summarize, command.json, output);
  flush_out();
}

}  // namespace

void add_summarize_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("summarize", "Summarize texts with a model of whole texts: BART, Pegasus, T5");
  const auto options = std::make_shared<SummarizeCommand>();
  command->add_option("run", options->run, "Run directory of a translator that reads whole texts")->required();
  command->add_option("file", options->files, "Texts to summarize, one per file; - is standard input")
      ->type_name("FILE")
      ->default_str("-");
  command->add_flag("--lines", options->lines, "Summarize each line of the files by itself");
  command->add_flag("--json", options->json,
                    "Print one JSON object per text: file, source, hypotheses, tokens, scores");
  add_options(*command, options->summarize, {qkv::kNotOfSummaries.begin(), qkv::kNotOfSummaries.end()});
  add_options(*command, options->placement);
  require_sampling(*command);
  add_threads_option(*command);
  command->callback([options, command] {
    if (std::ranges::count(options->files, "-") > 1) throw qkv::Error("file: standard input (-) may be named once");
    const qkv::TranslateOptions defaults = qkv::default_summary_options(options->run);
    options->summarize.sentences = defaults.sentences;
    options->summarize.protected_parts = defaults.protected_parts;
    take_defaults(*command, options->summarize, defaults);
    summarize(*options);
  });
}
