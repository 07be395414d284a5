// qkv embed: one vector per line of text, or hard negatives for rows of pairs.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "count_line.h"
#include "options.h"
#include "output_files.h"
#include "parts.h"
#include "qkv/embedder.h"
#include "qkv/error.h"
#include "qkv/hard_negatives.h"
#include "qkv/jobs.h"
#include "signals.h"

namespace {

struct EmbedOptions {
  std::string run, file = "-", npy;
  const CLI::Option* npy_option = nullptr;
  bool json = false;
  std::string negatives;  // file to write
  std::vector<std::string> columns;
  qkv::HardNegativeOptions hard_negatives;
  qkv::EmbedOptions embed;
  qkv::Placement placement;
  PartsOptions parts;

  qkv::VectorForm form() const {
    if (npy_option->count() > 0) return qkv::VectorForm::npy;
    return json ? qkv::VectorForm::json : qkv::VectorForm::text;
  }
};

// Writes to the file of --npy, which gets its name when it is complete.
void write_npy(const std::string& path, const qkv::Embedder& embedder, qkv::LineReader& lines,
               const qkv::EmbedOptions& options, qkv::LineOutput output) {
  qkv::OutputFile file(path);
  output.write = [&](std::string_view bytes) { file.write(bytes); };
  output.overwrite = [&](std::string_view bytes) { file.overwrite(bytes); };
  qkv::embed_lines(embedder, lines, options, qkv::VectorForm::npy, output);
  file.commit();
}

void embed(const EmbedOptions& options) {
  if (options.form() == qkv::VectorForm::npy && options.npy.empty()) throw qkv::Error("--npy: requires a file");
  const qkv::Embedder embedder(options.run, options.placement);
  listen_for_interrupts();
  qkv::LineReader lines(options.file, stop_if_interrupted);
  qkv::LineOutput output{print_out};
  output.note = [](const std::string& text) { print_error("qkv: {}\n", text); };
  output.progress = [](int64_t) {
    flush_out();
    stop_if_interrupted();
  };
  if (options.form() == qkv::VectorForm::npy)
    write_npy(options.npy, embedder, lines, options.embed, output);
  else
    qkv::embed_lines(embedder, lines, options.embed, options.form(), output);
}

void mine_negatives(const EmbedOptions& options) {
  require_different_files({{"--file", options.file}}, {{"--negatives", options.negatives}});
  qkv::check(options.hard_negatives);
  const qkv::Embedder embedder(options.run, options.placement);
  listen_for_interrupts();
  CountLine texts("texts", "embed"), rows("rows", "search");
  qkv::HardNegativeObserver observer;
  observer.on_message = [&](const std::string& line) {
    texts.clear();
    rows.clear();
    print_error("qkv: {}\n", line);
  };
  observer.on_progress = [&](qkv::HardNegativeStep step, int64_t more) {
    stop_if_interrupted();
    (step == qkv::HardNegativeStep::embed ? texts : rows).add(more);
  };
  qkv::mine_hard_negatives(embedder, {options.file, options.columns, options.negatives}, options.hard_negatives,
                           options.embed, observer);
}

void embed_parts(const EmbedOptions& options) {
  if (!options.npy.empty()) throw qkv::Error(fmt::format("--npy {}: takes no file with --in", options.npy));
  PartsJob job(options.parts, options.form() == qkv::VectorForm::npy ? ".npy" : "");
  const qkv::Embedder embedder(options.run, options.placement);
  embedder.embed({}, options.embed);  // checks the options
  job.run([&](qkv::LineReader& lines, const qkv::LineOutput& output) {
    qkv::embed_lines(embedder, lines, options.embed, options.form(), output);
  });
}

void run_embed(const EmbedOptions& options) {
  if (options.parts.given()) return embed_parts(options);
  options.negatives.empty() ? embed(options) : mine_negatives(options);
}

// Adds the options that write rows with hard negatives instead of vectors.
void add_negatives(CLI::App& command, EmbedOptions& options) {
  CLI::Option* negatives = command.add_option(
      "--negatives", options.negatives,
      "Instead of vectors, write rows with hard negatives to this file, .csv, .tsv or .jsonl; --file has rows of an "
      "anchor and its positive");
  negatives->type_name("FILE")->excludes("--json")->excludes("--npy");
  CLI::Option* columns = command.add_option(
      "--columns", options.columns,
      "Columns of these rows: an anchor, its positive and perhaps negatives, by names or numbers from 1");
  columns->delimiter(',')->type_name("NAMES")->needs(negatives)->group("Hard negatives");
  add_options(command, options.hard_negatives);
  visit_fields(options.hard_negatives, [&](std::string_view name, auto&, const qkv::Field&) {
    command.get_option(flag_of(name))->needs(negatives);
  });
}

}  // namespace

void add_embed_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("embed", "Embed lines of text as vectors");
  const auto options = std::make_shared<EmbedOptions>();
  command->add_option("run", options->run, "Run directory of an encoder, a translator or a language model")->required();
  command->add_option("--file", options->file, "Text, one line per vector; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  add_options(*command, options->embed);
  add_options(*command, options->placement);
  CLI::Option* json = command->add_flag("--json", options->json, "Print one JSON object per line: text and vector");
  options->npy_option = command
                            ->add_option("--npy", options->npy,
                                         "Write the vectors to this file in NumPy's format: float32 [lines, d]; with "
                                         "--in without a file: to outputs whose names end in .npy")
                            ->type_name("FILE")
                            ->expected(0, 1)
                            ->excludes(json);
  add_negatives(*command, *options);
  add_parts_options(*command, options->parts, {"--file", "--negatives"});
  add_threads_option(*command);
  command->callback([options] { run_embed(*options); });
}
