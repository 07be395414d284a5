// qkv::import_model: detects the kind of model and writes the run directory.
#include "qkv/import.h"

#include <algorithm>
#include <filesystem>

#include "convert/architecture.h"
#include "convert/formats/gguf_file.h"
#include "convert/formats/shards.h"
#include "convert/hub.h"
#include "convert/hub/repository.h"
#include "convert/imported_model.h"
#include "convert/marian.h"
#include "convert/text/chat_import.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "model/transformer.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 1 << 18;  // numbers converted at once; at least a row

// A Hugging Face or CTranslate2 directory may hold a metadata.json as well, so Argos Translate is tried after them.
ImportedModel read_files(const ModelFiles& files, const ImportOptions& options) {
  if (Shards::present(files) && files.has("config.json")) return read_hugging_face(files, options);
  if (files.has("model.bin")) return read_ctranslate2(files, options);
  if (files.has("metadata.json")) return read_argos(files, options);
  fail("{}: expected model.safetensors or pytorch_model.bin with config.json, model.bin, or metadata.json",
       files.path());
}

// The archive of a Marian model: the source, or the only one in a directory without files of transformers; "" if there
// is none.
std::string marian_npz(const std::string& source) {
  std::error_code error;
  if (!std::filesystem::is_directory(source, error)) return is_npz(source) ? source : "";
  const std::vector<std::string> files = npz_files(source);
  if (files.empty() || ModelFiles::of_directory(source).has("config.json")) return "";
  if (files.size() > 1)
    fail("{}: holds {} .npz archives ({}, …): name one of them", source, files.size(), files.front());
  return files.front();
}

ImportedModel read_any(const std::string& source, const ImportOptions& options) {
  std::error_code error;
  if (const std::string npz = marian_npz(source); !npz.empty()) return read_marian(npz, options);
  if (std::filesystem::is_directory(source, error)) return read_files(ModelFiles::of_directory(source), options);
  if (is_gguf(source)) return read_gguf(source);
  if (ModelFiles::is_archive(source)) {
    const ModelFiles files = ModelFiles::of_archive(source);
    if (files.has("metadata.json") || !files.is_torch_checkpoint()) return read_files(files, options);
  }
  return read_torch(source, options);
}

// Counts the numbers of all origins but those of a classifier's head; a part that two parameters share counts twice.
int64_t count_numbers(const ImportedModel& model) {
  int64_t total = 0;
  for (const auto& [name, origin] : model.origins) {
    if (model.classification && name.starts_with("head.")) continue;
    int64_t count = 1;
    for (const int64_t size : origin.shape) count *= size;  // bounded by the bytes of the file
    total += count;
  }
  return total;
}

// Declares the parameters of the configuration. They take no memory until they are written to.
std::unique_ptr<Transformer<float>> declare(const ImportedModel& model) {
  try {
    check(model.config);
  } catch (const Error& error) {
    fail("{}: {}", model.path, error.what());
  }
  const int64_t expected = count_parameters(model.config), found = count_numbers(model);
  if (expected != found)
    fail("{}: the configuration has {} parameters (the file has {} numbers for them)", model.path, expected, found);
  return std::make_unique<Transformer<float>>(model.config);
}

void check_vocabulary(const ImportedModel& model, int64_t embeddings, const char* side, int64_t tokens) {
  if (tokens != embeddings)
    fail("{}: {} embeddings must match the vocabulary (are {}, the vocabulary has {} tokens)", model.path, side,
         embeddings, tokens);
}

// Notes the added tokens of a tokenizer.json that the model has no row for; they are left out of the run.
void note_left_out(const HuggingFaceTokenizer* tokenizer, int64_t rows, std::vector<std::string>& notes) {
  std::vector<std::string> names;
  if (tokenizer)
    for (const AddedToken& token : tokenizer->spec().added)
      if (token.id >= rows) names.push_back(excerpt(token.text));
  if (!names.empty()) notes.push_back(fmt::format("left out: {} (no row of the embeddings)", fmt::join(names, ", ")));
}

