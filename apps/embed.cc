// qkv embed: one vector per line of text.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include "commands.h"
#include "line_reader.h"
#include "options.h"
#include "qkv/embedder.h"
#include "qkv/error.h"
#include "qkv/result_json.h"

namespace {

struct EmbedOptions {
  std::string run, file = "-", npy;
  bool json = false;
  qkv::EmbedOptions embed;
};

// A float32 array [lines, d] in NumPy's format, version 1.0. The header is written at the end, when the number of lines
// is known. The file gets its name when it is complete.
class NpyFile {
 public:
  // Throws qkv::Error, naming the file; so does finish.
  NpyFile(std::string path, int64_t width)
      : path_(std::move(path)), temporary_(path_ + ".partial"), file_(temporary_, std::ios::binary), width_(width) {
    if (!(file_ << header())) fail(std::strerror(errno));
  }
  ~NpyFile() {
    std::error_code error;
    if (!done_) std::filesystem::remove(temporary_, error);
  }
  NpyFile(const NpyFile&) = delete;
  NpyFile& operator=(const NpyFile&) = delete;

  void add(std::span<const float> vector) {
    file_.write(reinterpret_cast<const char*>(vector.data()), static_cast<std::streamsize>(vector.size_bytes()));
    lines_++;
  }
  void finish() {
    file_.seekp(0);
    file_ << header();
    file_.close();
    std::error_code error;
    if (file_) std::filesystem::rename(temporary_, path_, error);
    if (!file_ || error) fail(error ? error.message() : std::strerror(errno));
    done_ = true;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw qkv::Error(fmt::format("{}: cannot be written: {}", path_, reason));
  }
  std::string header() const {
    constexpr size_t kBytes = 128, kLength = kBytes - 10;  // a multiple of 64; the first ten bytes are binary
    std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", lines_, width_);
    text.resize(kLength - 1, ' ');
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(kLength) + '\0' + text + '\n';
  }

  std::string path_, temporary_;
  std::ofstream file_;
  int64_t width_, lines_ = 0;
  bool done_ = false;
};

void print_vector(const std::string& text, std::span<const float> vector, bool json) {
  print_out(json ? qkv::embedding_to_json(text, vector) + "\n" : fmt::format("{}\n", fmt::join(vector, " ")));
}

void embed(EmbedOptions& options) {
  const qkv::Embedder embedder(options.run);
  listen_for_interrupts();
  LineReader reader(options.file);
  std::unique_ptr<NpyFile> npy;
  if (!options.npy.empty()) npy = std::make_unique<NpyFile>(options.npy, embedder.width());
  int64_t cut = 0;
  std::vector<std::string> lines;
  for (bool more = true; more;) {
    options.embed.first_number = reader.lines() + 1;
    more = read_window(reader, lines);
    const qkv::Embeddings found = embedder.embed(lines, options.embed);
    stop_if_interrupted();
    cut += found.cut;
    const auto width = static_cast<size_t>(found.width);
    for (size_t i = 0; i < lines.size(); i++) {
      const std::span<const float> vector = std::span(found.values).subspan(i * width, width);
      if (npy)
        npy->add(vector);
      else
        print_vector(lines[i], vector, options.json);
    }
    std::fflush(stdout);
  }
  if (npy) npy->finish();
  if (cut > 0)
    fmt::print(stderr, "qkv: {} of {} lines were truncated to {} tokens\n", cut, reader.lines(),
               options.embed.max_length.value_or(embedder.max_length()));
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
  CLI::Option* json = command->add_flag("--json", options->json, "Print one JSON object per line: text and vector");
  command->add_option("--npy", options->npy, "Write the vectors to this file in NumPy's format: float32 [lines, d]")
      ->type_name("FILE")
      ->excludes(json);
  add_threads_option(*command);
  command->callback([options] { embed(*options); });
}
