// qkv rerank: texts in the order in which they answer a query.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "options.h"
#include "program/lines/classify_lines.h"
#include "program/lines/jobs.h"
#include "program/lines/result_json.h"
#include "qkv/classifier.h"
#include "qkv/error.h"
#include "qkv/text.h"
#include "signals.h"

namespace {

struct RerankCommand {
  std::string run, query, file = "-", input = "-";
  CLI::Option* query_option = nullptr;
  bool json = false;
  qkv::RerankOptions rerank;
  qkv::Placement placement;
};

// Ranks all lines of a file for the query of the command line.
void rerank_lines(const RerankCommand& options, const qkv::Classifier& classifier) {
  qkv::RerankLine request{options.query};
  qkv::LineReader lines(options.file, stop_if_interrupted);
  request.texts = qkv::read_all(lines);
  const qkv::Ranking ranking = classifier.rerank(request.query, request.texts, options.rerank);
  if (options.json) return print_out(qkv::ranking_to_json(request.query, request.texts, ranking) + "\n");
  for (const auto& [index, score] : ranking.texts)
    print_out(fmt::format("{}\t{}\n", score, qkv::one_line(request.texts[static_cast<size_t>(index)])));
}

// Answers requests in JSON. A request that is not valid has an error as its answer.
void rerank_requests(const RerankCommand& options, const qkv::Classifier& classifier) {
  classifier.rerank("", {}, options.rerank);  // checks the options
  qkv::LineReader lines(options.input, stop_if_interrupted);
  std::string line;
  while (lines.next(line, true) == qkv::Next::line) {
    std::string answer;
    try {
      const qkv::RerankLine request = qkv::parse_rerank_line(line);
      qkv::RerankOptions own = options.rerank;
      own.top = request.top.value_or(own.top);
      answer = qkv::ranking_to_json(request.query, request.texts, classifier.rerank(request.query, request.texts, own));
    } catch (const qkv::Error& refused) {
      answer = qkv::error_to_json(fmt::format("line {}: {}", lines.lines(), refused.what()));
    }
    print_out(answer + "\n");
    flush_out();
    stop_if_interrupted();
  }
}

}  // namespace

void add_rerank_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("rerank", "Sort texts by how well they answer a query, with a cross-encoder");
  const auto options = std::make_shared<RerankCommand>();
  command->add_option("run", options->run, "Run directory of a classifier")->required();
  options->query_option =
      command->add_option("--query", options->query, "Query; texts are the lines of --file")->type_name("TEXT");
  command->add_option("--file", options->file, "Texts to sort, one per line; - is standard input")
      ->type_name("FILE")
      ->capture_default_str()
      ->needs(options->query_option);
  command
      ->add_option(
          "--input", options->input,
          "Without --query: requests, one JSON object per line: query, texts and optionally top; - is standard "
          "input")
      ->type_name("FILE")
      ->capture_default_str()
      ->excludes(options->query_option);
  add_options(*command, options->rerank);
  add_options(*command, options->placement);
  command->add_flag("--json", options->json, "Print JSON, with the index of each text");
  add_threads_option(*command);
  command->callback([options] {
    const qkv::Classifier classifier(options->run, options->placement);
    listen_for_interrupts();
    options->query_option->count() > 0 ? rerank_lines(*options, classifier) : rerank_requests(*options, classifier);
  });
}
