// qkv::export_model: detects the kind of run and writes the directory of its class.
#include "qkv/export.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "convert/export/encoder_out.h"
#include "convert/export/model_class.h"
#include "convert/export/tokenizer_out.h"
#include "convert/export/weights_out.h"
#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run.h"

namespace qkv {
namespace {

using nlohmann::json;

// The files written next to the weights.
struct Parts {
  json tokens;      // ids of special tokens: fields of config.json and of generation_config.json
  json generation;  // further fields of generation_config.json
  std::function<void(const std::string& directory)> write_text;
  std::optional<StartRow> added = {};  // a token behind the vocabulary
};

// The settings of generation_config.json that import takes over as these defaults.
json generation_of(const DecodingDefaults& d) {
  json settings = json::object();
  const auto put = [&](const char* name, const auto& value) {
    if (value) settings[name] = *value;
  };
  put("num_beams", d.beam);
  put("length_penalty", d.length_penalty);
  put("repetition_penalty", d.repetition_penalty);
  put("no_repeat_ngram_size", d.no_repeat_ngram);
  put("max_new_tokens", d.max_tokens);
  if (d.temperature || d.top_k || d.top_p || d.typical_p || d.min_p) settings["do_sample"] = d.temperature != 0;
  if (d.temperature != 0) put("temperature", d.temperature);
  put("top_k", d.top_k);
  put("top_p", d.top_p);
  put("typical_p", d.typical_p);
  put("min_p", d.min_p);
  if (d.max_length) settings["max_length"] = *d.max_length + 1;  // the start token counts
  return settings;
}

// Returns early_stopping of transformers. For sums of log-probabilities, `automatic` finds the best hypothesis, which
// `at_beam` may miss.
json stopping_of(const DecodingDefaults& d) {
  const EarlyStopping stopping = d.early_stopping.value_or(EarlyStopping::automatic);
  if (stopping == EarlyStopping::never) return "never";
  if (stopping == EarlyStopping::automatic) return d.length_penalty.value_or(1) != 0;
  return stopping == EarlyStopping::at_beam;
}

// The configuration of a translator with a token more. Its positions are a table, which is written.
ModelConfig with_token(ModelConfig m) {
  m.source_vocab++, m.target_vocab++;
  m.zero_start = false;
  if (m.has_sinusoids()) m.positions = Positions::learned;
  return m;
}

// Whether <pad> is added to a translator. Marian's own models start from it: it is their last token, and its vector is
// zero. CTranslate2 knows no other start. Both sides must have one vocabulary, so that the id is the same.
bool needs_pad(const TranslatorRun& run) {
  const std::vector<std::string> source = pieces_by_id(run.tokenizers.source),
                                 target = pieces_by_id(run.tokenizers.target);
  return source == target && std::ranges::find(source, kMarianPad) == source.end();
}

ExportReport write(const RunDirectory& run, const RunDirectory& out, const Transformer<float>& model,
                   const Parts& parts, ExportType type) {
  expect_exportable(run, model);
  ModelClass model_class = choose_class(parts.added ? with_token(model.config()) : model.config(), run.config());
  ExportReport report{model_class.type(), 0};
  json& fields = model_class.fields;
  fields.update(parts.tokens);
  fields["architectures"] = {model_class.name};
  fields["torch_dtype"] = name_of(type);
  json generation = parts.tokens;
  generation.update(parts.generation);
  if (!generation.contains("max_length")) generation["max_length"] = model_class.config.max_length;
  write_directory_atomic(out.root(), [&](const std::string& path) {
    const RunDirectory partial(path);
    write_file_atomic(partial.config(), fields.dump(2) + "\n");
    write_file_atomic(partial.root() + "/generation_config.json", generation.dump(2) + "\n");
    parts.write_text(partial.root());
    report.parameters = write_tensors(partial.model(), run, model, model_class, type, parts.added);
  });
  return report;
}

ExportReport export_run(const LanguageRun& loaded, const RunDirectory& run, const RunDirectory& out, ExportType type) {
  const std::vector<int32_t>& ends = loaded.ends.ends;
  const json tokens = {{"bos_token_id", loaded.ends.start},
                       {"eos_token_id", ends.size() == 1 ? json(ends.front()) : json(ends)},
                       {"pad_token_id", ends.front()}};
  const auto write_text = [&](const std::string& directory) {
    write_language_tokenizer(directory, loaded.codec, loaded.ends, loaded.model->config().max_length);
    write_chat_templates(RunDirectory(directory), loaded.chat);
  };
  return write(run, out, *loaded.model, {tokens, generation_of(read_decoding_defaults(run)), write_text}, type);
}

ExportReport export_run(const RecommenderRun& loaded, const RunDirectory& run, const RunDirectory& out,
                        ExportType type) {
  if (loaded.items.gap_buckets > 0)
    fail("{}: gap_buckets must be 0 (is {}): no class of transformers reads times", run.config(),
         loaded.items.gap_buckets);
  if (loaded.recommendation.positions_from_end && loaded.model->config().adds_positions())
    fail("{}: positions_from_end must be false (is true): classes of transformers count from the beginning",
         run.recommendation());
  const json tokens = {{"bos_token_id", nullptr}, {"eos_token_id", nullptr}, {"pad_token_id", nullptr}};
  const auto write_text = [&](const std::string& directory) {
    write_vocabulary(directory + "/vocab.json", loaded.log.data.items);
  };
  return write(run, out, *loaded.model, {tokens, json::object(), write_text}, type);
}

ExportReport export_run(const TranslatorRun& loaded, const RunDirectory& run, const RunDirectory& out,
                        ExportType type) {
  const TranslationTokens& t = loaded.tokens;
  const bool adds_pad = needs_pad(loaded);
  const int32_t start = adds_pad ? loaded.tokenizers.target.size() : t.start;
  // A translation starts from the padding token, as in Marian's own models.
  const json tokens = {{"decoder_start_token_id", start},
                       {"pad_token_id", start},
                       {"eos_token_id", t.end},
                       {"bos_token_id", nullptr},
                       {"forced_eos_token_id", nullptr}};
  const DecodingDefaults defaults = read_decoding_defaults(run);
  json generation = generation_of(defaults);
  generation["early_stopping"] = stopping_of(defaults);
  generation["min_new_tokens"] = std::max(t.min_length, defaults.min_length.value_or(0));
  for (const int32_t id : t.never) generation["bad_words_ids"].push_back({id});
  if (adds_pad) generation["bad_words_ids"].push_back({start});
  const auto write_text = [&](const std::string& directory) {
    write_translation_tokenizers(directory, loaded.tokenizers, loaded.translation, adds_pad,
                                 loaded.model->config().max_length, run.translation());
  };
  Parts parts{tokens, generation, write_text};
  if (adds_pad) parts.added = StartRow{loaded.config.zero_start ? std::nullopt : std::optional(t.start)};
  return write(run, out, *loaded.model, parts, type);
}

ExportReport export_run(const EncoderRun& loaded, const RunDirectory& run, const RunDirectory& out, ExportType type) {
  return export_encoder(loaded, nullptr, run, out, type);
}

ExportReport export_run(const ClassifierRun& loaded, const RunDirectory& run, const RunDirectory& out,
                        ExportType type) {
  return export_encoder(loaded, &loaded.classification, run, out, type);
}

}  // namespace

ExportReport export_model(const std::string& run, const std::string& out, ExportType type) {
  const RunDirectory from(run), to(out);
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: already exists", to.root());
  const auto loaded = load_one_of<TranslatorRun, LanguageRun, RecommenderRun, EncoderRun, ClassifierRun>(run);
  return std::visit([&](const auto& parts) { return export_run(parts, from, to, type); }, loaded);
}

}  // namespace qkv
