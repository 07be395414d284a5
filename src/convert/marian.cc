// Models of Marian in its own format (marian-nmt.github.io): the arrays of an .npz archive, one of which holds the
// configuration as YAML. Two things differ from MarianMT of transformers: norms use ε = 10⁻⁶, and the rates of the
// sinusoids are 10000^(−j/(h−1)), with positions counted from 0.
#include "convert/marian.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convert/config_fields.h"
#include "convert/formats/npz.h"
#include "convert/formats/yaml.h"
#include "convert/tensor_map.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

using nlohmann::json;
using MarianPath = std::filesystem::path;

constexpr size_t kMaxMarianFile = size_t{16} << 20;  // bytes
constexpr const char *kMarianEnd = "</s>", *kMarianUnknown = "<unk>";

bool is_sentencepiece(const MarianPath& file) { return file.extension() == ".spm" || file.extension() == ".model"; }

bool is_file(const MarianPath& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error);
}

// The names of the vocabularies in a configuration, as files next to it; none if it has no list of two.
std::vector<std::string> vocabularies_of(const MarianPath& configuration) {
  const json config = parse_yaml(read_file(configuration, kMaxMarianFile), configuration);
  const auto list = config.find("vocabs");
  std::vector<std::string> files;
  if (list == config.end() || !list->is_array()) return files;
  for (const json& name : *list)
    if (name.is_string()) files.push_back(configuration.parent_path() / MarianPath(name.get<std::string>()).filename());
  return files;
}

// The source's vocabulary and the target's.
std::vector<std::string> find_vocabularies(const MarianPath& npz, const ImportOptions& options) {
  if (!options.source_vocabulary.empty())
    return {options.source_vocabulary,
            options.target_vocabulary.empty() ? options.source_vocabulary : options.target_vocabulary};
  const MarianPath folder = npz.parent_path();
  for (const MarianPath& configuration :
       {MarianPath(npz.string() + ".decoder.yml"), folder / "decoder.yml", MarianPath(npz.string() + ".yml")}) {
    if (!is_file(configuration)) continue;
    const std::vector<std::string> files = vocabularies_of(configuration);
    if (files.size() == 2) return files;
    if (!files.empty()) fail("{}: vocabs must name two files (names {})", configuration.string(), files.size());
  }
  for (const char* name : {"vocab.spm", "vocab.yml"})
    if (is_file(folder / name)) return {folder / name, folder / name};
  fail(
      "{}: has no vocabulary: expected vocabs in {}.decoder.yml, decoder.yml or {}.yml, vocab.spm or vocab.yml, or the "
      "option source_vocabulary",
      npz.string(), npz.filename().string(), npz.filename().string());
}

std::vector<std::string> read_list(const MarianPath& file) {
  const std::string text = read_file(file, kMaxMarianFile), extension = file.extension();
  const bool is_mapping = extension == ".yml" || extension == ".yaml" || extension == ".json";
  return is_mapping ? parse_yaml_vocabulary(text, file) : pieces_from_lines(text, file);
}

Tokenizer read_vocabulary(const MarianPath& file, bool is_source, const ImportOptions& options,
                          const MarianPath& folder) {
  if (file.extension() == ".fsv") fail("{}: not supported: a vocabulary of factors", file.string());
  if (is_sentencepiece(file)) return Tokenizer::load(file);
  const auto splitter = choose_splitter(is_source, options, [&]() -> std::optional<SentencePieceFile> {
    const MarianPath own = folder / (is_source ? "source.spm" : "target.spm");
    if (!is_file(own)) return {};
    return SentencePieceFile::read(own);
  });
  return Tokenizer::with_pieces(splitter, read_list(file), options.unknown.value_or(kMarianUnknown), file);
}

constexpr const char* kMarianConfig = "special:model.yml";
constexpr const char* kSinusoids = "the sinusoids";  // a table that is not in the file
constexpr int64_t kMarianLength = 1024;              // tokens of a sentence
constexpr int64_t kMarianWidth = 4096;               // at most, so that the table has at most 16 MiB
constexpr int64_t kMostLayers = 1000;

