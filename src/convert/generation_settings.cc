#include "convert/generation_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr const char* kGenerationConfig = "generation_config.json";

// Settings that change the output, and the value with which they do not.
struct NeutralSetting {
  const char* name;
  json value;
};
const std::vector<NeutralSetting>& known_settings() {
  static const std::vector<NeutralSetting> settings = {
      {"max_length", nullptr},
      {"max_new_tokens", nullptr},
      {"min_length", 0},
      {"min_new_tokens", 0},
      {"early_stopping", true},
      {"max_time", nullptr},
      {"stop_strings", nullptr},
      {"do_sample", false},
      {"num_beams", nullptr},
      {"num_beam_groups", 1},
      {"num_return_sequences", 1},
      {"diversity_penalty", 0},
      {"penalty_alpha", nullptr},
      {"dola_layers", nullptr},
      {"temperature", 1},
      {"top_k", nullptr},
      {"top_p", 1},
      {"min_p", 0},
      {"top_h", nullptr},
      {"typical_p", 1},
      {"epsilon_cutoff", 0},
      {"eta_cutoff", 0},
      {"repetition_penalty", 1},
      {"encoder_repetition_penalty", 1},
      {"length_penalty", nullptr},
      {"no_repeat_ngram_size", 0},
      {"encoder_no_repeat_ngram_size", 0},
      {"renormalize_logits", false},
      {"exponential_decay_length_penalty", nullptr},
      {"suppress_tokens", nullptr},
      {"begin_suppress_tokens", nullptr},
      {"forced_decoder_ids", nullptr},
      {"sequence_bias", nullptr},
      {"guidance_scale", 1},
      {"watermarking_config", nullptr},
      {"constraints", nullptr},
      {"force_words_ids", nullptr},
      {"token_healing", false},
      {"stop_words_ids", nullptr},
  };
  return settings;
}

// Settings that are read elsewhere or do not change the output.
bool is_harmless(const std::string& name) {
  static const std::set<std::string> harmless = {"_from_model_config",
                                                 "transformers_version",
                                                 "bos_token_id",
                                                 "pad_token_id",
                                                 "eos_token_id",
                                                 "decoder_start_token_id",
                                                 "forced_bos_token_id",
                                                 "forced_eos_token_id",
                                                 "bad_words_ids",
                                                 "use_cache",
                                                 "cache_implementation",
                                                 "cache_config",
                                                 "max_cache_len",
                                                 "return_legacy_cache",
                                                 "output_attentions",
                                                 "output_hidden_states",
                                                 "output_scores",
                                                 "output_logits",
                                                 "return_dict_in_generate",
                                                 "remove_invalid_values",
                                                 "is_assistant",
                                                 "num_assistant_tokens",
                                                 "num_assistant_tokens_schedule",
                                                 "assistant_confidence_threshold",
                                                 "prompt_lookup_num_tokens",
                                                 "max_matching_ngram_size",
                                                 "assistant_early_exit",
                                                 "assistant_lookbehind",
                                                 "target_lookbehind",
                                                 "assistant_ensemble_weight",
                                                 "speculation_type",
                                                 "compile_config",
                                                 "disable_compile",
                                                 "continuous_batching_config",
                                                 "low_memory",
                                                 "prefill_chunk_size",
                                                 "use_mtp",
                                                 "generation_kwargs",
                                                 "trust_remote_code"};
  return harmless.contains(name);
}

// Reads settings and remembers those that were taken over; what remains is named.
class GenerationReader {
 public:
  GenerationReader(const ModelFiles& files, const Settings& config)
      : own_file_(files.has(kGenerationConfig)),
        settings_(own_file_ ? Settings(files.open_small(kGenerationConfig)->text(), files.path(kGenerationConfig))
                            : Settings(known_part(config), config.where())) {}
  // Reads a JSON object of settings.
  GenerationReader(const std::string& text, const std::string& where) : own_file_(false), settings_(text, where) {}

  const Settings& settings() const { return settings_; }
  bool has(const char* name) const { return settings_.find(name) != nullptr; }
  bool flag(const char* name) const { return settings_.flag(name, false); }

  void taken(const char* name) { taken_.insert(name); }
  // Takes a number over, within the range of the option.
  template <class Value>
  void take(const char* name, std::optional<Value>& option) {
    if (!has(name)) return;
    if constexpr (std::is_same_v<Value, double>)
      option = settings_.number(name);
    else
      option = settings_.integer(name);
    taken(name);
  }

