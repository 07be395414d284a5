// qkv score: BLEU or chrF of translations against one reference each, and how probable a language model finds texts.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "options.h"
#include "qkv/error.h"
#include "qkv/evaluate.h"
#include "qkv/text.h"
#include "score_text.h"

namespace {

struct ScoreOptions {
  std::string metric, references, hypotheses = "-";
  bool lowercase = false, json = false;
  ScoreTextOptions text;

  bool of_a_model() const { return metric == "perplexity" || metric == "tokens"; }
};

// Throws CLI::ValidationError for an option that the metric does not have, and for one that it lacks.
void check_options(const CLI::App& command, const ScoreOptions& options) {
  const auto refuse = [&](const char* option, bool wrong) {
    if (wrong && command.get_option(option)->count() > 0)
      throw CLI::ValidationError(option, fmt::format("is no option of {}", options.metric));
  };
  for (const char* option : {"--ref", "--hyp", "--lowercase"}) refuse(option, options.of_a_model());
  for (const char* option : {"run", "--file", "--context", "--stride"}) refuse(option, !options.of_a_model());
  refuse("--lines", options.metric != "perplexity");
  refuse("--alternatives", options.metric != "tokens");
  const char* needed = options.of_a_model() ? "run" : "--ref";
  if (command.get_option(needed)->count() == 0)
    throw CLI::ValidationError(needed, fmt::format("is required for {}", options.metric));
}

void print_bleu(const qkv::BleuScore& bleu, const ScoreOptions& options) {
  if (options.json) {
    const nlohmann::ordered_json json = {{"metric", "bleu"},
                                         {"lowercase", options.lowercase},
                                         {"score", bleu.score},
                                         {"precisions", bleu.precisions},
                                         {"brevity_penalty", bleu.brevity_penalty},
                                         {"hypothesis_length", bleu.hypothesis_length},
                                         {"reference_length", bleu.reference_length}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("BLEU = {:.2f} {:.1f} (BP = {:.3f}, {} / {} tokens)\n", bleu.score, fmt::join(bleu.precisions, "/"),
               bleu.brevity_penalty, bleu.hypothesis_length, bleu.reference_length);
  }
}

void print_chrf(const qkv::ChrfScore& chrf, const ScoreOptions& options) {
  if (options.json) {
    const nlohmann::ordered_json json = {{"metric", "chrf"}, {"lowercase", options.lowercase}, {"score", chrf.score}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("chrF2 = {:.2f}\n", chrf.score);
  }
}

void score(const ScoreOptions& options) {
  if (options.references == "-" && options.hypotheses == "-")
    throw CLI::ValidationError("--ref, --hyp", "only one of them can be standard input");
  const std::vector<std::string> references = qkv::read_lines(options.references);
  const std::vector<std::string> hypotheses = qkv::read_lines(options.hypotheses);
  if (hypotheses.size() != references.size())
    throw qkv::Error(fmt::format("score: {} lines in {} and {} in {}; both must have the same number",
                                 hypotheses.size(), input_name(options.hypotheses), references.size(),
                                 input_name(options.references)));
  if (references.empty()) throw qkv::Error(fmt::format("score: {} has no lines", input_name(options.references)));
  if (options.metric == "bleu")
    print_bleu(qkv::bleu(hypotheses, references, options.lowercase), options);
  else
    print_chrf(qkv::chrf(hypotheses, references, options.lowercase), options);
}

void score_with_model(ScoreTextOptions options, const std::string& metric, bool json) {
  options.json = json;
  metric == "tokens" ? score_tokens(options) : score_perplexity(options);
}

}  // namespace

void add_score_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "score", "Compute BLEU or chrF of translations, as sacreBLEU does, or how probable a language model finds texts");
  const auto options = std::make_shared<ScoreOptions>();
  command
      ->add_option("metric", options->metric,
                   "bleu, chrf, perplexity, or tokens (the log-probability of each token of each line, as JSON lines)")
      ->required()
      ->check(CLI::IsMember({"bleu", "chrf", "perplexity", "tokens"}));
  command->add_option("run", options->text.run, "Run directory of a language model, for perplexity and tokens");
  command->add_option("--file", options->text.file, "Text for perplexity and tokens; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--lines", options->text.lines,
                    "Print the perplexity, the log-probability and the number of scored tokens of each line");
  add_options(*command, options->text.score);
  command->add_option("--ref", options->references, "File of references, one per line")->type_name("FILE");
  command->add_option("--hyp", options->hypotheses, "File of translations, one per line; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--lowercase", options->lowercase, "Ignore case");
  command->add_flag("--json", options->json, "Print all figures as JSON");
  add_threads_option(*command);
  command->callback([options, command] {
    check_options(*command, *options);
    if (options->of_a_model()) return score_with_model(options->text, options->metric, options->json);
    score(*options);
  });
}
