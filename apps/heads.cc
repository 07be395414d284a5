// qkv heads: what the attention heads of a run do, the effect of removing them, and a smaller run without some of them.
#include "qkv/heads.h"

#include <memory>
#include <string>

#include "commands.h"
#include "options.h"
#include "output_files.h"
#include "qkv/error.h"

namespace {

struct HeadsCommand {
  qkv::HeadsOptions heads;
  std::string run, json, html, out;
  int64_t prune = 0;
};

void print_prune(const qkv::PruneReport& report) {
  print_error("{}: {} parameters instead of {}\n", report.out, report.parameters, report.parameters_before);
  for (const std::string& removed : report.removed) print_error("  removed: {}\n", removed);
}

void analyse(HeadsCommand options, bool examples_given) {
  require_different_files({{"--data", options.heads.data}}, {{"--html", options.html}, {"--json", options.json}});
  if (!options.out.empty() && options.prune == 0) throw qkv::Error("--out: requires --prune");
  if (options.prune > 0 && options.out.empty()) throw qkv::Error("--prune: requires --out");
  if (options.prune > 0) qkv::check_prune(options.run, options.prune, options.out);
  if (!options.html.empty() && !examples_given) options.heads.examples = 1;
  if (options.prune > 0) options.heads.importance = true;
  const qkv::HeadsReport report = qkv::analyse_heads(options.run, options.heads);
  if (options.prune > 0) print_prune(qkv::prune_heads(options.run, report, options.prune, options.out));
  if (!options.html.empty()) write_output(options.html, qkv::heads_to_html(report));
  if (!options.json.empty()) write_result(options.json, qkv::heads_to_json(report));
  if (options.json != "-" && options.html != "-") print_out(qkv::heads_to_text(report));
}

}  // namespace

void add_heads_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("heads", "Show what attention heads do, and the effect of removing them");
  const auto options = std::make_shared<HeadsCommand>();
  command->add_option("run", options->run, "Run directory")->required();
  command
      ->add_option("--data", options->heads.data,
                   "Texts, one per line; a recommender has the log in its run instead, of which the last item of each "
                   "user is predicted")
      ->type_name("FILE");
  add_options(*command, options->heads);
  command->add_option("--json", options->json, "Write the report as JSON to this file; - is standard output")
      ->type_name("FILE");
  command
      ->add_option("--html", options->html,
                   "Write a self-contained HTML page to this file, with one attention map for each head unless "
                   "--examples is given; - is standard output")
      ->type_name("FILE");
  command
      ->add_option("--prune", options->prune,
                   "Write a run without this many heads in each attention of each layer: the least important ones by "
                   "their gradients")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--out", options->out, "Run directory that --prune writes; must not exist")->type_name("DIR");
  add_threads_option(*command);
  const CLI::Option* examples = command->get_option("--examples");
  command->callback([options, examples] { analyse(*options, examples->count() > 0); });
}