  // Returns the settings that are left and not neutral, in alphabetical order.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : settings_.object().items())
      if (!value.is_null() && !taken_.contains(name) && !is_harmless(name) && !is_neutral(name, value))
        names.push_back(name);
    return names;
  }

 private:
  static std::string known_part(const Settings& config) {
    json part = json::object();
    for (const NeutralSetting& setting : known_settings())
      if (const json* value = config.find(setting.name)) part[setting.name] = *value;
    return part.dump();
  }
  static bool is_neutral(const std::string& name, const json& value) {
    if (value.is_structured() && value.empty()) return true;
    const auto place = std::ranges::find(known_settings(), name, &NeutralSetting::name);
    return place != known_settings().end() && !place->value.is_null() && place->value == value;
  }

  bool own_file_;
  Settings settings_;
  std::set<std::string> taken_;
};

// transformers counts the start token and forced ones in lengths; here they are no part of a translation.
void read_lengths(GenerationReader& reader, int64_t forced, DecodingDefaults& defaults) {
  const Settings& s = reader.settings();
  const auto length = [&](const char* total, const char* added, int64_t least) -> std::optional<int64_t> {
    const bool by_new = reader.has(added);
    if (!by_new && !reader.has(total)) return {};
    const int64_t tokens = by_new ? s.integer(added) : s.integer(total);
    if (tokens < 0) fail("{}: {} must be at least 0 (is {})", s.where(), by_new ? added : total, tokens);
    for (const char* name : {total, added}) reader.taken(name);
    return std::max(by_new ? tokens - forced : tokens - 1 - forced, least);
  };
  defaults.max_length = length("max_length", "max_new_tokens", 1);
  defaults.min_length = length("min_length", "min_new_tokens", 0);
}

// Where the setting is missing, transformers takes false.
EarlyStopping read_early_stopping(GenerationReader& reader) {
  constexpr const char* kName = "early_stopping";
  reader.taken(kName);
  const json* found = reader.settings().find(kName);
  if (!found || *found == false) return EarlyStopping::unbeaten;
  if (*found == true) return EarlyStopping::at_beam;
  if (*found == "never") return EarlyStopping::never;
  fail("{}: {} must be true, false or never (is {})", reader.settings().where(), kName, excerpt(found->dump()));
}

// The penalty applies to the tokens of the hypothesis. Beam search multiplies log-probabilities, as we do; greedy
// search of transformers changes logits instead. The start token counts there, too.
void read_repetition(GenerationReader& reader, int64_t beam, bool starts_with_end, DecodingDefaults& defaults) {
  if (beam > 1 && !starts_with_end) reader.take("repetition_penalty", defaults.repetition_penalty);
  // With bigrams and longer ones the start token has no effect, because nothing repeats it.
  if (reader.has("no_repeat_ngram_size") && reader.settings().integer("no_repeat_ngram_size") != 1)
    reader.take("no_repeat_ngram_size", defaults.no_repeat_ngram);
}

// Without sampling, transformers does not read its options.
void skip_options_of_sampling(GenerationReader& reader) {
  for (const char* name : {"temperature", "top_k", "top_p", "min_p", "typical_p"}) reader.taken(name);
}

// Samples of transformers are filtered after the temperature, in the order top_k, top_p, min_p, typical_p.
void read_sampling(GenerationReader& reader, DecodingDefaults& defaults) {
  const bool samples = reader.flag("do_sample");
  if (reader.has("do_sample") && !samples) defaults.temperature = 0;
  reader.taken("do_sample");
  if (!samples) return skip_options_of_sampling(reader);
  reader.take("temperature", defaults.temperature);
  reader.take("top_k", defaults.top_k);
  reader.take("top_p", defaults.top_p);
  if (defaults.temperature.value_or(1) == 1) reader.take("min_p", defaults.min_p);
  if (!defaults.top_p && !defaults.min_p) reader.take("typical_p", defaults.typical_p);
}

