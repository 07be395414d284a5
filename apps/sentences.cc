// qkv data sentences and qkv data abbreviations: split text into sentences, and learn where they do not end.
#include "sentences.h"

#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "program/lines/sentence_lines.h"
#include "signals.h"

namespace {

struct SentenceOptions {
  std::vector<std::string> inputs = {"-"};
  std::string run, abbreviations;
};

qkv::LineOutput standard_output() {
  qkv::LineOutput output{print_out};
  output.progress = [](int64_t) {
    flush_out();
    stop_if_interrupted();
  };
  return output;
}

void add_input_option(CLI::App& command, SentenceOptions& options, const char* help) {
  command.add_option("--input", options.inputs, help)->type_name("FILE")->expected(1)->take_all()->default_str("-");
}

}  // namespace

void add_sentences_command(CLI::App& data) {
  CLI::App* command = data.add_subcommand("sentences", "Split lines of text into sentences, a line each");
  const auto options = std::make_shared<SentenceOptions>();
  command->add_option("run", options->run, "Run directory of a translator, whose abbreviations are used");
  add_input_option(*command, *options, "Text in any language; may be repeated; - is standard input");
  command
      ->add_option("--abbreviations", options->abbreviations,
                   "Abbreviations that seldom end a sentence, one per line, in addition to the built-in ones")
      ->type_name("FILE");
  command->callback([options] {
    listen_for_interrupts();
    qkv::split_lines(options->inputs, options->run, options->abbreviations, standard_output());
    flush_out();
  });
}

void add_abbreviations_command(CLI::App& data) {
  CLI::App* command = data.add_subcommand("abbreviations", "Find the abbreviations of a text, for qkv data sentences");
  const auto options = std::make_shared<SentenceOptions>();
  add_input_option(*command, *options, "Text, best with a sentence per line; may be repeated; - is standard input");
  command->callback([options] {
    listen_for_interrupts();
    qkv::learn_abbreviations(options->inputs, standard_output());
    flush_out();
  });
}