void create_translator(ImportedModel& model, TranslatorText text, const std::string& source, const RunDirectory& out) {
  note_left_out(text.tokenizers.target.hugging_face(), model.config.target_vocab, model.notes);
  for (const auto& [tokenizer, rows] : {std::pair{&text.tokenizers.source, model.config.source_vocab},
                                        {&text.tokenizers.target, model.config.target_vocab}})
    if (tokenizer->hugging_face()) *tokenizer = tokenizer->fitted(rows, model.path);
  check_vocabulary(model, model.config.source_vocab, "source", text.tokenizers.source.size());
  check_vocabulary(model, model.config.target_vocab, "target", text.tokenizers.target.size());
  tokens_of(text.translation, text.tokenizers, source);
  create_run(out, TranslatorRun{model.config, text.tokenizers, text.translation}, [&](const RunDirectory& partial) {
    write_weights(model, partial.model());
    write_decoding_defaults(partial, model.decoding);
    write_summary_defaults(partial, model.summary);
  });
}

void create_language_model(ImportedModel& model, LanguageText text, const RunDirectory& out) {
  if (has_tokenizer_json(text.codec.unit()))
    note_left_out(&text.codec.hugging_face_tokenizer(), model.config.target_vocab, model.notes);
  const int64_t more = model.config.target_vocab - text.codec.size();
  if (has_tokenizer_json(text.codec.unit()) ||
      (text.codec.unit() == TextUnit::pieces && more > 0 && more <= kMaxPadding))
    text.codec.fit(model.config.target_vocab, model.path);
  check_vocabulary(model, model.config.target_vocab, "token", text.codec.size());
  const LanguageRun run{model.config, text.config, text.codec, text.chat};
  create_run(out, run, [&](const RunDirectory& partial) {
    write_weights(model, partial.model());
    write_decoding_defaults(partial, model.decoding);
  });
}

// A vocabulary may have fewer tokens than there are embeddings: tables are often padded to a round number of rows.
void create_encoder(ImportedModel& model, EncoderText text, const RunDirectory& out) {
  const int64_t rows = tokens_of_text(model.config);
  if (has_tokenizer_json(text.codec.unit())) {
    note_left_out(&text.codec.hugging_face_tokenizer(), rows, model.notes);
    if (text.codec.size() > rows) text.codec.fit(rows, model.path);
  }
  if (text.codec.size() > rows)
    fail("{}: the vocabulary must not be larger than the {} embeddings (has {} tokens)", model.path, rows,
         text.codec.size());
  edges_of(text.config, text.codec, model.path);
  EncoderRun run{model.config, text.config, text.codec};
  if (!model.classification)
    return create_run(out, run, [&](const RunDirectory& partial) {
      write_weights(model, partial.model());
      if (!model.dense.empty()) write_dense(model, partial.dense());
    });
  create_run(out, ClassifierRun{std::move(run), *model.classification}, [&](const RunDirectory& partial) {
    write_weights(model, partial.model());
    write_head(model, partial.classifier());
  });
}

// Parameters and where their values are.
struct OriginsOfFile {
  const Origins& origins;
  const std::string& path;     // of their file
  const PeftAdapter* adapter;  // may be null
};

