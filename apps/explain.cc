// qkv explain: the formula of attention as a program that shows its steps, on an example or on matrices from a file.
#include "program/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "commands.h"
#include "output_files.h"
#include "qkv/error.h"

namespace {

constexpr int64_t kPositions = 3, kMostPositions = 16;  // that are shown
constexpr const char* kPrintedDigits =
    "\nThe words are Hindi: \"chai piyo\" means \"drink tea\". Textbooks print this example with three decimals. All "
    "agree,\nexcept that some print 16.923 and 17.923 for E and its row sums: exp(2.828…) is 16.919, so the row sums "
    "are\n17.919. The weights 0.056 and 0.944 are not affected.\n";

// An example that a flag chooses.
struct FlagExample {
  const char *flag, *help;
  qkv::ExplainInput (*input)();
};
constexpr FlagExample kChosenByFlags[] = {
    {"--heads", "Explain an example of two heads, and the output of both", qkv::heads_example},
    {"--layer", "Explain an example of an encoder layer", qkv::layer_example},
    {"--decoder", "Explain an example of a decoder layer, with biases, a memory and the loss of its output",
     qkv::decoder_example},
    {"--language-model", "Explain an example of a layer with pre-norm, RMSNorm and SwiGLU, and the loss of its output",
     qkv::language_model_example},
    {"--queries", "Explain an example of Q, K and V themselves: two queries, three keys, d_k = 2 and d_v = 3",
     qkv::queries_example}};

struct ExplainOptions {
  std::string json, html, steps;
  std::array<bool, std::size(kChosenByFlags)> examples = {};
  bool backward = false, columns = false, arithmetic = false, scaling = false;
  std::optional<int64_t> positions;

  // Returns the chosen example; null: none.
  const FlagExample* example() const {
    const auto chosen = std::ranges::find(examples, true);
    return chosen == examples.end() ? nullptr : &kChosenByFlags[chosen - examples.begin()];
  }
  bool asks_for_attention() const {
    return !json.empty() || !html.empty() || example() || backward || columns || arithmetic;
  }
  bool shows_attention() const { return asks_for_attention() || !(scaling || positions); }
  bool shows_textbook() const { return json.empty() && !example(); }
};

qkv::ExplainInput input_of(const ExplainOptions& options) {
  qkv::ExplainInput input = options.example() ? options.example()->input()
                            : options.json.empty()
                                ? qkv::textbook_example()
                                : qkv::explain_input_from_json(read_input(options.json), input_name(options.json));
  if (options.columns) input.columns = true;
  if (options.backward && !input.has_gradient())
    throw qkv::Error(fmt::format("--backward: {} has neither dO, the gradient of the output, nor labels of output",
                                 input_name(options.json)));
  return input;
}

void append(qkv::Explanation& all, qkv::Explanation sections) { std::ranges::move(sections, std::back_inserter(all)); }

// Returns the sections that follow those of attention.
qkv::Explanation other_sections(const ExplainOptions& options) {
  qkv::Explanation sections;
  if (options.positions) sections.push_back(qkv::explain_positions(*options.positions, kMostPositions));
  if (options.scaling) sections.push_back(qkv::explain_scaling());
  return sections;
}

void print_explanation(const ExplainOptions& options, const qkv::Explanation& attention, qkv::Explanation others) {
  if (options.shows_textbook() && !options.asks_for_attention())
    others.push_back(qkv::explain_positions(4, kPositions));
  print_out(qkv::explanation_to_text(attention));
  if (options.shows_textbook()) print_out(kPrintedDigits);
  if (!others.empty()) print_out("\n" + qkv::explanation_to_text(others));
}

void explain(const ExplainOptions& options) {
  require_different_files({{"--json", options.json}}, {{"--html", options.html}, {"--steps", options.steps}});
  qkv::Explanation others = other_sections(options);
  if (!options.shows_attention()) {
    if (options.steps.empty()) return print_out(qkv::explanation_to_text(others));
    return write_result(options.steps, qkv::explanation_to_json(others));
  }
  const qkv::ExplainInput input = input_of(options);
  qkv::Explanation attention = qkv::explain_attention(input, {options.backward, options.arithmetic});
  if (!options.html.empty()) write_result(options.html, qkv::explanation_to_html(input, options.backward));
  if (options.steps.empty() && options.html.empty()) return print_explanation(options, attention, std::move(others));
  if (options.steps.empty()) return;
  append(attention, std::move(others));
  write_result(options.steps, qkv::explanation_to_json(attention));
}

}  // namespace

void add_explain_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("explain", "Show the steps of attention and of layers on small matrices");
  const auto options = std::make_shared<ExplainOptions>();
  CLI::Option* json =
      command
          ->add_option(
              "--json", options->json,
              "Explain the matrices in this file, a JSON object; - is standard input [default an example of textbooks]")
          ->type_name("FILE");
  std::vector<CLI::Option*> inputs = {json};
  for (size_t i = 0; i < std::size(kChosenByFlags); i++) {
    CLI::Option* flag = command->add_flag(kChosenByFlags[i].flag, options->examples[i], kChosenByFlags[i].help);
    for (CLI::Option* other : inputs) flag->excludes(other);
    inputs.push_back(flag);
  }
  command->add_flag("--backward", options->backward, "Show the gradients, too");
  command->add_flag("--columns", options->columns, "Show tokens as columns, with the symbols of that form");
  command->add_flag("--arithmetic", options->arithmetic, "Write out the arithmetic of each value");
  CLI::Option* scaling =
      command->add_flag("--scaling", options->scaling, "Show why scores are divided by √d_k; not with --html");
  CLI::Option* positions = command
                               ->add_option("--positions", options->positions,
                                            "Show sinusoidal positions of this width, an even number; not with --html")
                               ->type_name("D")
                               ->check(CLI::Range(2, 1024));
  command
      ->add_option("--html", options->html,
                   "Write a page of attention in which the matrices can be edited to this file; - is standard output")
      ->type_name("FILE")
      ->excludes(scaling)
      ->excludes(positions);
  command->add_option("--steps", options->steps, "Write the steps as JSON to this file; - is standard output")
      ->type_name("FILE");
  command->callback([options] { explain(*options); });
}
