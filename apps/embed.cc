// qkv embed: one vector per line of text.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string_view>

#include "commands.h"
#include "options.h"
#include "parts.h"
#include "qkv/embedder.h"
#include "qkv/error.h"
#include "qkv/jobs.h"
#include "signals.h"

namespace {

struct EmbedOptions {
  std::string run, file = "-", npy;
  const CLI::Option* npy_option = nullptr;
  bool json = false;
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

void embed_parts(const EmbedOptions& options) {
  if (!options.npy.empty()) throw qkv::Error(fmt::format("--npy {}: takes no file with --in", options.npy));
  PartsJob job(options.parts, options.form() == qkv::VectorForm::npy ? ".npy" : "");
  const qkv::Embedder embedder(options.run, options.placement);
  embedder.embed({}, options.embed);  // checks the options
  job.run([&](qkv::LineReader& lines, const qkv::LineOutput& output) {
    qkv::embed_lines(embedder, lines, options.embed, options.form(), output);
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
  add_parts_options(*command, options->parts, {"--file"});
  add_threads_option(*command);
  command->callback([options] { options->parts.given() ? embed_parts(*options) : embed(*options); });
}