// Owns what the origins refer to.
struct MarianFile {
  MappedFile archive;
  std::vector<float> sinusoids;
};

Settings read_marian_config(ForeignTensors& tensors) {
  const std::string where = in_file(tensors.path(), kMarianConfig);
  const TensorView& tensor = tensors.at(kMarianConfig);
  if (tensor.dtype != DType::i8 && tensor.dtype != DType::u8)
    fail("{}: must hold a text (is {})", where, describe(tensor.dtype, tensor.shape));
  std::string_view text(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  while (text.ends_with('\0')) text.remove_suffix(1);
  tensors.ignore(kMarianConfig);
  return Settings(parse_yaml(text, where).dump(), where);
}

// Operations before or after a layer without dropout, "d", which only training has.
std::string operations(const Settings& s, const char* name, const char* otherwise) {
  std::string text = s.text(name, otherwise);
  std::erase(text, 'd');
  return text;
}

[[noreturn]] void refuse_operations(const Settings& s, const char* name, const char* accepted) {
  fail("{}: {} must be {} (is {})", s.where(), name, accepted, excerpt(s.text(name)));
}

void require_text(const Settings& s, const char* name, const char* value) {
  if (s.text(name, value) != value) fail("{}: {} must be {} (is {})", s.where(), name, value, excerpt(s.text(name)));
}

void require_integer(const Settings& s, const char* name, int64_t value) {
  const int64_t found = s.integer(name, 0);
  if (found != 0 && found != value) fail("{}: {} must be {} (is {})", s.where(), name, value, found);
}

void require_supported(const Settings& s) {
  require_text(s, "transformer-decoder-autoreg", "self-attention");
  for (const char* flag : {"transformer-train-position-embeddings", "transformer-train-positions",
                           "transformer-no-projection", "transformer-pool", "right-left", "ulr"})
    require_flag(s, flag, false);
  require_integer(s, "transformer-ffn-depth", 2);
  require_integer(s, "transformer-decoder-ffn-depth", 2);
  require_integer(s, "transformer-decoder-dim-ffn", s.integer("transformer-dim-ffn"));
  require_integer(s, "lemma-dim-emb", 0);
  const json* tied = s.find("transformer-tied-layers");
  if (tied && !(tied->is_array() && tied->empty())) fail("{}: not supported: transformer-tied-layers", s.where());
}

void read_norms(const Settings& s, ModelConfig& m) {
  const std::string before = operations(s, "transformer-preprocess", ""),
                    after = operations(s, "transformer-postprocess", "dan"),
                    top = operations(s, "transformer-postprocess-top", ""),
                    embedding = operations(s, "transformer-postprocess-emb", "d");
  const bool pre = before == "n";
  if (!pre && !before.empty()) refuse_operations(s, "transformer-preprocess", "n or empty");
  if (after != (pre ? "a" : "an")) refuse_operations(s, "transformer-postprocess", pre ? "da" : "dan");
  if (top != "n" && (pre || !top.empty()))
    refuse_operations(s, "transformer-postprocess-top", pre ? "n" : "n or empty");
  if (embedding != "n" && !embedding.empty()) refuse_operations(s, "transformer-postprocess-emb", "d, n or empty");
  m.norm.position = pre ? NormPosition::pre : NormPosition::post;
  m.norm.final = top == "n";
  m.norm.epsilon = 1e-6;
  m.embedding_norm = embedding == "n";
}

int64_t layers_of(const Settings& s, const char* name) {
  const int64_t layers = s.integer(name);
  if (layers < 1 || layers > kMostLayers)
    fail("{}: {} must be between 1 and {} (is {})", s.where(), name, kMostLayers, layers);
  return layers;
}

ModelConfig marian_config(const Settings& s, const ForeignTensors& tensors) {
  require_text(s, "type", "transformer");
  require_supported(s);
  ModelConfig m;
  m.encoder_layers = layers_of(s, "enc-depth");
  m.decoder_layers = layers_of(s, "dec-depth");
  m.d_model = s.integer("dim-emb");
  m.attention.heads = s.integer("transformer-heads");
  if (m.d_model < 4 || m.d_model > kMarianWidth || m.d_model % 2 != 0)
    fail("{}: dim-emb must be even and between 4 and {} (is {})", s.where(), kMarianWidth, m.d_model);
  set_head_width(s, "dim-emb", "transformer-heads", m);
  m.ffn = s.integer("transformer-dim-ffn");
  const std::string activation = s.text("transformer-ffn-activation", "swish");
  if (activation != "swish" && activation != "relu")
    fail("{}: transformer-ffn-activation must be swish or relu (is {})", s.where(), excerpt(activation));
  m.activation = activation == "relu" ? Activation::relu : Activation::silu;
  read_norms(s, m);
  const bool all = s.flag("tied-embeddings-all", false);
  m.shared_embeddings = all || s.flag("tied-embeddings-src", false);
  m.tied_output = all || s.flag("tied-embeddings", false);
  m.output_bias = !s.flag("output-omit-bias", false);
  m.source_vocab = tensors.shape(m.shared_embeddings ? "Wemb" : "encoder_Wemb", 2)[0];
  m.target_vocab = tensors.shape(m.shared_embeddings ? "Wemb" : "decoder_Wemb", 2)[0];
  m.positions = Positions::learned;
  m.max_length = kMarianLength;
  m.zero_start = true;
  m.dropout.residual = 0;
  return m;
}

// The tensors of one model. Weights are [in, out], and vectors [1, n].
class MarianTensors {
 public:
  MarianTensors(const ModelConfig& m, const ForeignTensors& tensors) : m_(m) {
    add_tables(tensors);
    for (const std::string side : {"encoder", "decoder"}) {
      map_.add_tensor({.theirs = kSinusoids, .ours = {side + ".positions.weight"}});
      if (m.embedding_norm) add_norm(side + "_emb", side + ".embedding_norm", "_pre");
      if (m.norm.final) add_norm(side + "_top", side + ".norm", "");
      const int64_t layers = side == "encoder" ? m.encoder_layers : m.decoder_layers;
      for (int64_t i = 0; i < layers; i++) add_layer(side, i);
    }
  }

  const TensorMap& map() const { return map_; }

 private:
  void add_vector(const std::string& theirs, const std::string& ours, int64_t size) {
    map_.add_tensor({.theirs = theirs, .ours = {ours}, .reshape = TensorRule::Reshape{{1, size}, {size}}});
  }
  void add_norm(const std::string& theirs, const std::string& ours, const std::string& ending) {
    add_vector(theirs + "_ln_scale" + ending, ours + ".weight", m_.d_model);
    add_vector(theirs + "_ln_bias" + ending, ours + ".bias", m_.d_model);
  }
  // A layer with the weight PREFIX_W… and the bias PREFIX_b….
  void add_linear(const std::string& prefix, const std::string& part, const std::string& ours, int64_t outputs) {
    map_.add_tensor({.theirs = prefix + "_W" + part, .ours = {ours + ".weight"}, .layout = Layout::columns});
    add_vector(prefix + "_b" + part, ours + ".bias", outputs);
  }

  void add_attention(const std::string& theirs, const std::string& ours) {
    for (const char* part : {"q", "k", "v"}) add_linear(theirs, part, ours + "." + part, m_.d_model);
    add_linear(theirs, "o", ours + ".output", m_.d_model);
    add_norm(theirs + "_Wo", ours + "_norm", norm_ending());
  }

  void add_layer(const std::string& side, int64_t i) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = fmt::format("{}_l{}_", side, i + 1);
    add_attention(theirs + "self", ours + "self_attention");
    if (side == "decoder") add_attention(theirs + "context", ours + "cross_attention");
    add_linear(theirs + "ffn", "1", ours + "feed_forward.first", m_.ffn);
    add_linear(theirs + "ffn", "2", ours + "feed_forward.second", m_.d_model);
    add_norm(theirs + "ffn_ffn", ours + "feed_forward_norm", norm_ending());
  }

  void add_tables(const ForeignTensors& tensors) {
    if (m_.shared_embeddings) {
      map_.add_tensor({.theirs = "Wemb", .ours = {"embedding.weight"}});
    } else {
      map_.add_tensor({.theirs = "encoder_Wemb", .ours = {"source_embedding.weight"}});
      map_.add_tensor({.theirs = "decoder_Wemb", .ours = {"target_embedding.weight"}});
    }
    // Old versions store the output layer [in, out].
    const std::string output = "decoder_ff_logit_out_W";
    const bool old = tensors.has(output);
    if (!m_.tied_output)
      map_.add_tensor({.theirs = old ? output : output + "t",
                       .ours = {"output.weight"},
                       .layout = old ? Layout::columns : Layout::rows});
    if (m_.output_bias) add_vector("decoder_ff_logit_out_b", "output.bias", m_.target_vocab);
  }

  const char* norm_ending() const { return m_.norm.position == NormPosition::pre ? "_pre" : ""; }

  const ModelConfig& m_;
  TensorMap map_;
};

