// qkv explain: the formula of attention as a program that shows its steps, on an example or on matrices from a file.
#include "qkv/explain.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "commands.h"
#include "qkv/error.h"

namespace {

constexpr int64_t kPositions = 3, kMostPositions = 16;  // that are shown
constexpr const char* kPrintedDigits =
    "\nTextbooks print this example with three decimals. All agree, except that some print 16.923 and 17.923 for E\n"
    "and its row sums: exp(2.828…) is 16.919, so the row sums are 17.919. The weights 0.056 and 0.944 are not "
    "affected.\n";

struct ExplainOptions {
  std::string json, html, steps;
  bool layer = false, backward = false, scaling = false;
  std::optional<int64_t> positions;

  bool shows_attention() const { return !json.empty() || !html.empty() || !steps.empty() || layer || backward; }
};

qkv::ExplainInput input_of(const ExplainOptions& options) {
  qkv::ExplainInput input = options.layer ? qkv::layer_example()
                            : options.json.empty()
                                ? qkv::textbook_example()
                                : qkv::explain_input_from_json(read_text_file(options.json), options.json);
  if (options.backward && input.dO.empty())
    throw qkv::Error(fmt::format("--backward: {} has no dO, the gradient of the output", options.json));
  if (!options.backward) input.dO = {};
  return input;
}

// Explains attention, and prints it unless it goes to a file.
void explain_input(const ExplainOptions& options) {
  const qkv::ExplainInput input = input_of(options);
  const qkv::Explanation explanation = qkv::explain_attention(input);
  if (!options.html.empty()) write_text_file(options.html, qkv::explanation_to_html(input));
  if (options.steps == "-") {
    print_out(qkv::explanation_to_json(explanation) + "\n");
  } else if (!options.steps.empty()) {
    write_text_file(options.steps, qkv::explanation_to_json(explanation));
  } else if (options.html.empty()) {
    print_out(qkv::explanation_to_text(explanation));
    if (options.json.empty() && !options.layer) print_out(kPrintedDigits);
  }
}

void explain(const ExplainOptions& options) {
  const bool only_others = (options.scaling || options.positions) && !options.shows_attention();
  if (!only_others) explain_input(options);
  if (!only_others && !options.shows_attention())
    print_out("\n" + qkv::explanation_to_text({qkv::explain_positions(4, kPositions)}));
  if (options.positions)
    print_out(qkv::explanation_to_text({qkv::explain_positions(*options.positions, kMostPositions)}));
  if (options.scaling) print_out(qkv::explanation_to_text({qkv::explain_scaling()}));
}

}  // namespace

void add_explain_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("explain", "Show the steps of attention on small matrices");
  const auto options = std::make_shared<ExplainOptions>();
  CLI::Option* json =
      command
          ->add_option("--json", options->json, "Explain the matrices in this file [default an example of textbooks]")
          ->type_name("FILE");
  command->add_flag("--layer", options->layer, "Explain an example of an encoder layer")->excludes(json);
  command->add_flag("--backward", options->backward, "Show the gradients, too");
  command->add_flag("--scaling", options->scaling, "Show why scores are divided by √d_k");
  command->add_option("--positions", options->positions, "Show sinusoidal positions of this width, an even number")
      ->type_name("D")
      ->check(CLI::Range(2, 1024));
  command->add_option("--html", options->html, "Write a page in which the matrices can be edited to this file")
      ->type_name("FILE");
  command->add_option("--steps", options->steps, "Write the steps as JSON to this file; - is standard output")
      ->type_name("FILE");
  command->callback([options] { explain(*options); });
}