// Writes parameters, which have no values yet, from their origins.
void write_parameters(const ParameterList<float>& list, const std::string& path,
                      const std::function<OriginsOfFile(const std::string& name)>& file_of) {
  std::vector<TensorEntry> entries;
  for (const auto& p : list.all()) {
    const OriginsOfFile file = file_of(p.name);
    const auto place = file.origins.find(p.name);
    if (place == file.origins.end()) fail("{}: has no tensor for {}", file.path, p.name);
    const Origin& origin = place->second;
    if (origin.shape != p.shape)
      fail("{}: the part for {} must be {} (is {})", in_file(file.path, origin.name), p.name,
           describe(origin.tensor.dtype, p.shape), describe(origin.tensor.dtype, origin.shape));
    entries.push_back({p.name, DType::f32, p.shape});
  }
  std::vector<float> numbers;
  const auto data = [&](size_t i, WriteBytes write) {
    const Parameter<float>& p = list.all()[i];
    const OriginsOfFile file = file_of(p.name);
    const int64_t rows = p.shape[0], cols = p.size() / rows, block = std::max(kBlock / cols, int64_t{1});
    for (int64_t begin = 0; begin < rows; begin += block) {
      const int64_t end = std::min(rows, begin + block);
      numbers.resize(to_size((end - begin) * cols));
      read_floats(file.origins.at(p.name), file.path, begin, end, numbers);
      if (file.adapter) file.adapter->add(p.name, begin, end, numbers);
      write(std::as_bytes(std::span(numbers)));
    }
  };
  write_safetensors(path, entries, data, {{"format", "qkv"}});
}

void write_parameters(const ImportedModel& model, const ParameterList<float>& list, const std::string& path) {
  const OriginsOfFile file{model.origins, model.path, model.adapter.get()};
  write_parameters(list, path, [&](const std::string&) { return file; });
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
  write_parameters(model, declare(model)->parameters(), path);
}

void write_head(const ImportedModel& model, const std::string& path) {
  const auto output = model.origins.find("head.output.weight");
  const int64_t labels = std::ssize(model.classification->labels);
  if (output != model.origins.end() && output->second.shape.at(0) != labels)
    fail("{}: must have a row for each of the {} labels (is {})", in_file(model.path, output->second.name), labels,
         describe(output->second.tensor.dtype, output->second.shape));
  const StandaloneLabelHead head(model.config, label_head_shape(*model.classification));
  write_parameters(model, head.parameters(), path);
}

void write_dense(const ImportedModel& model, const std::string& path) {
  std::vector<DenseShape> shapes;
  std::map<std::string, const DenseModule*> modules;
  for (const DenseModule& module : model.dense) {
    const std::string layer = fmt::format("dense.{}", shapes.size());
    const std::vector<int64_t>& shape = module.origins.at(layer + ".weight").shape;
    shapes.push_back({DenseActivation::identity, shape[1], shape[0], module.origins.contains(layer + ".bias")});
    for (const auto& [name, origin] : module.origins) modules[name] = &module;
  }
  write_parameters(StandaloneDense(shapes).parameters(), path, [&](const std::string& name) {
    return OriginsOfFile{modules.at(name)->origins, modules.at(name)->file->path(), nullptr};
  });
}

std::vector<TransformersModel> transformers_models() {
  std::vector<TransformersModel> models;
  for (const Architecture* a : all_architectures())
    models.push_back({a->name, a->model_types, a->model_class, a->widen != nullptr});
  return models;
}

ImportReport import_model(const std::string& source, const std::string& out, const ImportOptions& options) {
  check_ranges(options);
  if (std::filesystem::exists(std::filesystem::symlink_status(out))) fail("{}: already exists", out);
  if (is_hub_name(source)) {
    const HubModel downloaded = fetch_from_hub(source, options.on_download);
    ImportReport report = import_model(downloaded.path, out, options);
    report.notes.insert(report.notes.begin(), fmt::format("{} at commit {}", source, downloaded.commit));
    return report;
  }
  ImportedModel model = read_any(source, options);
  if (!options.adapter.empty()) model.adapter = std::make_shared<const PeftAdapter>(options.adapter, model.origins);
  if (const auto* language = std::get_if<LanguageText>(&model.text))
    std::ranges::move(chat_problems(language->chat), std::back_inserter(model.notes));
  if (const auto* text = std::get_if<TranslatorText>(&model.text))
    create_translator(model, *text, source, RunDirectory(out));
  else if (const auto* language = std::get_if<LanguageText>(&model.text))
    create_language_model(model, *language, RunDirectory(out));
  else
    create_encoder(model, std::get<EncoderText>(model.text), RunDirectory(out));
  return {model.kind, model.config, count_parameters(model.config), model.notes};
}

}  // namespace qkv
