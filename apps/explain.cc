// qkv explain: the formula of attention as a program that shows its steps, on an example or on matrices from a file.
#include "program/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "commands.h"
#include "qkv/error.h"

namespace {

constexpr int64_t kPositions = 3, kMostPositions = 16;  // that are shown
constexpr const char* kPrintedDigits =
    "\nThe words are Hindi: \"chai piyo\" means \"drink tea\". Textbooks print this example with three decimals. All "
    "agree,\nexcept that some print 16.923 and 17.923 for E and its row sums: exp(2.828…) is 16.919, so the row sums "
    "are\n17.919. The weights 0.056 and 0.944 are not affected.\n";

struct ExplainOptions {
  std::string json, html, steps;
  bool layer = false, backward = false, scaling = false;
  std::optional<int64_t> positions;

  bool asks_for_attention() const { return !json.empty() || !html.empty() || layer || backward; }
  bool shows_attention() const { return asks_for_attention() || !(scaling || positions); }
};

// Throws Error if two of the files are the same.
void check_files(const ExplainOptions& options) {
  const auto place = [](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  const auto same = [&](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && (a == b || place(a) == place(b));
  };
  if (same(options.html, options.steps))
    throw qkv::Error(fmt::format("--html and --steps: both are {}, expected different files", options.html));
  for (const auto& [name, path] : {std::pair{"--html", &options.html}, {"--steps", &options.steps}})
    if (same(options.json, *path))
      throw qkv::Error(fmt::format("{}: {} is the input of --json, expected another file", name, *path));
}

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

void append(qkv::Explanation& all, qkv::Explanation sections) { std::ranges::move(sections, std::back_inserter(all)); }

// Returns the sections that follow those of attention.
qkv::Explanation other_sections(const ExplainOptions& options) {
  qkv::Explanation sections;
  if (options.positions) sections.push_back(qkv::explain_positions(*options.positions, kMostPositions));
  if (options.scaling) sections.push_back(qkv::explain_scaling());
  return sections;
}

// Writes text to a file; - is standard output.
void write_result(const std::string& path, const std::string& text) {
  if (path == "-")
    print_out(text + "\n");
  else
    write_text_file(path, text);
}

void print_explanation(const ExplainOptions& options, const qkv::Explanation& attention, qkv::Explanation others) {
  const bool textbook = options.json.empty() && !options.layer;
  if (textbook && !options.asks_for_attention()) others.push_back(qkv::explain_positions(4, kPositions));
  print_out(qkv::explanation_to_text(attention));
  if (textbook) print_out(kPrintedDigits);
  if (!others.empty()) print_out("\n" + qkv::explanation_to_text(others));
}

void explain(const ExplainOptions& options) {
  check_files(options);
  qkv::Explanation others = other_sections(options);
  if (!options.shows_attention()) {
    if (options.steps.empty()) return print_out(qkv::explanation_to_text(others));
    return write_result(options.steps, qkv::explanation_to_json(others));
  }
  const qkv::ExplainInput input = input_of(options);
  qkv::Explanation attention = qkv::explain_attention(input);
  if (!options.html.empty()) write_result(options.html, qkv::explanation_to_html(input));
  if (options.steps.empty() && options.html.empty()) return print_explanation(options, attention, std::move(others));
  if (options.steps.empty()) return;
  append(attention, std::move(others));
  write_result(options.steps, qkv::explanation_to_json(attention));
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