// Marian's table of positions [kMarianLength, d], in its order of operations in float32.
std::vector<float> marian_sinusoids(int64_t d) {
  const int64_t half = d / 2;
  const float increment = std::log(10000.0f) / (static_cast<float>(half) - 1);
  std::vector<float> table(to_size(kMarianLength * d));
  for (int64_t p = 0; p < kMarianLength; p++)
    for (int64_t j = 0; j < half; j++) {
      const float angle = static_cast<float>(p) * std::exp(static_cast<float>(j) * -increment);
      table[to_size(p * d + j)] = std::sin(angle);
      table[to_size(p * d + half + j)] = std::cos(angle);
    }
  return table;
}

}  // namespace

bool is_npz(const std::string& file) { return MarianPath(file).extension() == ".npz"; }

std::vector<std::string> npz_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (is_npz(entry.path()) && !entry.path().native().ends_with(".optimizer.npz")) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TranslatorText read_marian_vocabularies(const std::string& npz, const ImportOptions& options) {
  const MarianPath folder = MarianPath(npz).parent_path();
  const std::vector<std::string> files = find_vocabularies(npz, options);
  TokenizerPair tokenizers{read_vocabulary(files[0], true, options, folder),
                           read_vocabulary(files[1], false, options, folder)};
  // Marian starts from a zero vector in place of an embedding, so any token may stand there, and does not generate the
  // unknown token.
  TranslationConfig t;
  const Tokenizer& target = tokenizers.target;
  t.end = target.own_pieces() ? kMarianEnd : target.piece(target.end());
  t.unknown = target.own_pieces() ? kMarianUnknown : target.piece(target.unknown());
  t.start = t.source_end = t.end;
  override_tokens(t, options);
  if (!t.unknown.empty()) t.never = {t.unknown};
  return {std::move(tokenizers), std::move(t)};
}

ImportedModel read_marian(const std::string& path, const ImportOptions& options) {
  const auto file = std::make_shared<MarianFile>(MarianFile{MappedFile(path), {}});
  std::map<std::string, TensorView> arrays = parse_npz(file->archive.bytes(), path);
  ForeignTensors parts(path, arrays);
  const ModelConfig config = marian_config(read_marian_config(parts), parts);
  if (parts.shape(config.shared_embeddings ? "Wemb" : "encoder_Wemb", 2)[1] != config.d_model)
    fail("{}: the embeddings must have dim-emb {} columns", path, config.d_model);
  file->sinusoids = marian_sinusoids(config.d_model);
  arrays.emplace(kSinusoids, f32_tensor({kMarianLength, config.d_model}, file->sinusoids));
  ForeignTensors tensors(path, std::move(arrays));
  tensors.ignore(kMarianConfig);
  map_tensors(tensors, MarianTensors(config, tensors).map());
  return {"Marian", path, config, read_marian_vocabularies(path, options), tensors.take(), file};
}

}  // namespace qkv
