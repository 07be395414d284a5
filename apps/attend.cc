// qkv attend: shows the attention weights of a sentence and its translation, or of a text, in the terminal, as JSON or
// as an HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.h"
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
  int layer = 0, head = 0;  // counted from 1; 0 is the last layer, the first head
  bool words = false;
};

void print_text(const qkv::AttentionMap& map, const AttendOptions& options) {
  const std::string& name = options.kind.empty() ? map.kinds.back().name : options.kind;
  const auto kind = std::ranges::find(map.kinds, name, &qkv::AttentionKind::name);
  if (kind == map.kinds.end())
    throw qkv::Error(fmt::format("--kind {}: this model has only {} attention", name, map.kinds.front().name));
  const int layers = static_cast<int>(kind->layers.size()), heads = static_cast<int>(kind->layers.front().size());
  const int layer = options.layer == 0 ? layers : options.layer, head = options.head == 0 ? 1 : options.head;
  if (layer > layers) throw qkv::Error(fmt::format("--layer {}: must be between 1 and {}", layer, layers));
  if (head > heads) throw qkv::Error(fmt::format("--head {}: must be between 1 and {}", head, heads));
  fmt::print("{}", qkv::attention_to_text(*kind, layer - 1, head - 1));
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
  if (kind == qkv::RunKind::language_model) return qkv::Generator(options.run).attend(options.source, options.more);
  if (kind == qkv::RunKind::encoder || kind == qkv::RunKind::classifier)
    return qkv::Embedder(options.run).attend(options.source);
  qkv::TranslateOptions languages;
  languages.source_language = options.from, languages.target_language = options.to;
  return qkv::Translator(options.run).attend(options.source, options.target, languages);
}

void attend(const AttendOptions& options) {
  qkv::AttentionMap map = map_of(options);
  if (options.words) map = qkv::merge_words(map);
  if (!options.html.empty()) write_text_file(options.html, qkv::attention_to_html(map));
  if (!options.json.empty()) {
    const std::string json = qkv::attention_to_json(map);
    if (options.json == "-")
      fmt::print("{}\n", json);
    else
      write_text_file(options.json, json);
  }
  if (options.json == "-") return;
  if (!map.target.empty()) fmt::print("{}\n", qkv::one_line(map.target));
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
  command->add_option("--from", options->from,
                      "Language of the source, for a model with several: its code, such as en");
  command->add_option("--to", options->to,
                      "Language of the translation, for a model with several: its code, such as de");
  command
      ->add_option("--generate", options->more,
                   "Most probable tokens that a language model generates after the text [default 0]")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--html", options->html, "Write a self-contained HTML page to this file")->type_name("FILE");
  command->add_option("--json", options->json, "Write JSON to this file; - is standard output")->type_name("FILE");
  command
      ->add_option("--kind", options->kind,
                   "Attention to print: encoder, decoder or cross [default cross, or the only one]")
      ->check(CLI::IsMember({"encoder", "decoder", "cross"}));
  command->add_option("--layer", options->layer, "Layer to print, from 1 [default the last]")
      ->check(CLI::Range(1, 1000));
  command->add_option("--head", options->head, "Head to print, from 1 [default 1]")->check(CLI::Range(1, 1000));
  command->add_flag("--words", options->words, "Merge subwords into words");
  add_threads_option(*command);
  command->callback([options] { attend(*options); });
}
