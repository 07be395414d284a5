// qkv attend: shows the attention weights of a sentence and its translation, or of a text, or what each token is
// attributed to, in the terminal, as JSON or as an HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "commands.h"
#include "options.h"
#include "output_files.h"
#include "qkv/attention_map.h"
#include "qkv/embedder.h"
#include "qkv/error.h"
#include "qkv/generator.h"
#include "qkv/runs.h"
#include "qkv/text.h"
#include "qkv/translator.h"

namespace {

struct AttendOptions {
  std::string run, source, target, html, json, kind, from, to;
  int64_t more = 0;
  int layer = 0, head = 1;  // counted from 1; 0 is the last layer, and the mean of all heads
  bool words = false, numbers = false;
  qkv::AttributionOptions attribution;
};

std::vector<std::string> kind_names(const qkv::AttentionMap& map) {
  std::vector<std::string> names;
  for (const qkv::AttentionKind& kind : map.kinds) names.push_back(kind.name);
  return names;
}

// Prints how exactly integrated gradients add up to what they attribute.
void print_completeness(const qkv::AttentionMap& map) {
  double largest = 0, change = 0;
  for (const qkv::TokenAttribution& token : map.tokens) {
    largest = std::max(largest, std::abs(token.sum - (token.log_probability - token.baseline)));
    change = std::max(change, std::abs(token.log_probability - token.baseline));
  }
  print_out(fmt::format("\nsums of attributions differ from the changes of log p by at most {:.2g} of {:.3g}\n",
                        largest, change));
}

void print_text(const qkv::AttentionMap& map, const AttendOptions& options) {
  const std::string& name = options.kind.empty() ? map.kinds.back().name : options.kind;
  const auto kind = std::ranges::find(map.kinds, name, &qkv::AttentionKind::name);
  if (kind == map.kinds.end())
    throw qkv::Error(fmt::format("--kind {}: this {} has only {} attention", name,
                                 options.attribution.method == qkv::AttentionMethod::weights ? "model" : "method",
                                 fmt::join(kind_names(map), " and ")));
  const int layers = static_cast<int>(kind->layers.size()), heads = static_cast<int>(kind->layers.front().size());
  const int layer = options.layer == 0 ? layers : options.layer, head = options.head;
  if (layer > layers) throw qkv::Error(fmt::format("--layer {}: must be between 1 and {}", layer, layers));
  if (head > heads) throw qkv::Error(fmt::format("--head {}: must be between 1 and {}", head, heads));
  print_out(qkv::attention_to_text(*kind, layer - 1, std::max(head - 1, 0), {head == 0, options.numbers}));
  if (kind->method == qkv::AttentionMethod::integrated) print_completeness(map);
}

// Throws Error for options that are for another kind of model.
void check(const AttendOptions& options, qkv::RunKind kind) {
  if (kind == qkv::RunKind::translator) {
    if (options.more > 0)
      throw qkv::Error(fmt::format("--generate: {} is a translator; use --target instead", options.run));
    return;
  }
  const bool language = kind == qkv::RunKind::language_model;
  const std::string name = fmt::format("{} is {}", options.run, language ? "a language model" : "an encoder");
  if (!options.target.empty())
    throw qkv::Error(fmt::format("--target: {}{}", name, language ? "; use --generate instead" : ""));
  if (!language && options.more > 0) throw qkv::Error(fmt::format("--generate: {}", name));
  if (!(options.from + options.to).empty()) throw qkv::Error(fmt::format("--from and --to: {}", name));
}

qkv::AttentionMap map_of(const AttendOptions& options) {
  const qkv::RunKind kind = qkv::inspect(options.run).kind;
  check(options, kind);
  if (kind == qkv::RunKind::language_model)
    return qkv::Generator(options.run).attend(options.source, options.more, options.attribution);
  if (kind == qkv::RunKind::encoder || kind == qkv::RunKind::classifier)
    return qkv::Embedder(options.run).attend(options.source, {}, options.attribution);
  const qkv::TranslateOptions translate = default_options_with(options.run, options.from, options.to);
  return qkv::Translator(options.run).attend(options.source, options.target, translate, options.attribution);
}

// Accepts a number from 1 to 1000, and "mean", which becomes 0.
CLI::Validator head_or_mean() {
  const auto check = [](std::string& text) {
    int head = 0;
    if (text == "mean")
      text = "0";
    else if (!CLI::detail::lexical_cast(text, head) || head < 1 || head > 1000)
      return fmt::format("must be a number from 1 to 1000, or mean (is {})", text);
    return std::string();
  };
  return CLI::Validator(check, "");
}

void attend(const AttendOptions& options) {
  require_different_files({}, {{"--html", options.html}, {"--json", options.json}});
  qkv::AttentionMap map = map_of(options);
  if (options.words) map = qkv::merge_words(map);
  if (!options.html.empty()) write_output(options.html, qkv::attention_to_html(map));
  if (!options.json.empty()) write_result(options.json, qkv::attention_to_json(map));
  if (options.json == "-" || options.html == "-") return;
  if (!map.target.empty()) print_out(qkv::one_line(map.target) + "\n");
  if (options.html.empty() && options.json.empty()) print_text(map, options);
}

}  // namespace

void add_attend_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("attend", "Show the attention weights of a translator, a language model or an encoder");
  const auto options = std::make_shared<AttendOptions>();
  command->add_option("run", options->run, "Run directory")->required();
  command
      ->add_option("sentence,--text,--prompt", options->source,
                   "Sentence to translate, or text for a language model or an encoder")
      ->required();
  command->add_option("--target", options->target, "Target sentence [default the model's translation]");
  add_language_options(*command, options->from, options->to);
  command
      ->add_option("--generate", options->more,
                   "Most probable tokens that a language model generates after the text [default 0]")
      ->check(in_range(qkv::at_least(0)));
  command->add_option("--html", options->html, "Write a self-contained HTML page to this file; - is standard output")
      ->type_name("FILE");
  command->add_option("--json", options->json, "Write JSON to this file; - is standard output")->type_name("FILE");
  command
      ->add_option("--kind", options->kind,
                   "Attention to print: encoder, decoder or cross [default cross, or the only one]")
      ->check(CLI::IsMember({"encoder", "decoder", "cross"}));
  command->add_option("--layer", options->layer, "Layer to print, from 1 [default the last]")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--head", options->head,
                   "Head to print, from 1; mean is the mean of all heads of the layer [default 1]")
      ->type_name("HEAD")
      ->transform(head_or_mean());
  command->add_flag("--numbers", options->numbers, "Print the weights with two digits instead of shades");
  command->add_flag("--words", options->words, "Merge subwords into words");
  add_options(*command, options->attribution);
  add_threads_option(*command);
  command->callback([options] { attend(*options); });
}