std::vector<int64_t> read_ids(const Settings& s, const char* name) {
  std::vector<int64_t> ids;
  const json* list = s.find(name);
  if (!list) return ids;
  if (!list->is_array()) fail("{}: {} must be an array", s.where(), name);
  for (const json& id : *list) {
    if (!id.is_number_integer()) fail("{}: {} must hold ids (holds {})", s.where(), name, excerpt(id.dump()));
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

// A JSON text, and the beginning of errors in it.
struct TextOfFile {
  std::string text, where;
};

// Returns the settings for the task "summarization", or, without it, those of the only data set, such as
// "summarization_cnn"; without any, or with several, which exclude each other, an empty object.
TextOfFile summary_block(const Settings& config) {
  constexpr const char *kTasks = "task_specific_params", *kTask = "summarization";
  const json* tasks = config.find(kTasks);
  if (!tasks) return {"{}", config.where()};
  if (!tasks->is_object()) fail("{}: {} must be an object", config.where(), kTasks);
  std::vector<std::string> names;
  for (const auto& [name, block] : tasks->items())
    if (name == kTask || name.starts_with(fmt::format("{}_", kTask))) names.push_back(name);
  if (std::ranges::find(names, kTask) != names.end()) names = {kTask};
  if (names.size() != 1) return {"{}", config.where()};
  const json& block = tasks->at(names.front());
  if (!block.is_object()) fail("{}: {}.{} must be an object", config.where(), kTasks, names.front());
  return {block.dump(), fmt::format("{}, {}.{}", config.where(), kTasks, names.front())};
}

// Returns the prefix of the task or, where that has none, of the model; no value for an empty one.
std::optional<std::string> read_prefix(const Settings& task, const Settings& config) {
  constexpr const char* kName = "prefix";
  const Settings& settings = task.find(kName) ? task : config;
  std::string prefix = settings.text(kName, "");
  check_source_prefix(prefix, fmt::format("{}: {}", settings.where(), kName));
  if (prefix.empty()) return {};
  return prefix;
}

GenerationSettings finish(const GenerationReader& reader, GenerationSettings settings) {
  settings.where = reader.settings().where();
  check_defaults(settings.defaults, settings.where + ": ");  // an error names the setting by our option
  settings.left = reader.left();
  return settings;
}

}  // namespace

GenerationSettings read_translation_settings(const ModelFiles& files, const Settings& config, bool starts_with_end,
                                             int64_t forced) {
  GenerationReader reader(files, config);
  GenerationSettings found;
  DecodingDefaults& d = found.defaults;
  reader.take("num_beams", d.beam);
  reader.take("length_penalty", d.length_penalty);
  d.early_stopping = read_early_stopping(reader);
  read_lengths(reader, forced, d);
  if (d.min_length == 0) d.min_length.reset();
  read_repetition(reader, d.beam.value_or(1), starts_with_end, d);
  found.never = read_ids(reader.settings(), "suppress_tokens");
  reader.taken("suppress_tokens");
  if (!reader.flag("do_sample")) skip_options_of_sampling(reader);
  return finish(reader, std::move(found));
}

GenerationSettings read_summary_settings(const Settings& config, const DecodingDefaults& usual, bool starts_with_end,
                                         int64_t forced) {
  const auto [block, where] = summary_block(config);
  GenerationReader reader(block, where);
  GenerationSettings found;
  DecodingDefaults& d = found.defaults;
  d.source_prefix = read_prefix(reader.settings(), config);
  reader.taken("prefix");
  reader.take("num_beams", d.beam);
  reader.take("length_penalty", d.length_penalty);
  if (reader.has("early_stopping")) d.early_stopping = read_early_stopping(reader);
  read_lengths(reader, forced, d);
  read_repetition(reader, d.beam.value_or(usual.beam.value_or(1)), starts_with_end, d);
  if (!reader.flag("do_sample")) skip_options_of_sampling(reader);
  return finish(reader, std::move(found));
}

GenerationSettings read_language_settings(const ModelFiles& files, const Settings& config, int64_t longest) {
  GenerationReader reader(files, config);
  GenerationSettings found;
  read_sampling(reader, found.defaults);
  reader.take("max_new_tokens", found.defaults.max_tokens);
  reader.take("no_repeat_ngram_size", found.defaults.no_repeat_ngram);
  const Settings& s = reader.settings();
  if (s.integer("num_beams", 1) == 1)  // these belong to beam search
    for (const char* name : {"num_beams", "length_penalty", "early_stopping"}) reader.taken(name);
  // The length counts the prompt; from the context of the model on it is no limit.
  if (reader.has("max_new_tokens") || s.integer("max_length", longest) >= longest) reader.taken("max_length");
  return finish(reader, std::move(found));
}

std::string note_of(const GenerationSettings& settings) {
  if (settings.left.empty()) return "";
  const size_t slash = settings.where.rfind('/');
  return fmt::format("not taken over from {}: {}", settings.where.substr(slash + 1), fmt::join(settings.left, ", "));
}

}  // namespace qkv
