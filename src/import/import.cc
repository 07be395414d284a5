// qkv::import_model: which kind of model it is, and the run directory.
#include "qkv/import.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "import/imported_model.h"
#include "import/settings.h"
#include "io/atomic_file.h"
#include "io/run_directory.h"
#include "io/safetensors.h"
#include "model/transformer.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 1 << 18;  // numbers that become float32 at a time, or a row

ImportedModel read_hugging_face(const ModelFiles& files, const ImportOptions& options) {
  const Settings config(files.open_small("config.json")->text(), files.path("config.json"));
  const std::string type = config.text("model_type");
  if (type == "marian") return read_marian(files, options);
  const auto decoder = std::ranges::find(kEnumNames<DecoderFamily>, type);
  if (decoder != kEnumNames<DecoderFamily>.end())
    return read_decoder(static_cast<DecoderFamily>(decoder - kEnumNames<DecoderFamily>.begin()), files);
  constexpr std::array<std::string_view, 4> kEncoders = {"bert", "roberta", "xlm-roberta", "distilbert"};
  if (std::ranges::find(kEncoders, type) != kEncoders.end()) return read_bert(files, options);
  fail("{}: model_type is {}, wanted marian, {}, {}", config.where(), excerpt(type),
       fmt::join(kEnumNames<DecoderFamily>, ", "), fmt::join(kEncoders, ", "));
}

ImportedModel read_files(const ModelFiles& files, const ImportOptions& options) {
  if (files.has("metadata.json")) return read_argos(files, options);
  if (files.has("model.bin")) return read_ctranslate2(files, options);
  if ((files.has("model.safetensors") || files.has("model.safetensors.index.json")) && files.has("config.json"))
    return read_hugging_face(files, options);
  if (files.has("pytorch_model.bin") || files.holds_pickle())
    fail(
        "{}: weights in Python's pickle format, which can run code, are not read; wanted model.safetensors, which "
        "save_pretrained() of Transformers and save_file() of safetensors write",
        files.path());
  fail("{}: found none of model.safetensors with config.json, model.bin, metadata.json", files.path());
}

ImportedModel read_any(const std::string& source, const ImportOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(source, error)) return read_files(ModelFiles::of_directory(source), options);
  if (ModelFiles::is_archive(source)) return read_files(ModelFiles::of_archive(source), options);
  return read_torch(source, options);
}

// Numbers of all origins; a part that two parameters share counts twice.
int64_t count_numbers(const Origins& origins) {
  int64_t total = 0;
  for (const auto& [name, origin] : origins) {
    int64_t count = 1;
    for (const int64_t size : origin.values.shape) count *= size;  // bounded by the bytes of the file
    total += count;
  }
  return total;
}

// The parameters of the configuration. They take no memory before somebody writes to them.
std::unique_ptr<Transformer<float>> declare(const ImportedModel& model) {
  try {
    check(model.config);
  } catch (const Error& error) {
    fail("{}: {}", model.path, error.what());
  }
  const int64_t wanted = count_parameters(model.config), found = count_numbers(model.origins);
  if (wanted != found) fail("{}: {} numbers, the configuration asks for {}", model.path, found, wanted);
  return std::make_unique<Transformer<float>>(model.config);
}

void check_vocabulary(const ImportedModel& model, int64_t embeddings, const char* side, int64_t tokens) {
  if (tokens != embeddings)
    fail("{}: {} {} embeddings, the vocabulary has {} tokens", model.path, embeddings, side, tokens);
}

void create_translator(const ImportedModel& model, const TranslatorText& text, const std::string& source,
                       const RunDirectory& out) {
  check_vocabulary(model, model.config.source_vocab, "source", text.tokenizers.source.size());
  check_vocabulary(model, model.config.target_vocab, "target", text.tokenizers.target.size());
  tokens_of(text.translation, text.tokenizers, source);
  create_run(out, {model.config, text.tokenizers, text.translation},
             [&](const RunDirectory& partial) { write_weights(model, partial.model()); });
}

