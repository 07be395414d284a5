// Models in the Hugging Face layout: config.json, safetensors and a tokenizer.
#include <algorithm>
#include <iterator>

#include "convert/architecture.h"
#include "convert/families/decoder_embedder.h"
#include "convert/formats/shards.h"
#include "convert/generation_settings.h"
#include "convert/imported_model.h"
#include "convert/sentence_transformers.h"
#include "core/fail.h"

namespace qkv {
namespace {

// Returns the number of token types if a pair of texts has two of them, or else 0.
int64_t read_token_types(const Settings& settings) {
  const int64_t types = settings.integer("type_vocab_size", 2);
  return types > 1 ? types : 0;
}

// Returns the head of a classifier, unless sentence-transformers pools the hidden states instead.
std::optional<HeadRule> head_of(const Architecture& architecture, const ModelFiles& files, const Settings& settings) {
  if (!architecture.head || !is_classifier(settings) || is_embedder(files)) return {};
  return architecture.head(settings);
}

// Reads the tokenizer. A decoder that is an embedder, or that is not causal, gives the text of an encoder.
ModelText read_text(const Architecture& architecture, TextSource source) {
  source.embeds = is_embedder(source.files) || sees_both_sides(source.config);
  ModelText text = architecture.text(source);
  if (std::holds_alternative<TranslatorText>(text) && source.files.has("modules.json"))
    fail("{}: a translation model is not supported as an embedder", source.files.path("modules.json"));
  auto* language = std::get_if<LanguageText>(&text);
  if (!language || !source.embeds) return text;
  return embedder_text(source.files, std::move(*language));
}

// Reads what sentence-transformers says of an encoder's text. Where it states no length, that of the tokenizer holds.
std::vector<DenseModule> read_modules_of(const ModelFiles& files, const ModelConfig& config, bool is_cross_encoder,
                                         EmbeddingConfig& text) {
  std::vector<DenseModule> dense;
  if (is_cross_encoder)
    read_cross_encoder(files, text);
  else
    dense = read_sentence_transformers(files, config.d_model, text);
  const int64_t longest = text.max_length > 0 ? std::min(text.max_length, config.max_length) : config.max_length;
  if (is_cross_encoder || (files.has("modules.json") && text.max_length == 0))
    text.max_length = read_text_limit(files, longest);
  else if (text.max_length > 0)
    text.max_length = longest;
  return dense;
}

// Whether the decoder starts from the end token, and the number of tokens after the start that are forced.
bool decoder_starts_with_end(const TranslationConfig& t) {
  return t.start == t.end && t.target_language != TargetLanguage::start;
}
int64_t count_forced(const TranslationConfig& t) {
  return !t.first.empty() || t.target_language == TargetLanguage::first ? 1 : 0;
}

// Takes over the settings of generation, and returns the note that names the others.
std::string read_generation(const ModelFiles& files, const Settings& config, const ModelConfig& model, ModelText& text,
                            DecodingDefaults& decoding) {
  GenerationSettings found;
  if (auto* translator = std::get_if<TranslatorText>(&text)) {
    TranslationConfig& t = translator->translation;
    found = read_translation_settings(files, config, decoder_starts_with_end(t), count_forced(t));
    const Tokenizer& target = translator->tokenizers.target;
    for (const int64_t id : found.never) {
      if (id < 0 || id >= target.size())
        fail("{}: suppress_tokens must be below {}, the size of the vocabulary (holds {})", found.where, target.size(),
             id);
      const std::string piece = target.piece(static_cast<int32_t>(id));
      if (std::ranges::find(t.never, piece) == t.never.end()) t.never.push_back(piece);
    }
  } else if (std::holds_alternative<LanguageText>(text)) {
    found = read_language_settings(files, config, model.max_length);
  }
  decoding = found.defaults;
  return note_of(found);
}

// Takes over what a model of whole texts says about summaries: as above.
std::string read_summaries(const Settings& config, const TranslationConfig& t, const DecodingDefaults& decoding,
                           DecodingDefaults& summary) {
  const GenerationSettings found = read_summary_settings(config, decoding, decoder_starts_with_end(t), count_forced(t));
  summary = found.defaults;
  return note_of(found);
}

// Returns the tensors of the model and of its head, and sets what the layers that predict masked tokens have.
TensorMap with_heads(const Architecture& architecture, const Settings& settings, const std::optional<HeadRule>& head,
                     const ForeignTensors& tensors, ModelConfig& config) {
  std::optional<TokenHeadRule> token_head;
  if (architecture.token_head && !head) token_head = architecture.token_head(config, settings);
  if (token_head)
    see_token_head(*token_head,
                   {[&](const std::string& name) { return tensors.has(name); },
                    [&](const std::string& a, const std::string& b) { return tensors.same(a, b); }},
                   settings, config);
  TensorMap map = architecture.tensors(config, settings);
  if (head) add_head(map, *head, config);
  if (token_head) add_token_head(map, *token_head, config);
  return map;
}

}  // namespace

ImportedModel read_hugging_face(const ModelFiles& files, const ImportOptions& options) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  const Architecture& architecture = architecture_of(settings);
  ModelConfig config = read_config(architecture, settings);
  const std::optional<HeadRule> head = head_of(architecture, files, settings);
  if (head && head->token_types) config.token_types = read_token_types(settings);
  ModelText text = read_text(architecture, {files, settings, config, options});
  std::vector<DenseModule> dense;
  if (auto* encoder = std::get_if<EncoderText>(&text))
    dense = read_modules_of(files, config, head.has_value(), encoder->config);

  const auto shards = std::make_shared<const Shards>(files);
  ForeignTensors tensors(shards->path(), shards->views());
  if (architecture.see_tensors)
    architecture.see_tensors(config, [&](const std::string& name) { return tensors.has(name); });
  TensorMap map = with_heads(architecture, settings, head, tensors, config);
  if (std::holds_alternative<EncoderText>(text) && config.has_decoder()) {
    leave_out_output(config, map);
    if (sees_both_sides(settings)) make_encoder(settings, config, map);
  }
  DecodingDefaults decoding, summary;
  std::vector<std::string> notes = {read_generation(files, settings, config, text, decoding)};
  if (const auto* translator = std::get_if<TranslatorText>(&text);
      translator && architecture.reads_whole_texts && translator->translation.languages.empty()) {
    decoding.sentences = Sentences::line;
    notes.push_back(read_summaries(settings, translator->translation, decoding, summary));
  }
  const std::set<std::string> heads = map_tensors(tensors, map);
  ImportedModel model{architecture.name, tensors.path(), config, std::move(text), tensors.take(), shards};
  model.dense = std::move(dense);
  model.decoding = decoding;
  model.summary = summary;
  if (head) model.classification = read_classification(files, settings, *head);
  if (!heads.empty())
    model.notes.push_back(fmt::format("left out: {} (not needed for hidden states)", fmt::join(heads, ", ")));
  std::ranges::copy_if(notes, std::back_inserter(model.notes), [](const std::string& note) { return !note.empty(); });
  return model;
}

}  // namespace qkv
