// qkv score: computes BLEU or chrF of translations against one reference each.
#include "qkv/score.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "qkv/error.h"
#include "qkv/text.h"

namespace {

struct ScoreOptions {
  std::string metric, references, hypotheses = "-";
  bool lowercase = false, json = false;
};

std::string name_of(const std::string& path) { return path == "-" ? "standard input" : path; }

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
                                 hypotheses.size(), name_of(options.hypotheses), references.size(),
                                 name_of(options.references)));
  if (references.empty()) throw qkv::Error(fmt::format("score: {} has no lines", name_of(options.references)));
  if (options.metric == "bleu")
    print_bleu(qkv::bleu(hypotheses, references, options.lowercase), options);
  else
    print_chrf(qkv::chrf(hypotheses, references, options.lowercase), options);
}

}  // namespace

void add_score_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("score", "Compute BLEU or chrF of translations; the scores equal those of sacreBLEU");
  const auto options = std::make_shared<ScoreOptions>();
  command->add_option("metric", options->metric, "bleu or chrf")->required()->check(CLI::IsMember({"bleu", "chrf"}));
  command->add_option("--ref", options->references, "File of references, one per line")->type_name("FILE")->required();
  command->add_option("--hyp", options->hypotheses, "File of translations, one per line; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--lowercase", options->lowercase, "Ignore case");
  command->add_flag("--json", options->json, "Print all figures as JSON");
  command->callback([options] { score(*options); });
}