void create_language_model(const ImportedModel& model, LanguageText text, const RunDirectory& out) {
  if (has_tokenizer_json(text.codec.unit())) text.codec.pad(model.config.target_vocab, model.path);
  check_vocabulary(model, model.config.target_vocab, "token", text.codec.size());
  make_run(out, [&](const RunDirectory& partial) {
    write_file_atomic(partial.config(), to_json(model.config));
    write_file_atomic(partial.language(), json_from_fields(text.config));
    save_codec(partial, text.codec);
    write_weights(model, partial.model());
  });
}

// A vocabulary may have fewer tokens than the table has rows: many were filled up to a round number.
void create_encoder(const ImportedModel& model, const EncoderText& text, const RunDirectory& out) {
  if (text.codec.size() > model.config.source_vocab)
    fail("{}: {} embeddings, the vocabulary has {} tokens", model.path, model.config.source_vocab, text.codec.size());
  edges_of(text.config, text.codec, model.path);
  make_run(out, [&](const RunDirectory& partial) {
    write_file_atomic(partial.config(), to_json(model.config));
    save_encoder_text(partial, text.config, text.codec);
    write_weights(model, partial.model());
  });
}

}  // namespace

void override_tokens(TranslationConfig& t, const ImportOptions& options) {
  for (const auto& [field, value] : {std::pair{&t.source_start, &options.source_start},
                                     {&t.source_end, &options.source_end},
                                     {&t.start, &options.start},
                                     {&t.end, &options.end},
                                     {&t.unknown, &options.unknown}})
    if (*value) *field = **value;
}

std::optional<SentencePieceFile> choose_splitter(bool is_source, const ImportOptions& options,
                                                 const std::function<std::optional<SentencePieceFile>()>& own) {
  if (options.tokens) return {};
  const std::string& file =
      is_source || options.target_tokenizer.empty() ? options.source_tokenizer : options.target_tokenizer;
  return file.empty() ? own() : SentencePieceFile::read(file);
}

void write_weights(const ImportedModel& model, const std::string& path) {
  const auto transformer = declare(model);
  std::vector<TensorEntry> entries;
  for (const auto& p : transformer->parameters().all()) {
    const auto place = model.origins.find(p.name);
    if (place == model.origins.end()) fail("{}: holds nothing for {}", model.path, p.name);
    const Origin& origin = place->second;
    if (origin.values.shape != p.shape)
      fail("{}: found {} for {}, wanted {}", in_file(model.path, origin.name),
           describe(origin.values.dtype, origin.values.shape), p.name, describe(origin.values.dtype, p.shape));
    entries.push_back({p.name, DType::f32, p.shape});
  }
  std::vector<float> numbers;
  const auto data = [&](size_t i, WriteBytes write) {
    const Parameter<float>& p = transformer->parameters().all()[i];
    const int64_t rows = p.shape[0], cols = p.size() / rows, block = std::max(kBlock / cols, int64_t{1});
    for (int64_t begin = 0; begin < rows; begin += block) {
      const int64_t end = std::min(rows, begin + block);
      numbers.resize(static_cast<size_t>((end - begin) * cols));
      read_floats(part_of(model.origins.at(p.name), {begin, end}), model.path, numbers);
      write(std::as_bytes(std::span(numbers)));
    }
  };
  write_safetensors(path, entries, data, {{"format", "qkv"}});
}

ImportReport import_model(const std::string& source, const std::string& out, const ImportOptions& options) {
  if (std::filesystem::exists(std::filesystem::symlink_status(out))) fail("{}: exists already", out);
  const ImportedModel model = read_any(source, options);
  if (const auto* text = std::get_if<TranslatorText>(&model.text))
    create_translator(model, *text, source, RunDirectory(out));
  else if (const auto* language = std::get_if<LanguageText>(&model.text))
    create_language_model(model, *language, RunDirectory(out));
  else
    create_encoder(model, std::get<EncoderText>(model.text), RunDirectory(out));
  return {model.kind, model.config, count_parameters(model.config), model.notes};
}

}  // namespace qkv
