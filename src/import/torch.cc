// State dictionaries of PyTorch models around nn.Transformer, saved as safetensors. The layers have the names of
// nn.Transformer behind one prefix; embeddings and output layer are the user's own, and named by the caller.
#include "core/fail.h"
#include "core/json.h"
#include "import/imported_model.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

constexpr size_t kMaxList = size_t{16} << 20;  // bytes
constexpr const char* kFirst = "encoder.layers.0.self_attn.in_proj_weight";

std::string find_prefix(const ForeignTensors& tensors) {
  const std::string* found = nullptr;
  for (const auto& [name, tensor] : tensors.all()) {
    if (!name.ends_with(kFirst)) continue;
    if (found) fail("{}: {} and {}: two models", tensors.path(), excerpt(*found), excerpt(name));
    found = &name;
  }
  if (!found) fail("{}: no tensor is named [PREFIX]{}: not a model around nn.Transformer", tensors.path(), kFirst);
  return found->substr(0, found->size() - std::string_view(kFirst).size());
}

class TorchTensors {
 public:
  TorchTensors(ForeignTensors& tensors, const TorchModel& torch)
      : tensors_(tensors), torch_(torch), prefix_(find_prefix(tensors)) {}

  ModelConfig config() {
    ModelConfig c;
    const std::string encoder = prefix_ + "encoder.", decoder = prefix_ + "decoder.";
    c.encoder_layers = tensors_.count(encoder + "layers.", ".linear1.weight");
    c.decoder_layers = tensors_.count(decoder + "layers.", ".linear1.weight");
    const std::vector<int64_t> first = tensors_.shape(encoder + "layers.0.linear1.weight", 2);
    c.ffn = first[0], c.d_model = first[1];
    c.attention.heads = torch_.heads;
    if (c.attention.heads < 1 || c.d_model < 1 || c.d_model % c.attention.heads != 0)
      fail("{}: --heads is {}, wanted a divisor of the width, {}", tensors_.path(), c.attention.heads, c.d_model);
    c.attention.key_width = c.attention.value_width = c.d_model / c.attention.heads;
    c.activation = torch_.activation;
    c.norm.position = torch_.norm_position;
    c.norm.epsilon = torch_.norm_epsilon;
    c.norm.final = tensors_.has(encoder + "norm.weight");
    c.attention.input_bias = tensors_.has(encoder + "layers.0.self_attn.in_proj_bias");
    c.attention.output_bias = tensors_.has(encoder + "layers.0.self_attn.out_proj.bias");
    c.scale_embeddings = torch_.scale_embeddings;
    c.positions = torch_.position_table.empty() ? torch_.positions : Positions::learned;
    if (torch_.position_table.empty() && torch_.positions == Positions::learned)
      fail("{}: positions are learned, wanted the name of their table", tensors_.path());
    c.max_length = torch_.position_table.empty() ? torch_.max_length : position_rows(c.d_model);
    if (torch_.source_embedding.empty())
      fail("{}: wanted the name of the source embedding (--source-embedding)", tensors_.path());
    c.source_vocab = tensors_.shape(torch_.source_embedding, 2)[0];
    c.target_vocab = tensors_.shape(target_embedding(), 2)[0];
    c.shared_embeddings = tensors_.same(torch_.source_embedding, target_embedding());
    c.tied_output = torch_.output.empty() || tensors_.same(torch_.output, target_embedding());
    c.output_bias = !torch_.output.empty() && tensors_.has(output_bias());
    c.dropout.residual = 0;
    return c;
  }

  void use_all(const ModelConfig& config) {
    tensors_.use(config.shared_embeddings ? "embedding.weight" : "source_embedding.weight", torch_.source_embedding);
    if (!config.shared_embeddings) tensors_.use("target_embedding.weight", target_embedding());
    if (!config.tied_output) tensors_.use("output.weight", torch_.output);
    if (config.output_bias) tensors_.use("output.bias", output_bias());
    tensors_.let_go(target_embedding());
    tensors_.let_go(torch_.output);
    for (const char* side : {"encoder", "decoder"}) {
      if (config.positions == Positions::learned)
        tensors_.use_as(side + std::string(".positions.weight"), torch_.position_table,
                        {config.max_length, config.d_model});
      if (config.norm.final) use_pair(side + std::string(".norm"), prefix_ + side + ".norm");
    }
    for (int64_t i = 0; i < config.encoder_layers; i++) use_layer("encoder", i, config);
    for (int64_t i = 0; i < config.decoder_layers; i++) use_layer("decoder", i, config);
    for (const std::string& name : torch_.ignore) tensors_.let_go(name);
    tensors_.refuse_others();
  }

 private:
  const std::string& target_embedding() const {
    return torch_.target_embedding.empty() ? torch_.source_embedding : torch_.target_embedding;
  }
  std::string output_bias() const {
    const size_t stem = torch_.output.ends_with(".weight") ? torch_.output.size() - 7 : torch_.output.size();
    return torch_.output.substr(0, stem) + ".bias";
  }
  // Of a table of positions [max_length, d], which may have a dimension of 1 for the batch.
  int64_t position_rows(int64_t d) const {
    const TensorView& table = tensors_.at(torch_.position_table);
    int64_t rows = 1;
    for (const int64_t size : table.shape) rows *= size;  // bounded by the bytes of the file
    return rows / d;
  }

  void use_pair(const std::string& ours, const std::string& theirs, Rows rows = {}, bool bias = true,
                const char* separator = ".") {
    tensors_.use(ours + ".weight", theirs + separator + "weight", rows);
    if (bias) tensors_.use(ours + ".bias", theirs + separator + "bias", rows);
  }

  void use_attention(const std::string& ours, const std::string& theirs, const ModelConfig& config) {
    const int64_t d = config.d_model;
    const char* parts[] = {".q", ".k", ".v"};
    for (int64_t i = 0; i < 3; i++)
      use_pair(ours + parts[i], theirs + ".in_proj", {i * d, (i + 1) * d}, config.attention.input_bias, "_");
    use_pair(ours + ".output", theirs + ".out_proj", {}, config.attention.output_bias);
  }

  void use_layer(const std::string& side, int64_t i, const ModelConfig& config) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = prefix_ + ours;
    int64_t norms = 0;
    const auto norm = [&] { return fmt::format("{}norm{}", theirs, ++norms); };
    use_attention(ours + "self_attention", theirs + "self_attn", config);
    use_pair(ours + "self_attention_norm", norm());
    if (side == "decoder") {
      use_attention(ours + "cross_attention", theirs + "multihead_attn", config);
      use_pair(ours + "cross_attention_norm", norm());
    }
    use_pair(ours + "feed_forward.first", theirs + "linear1");
    use_pair(ours + "feed_forward.second", theirs + "linear2");
    use_pair(ours + "feed_forward_norm", norm());
  }

  ForeignTensors& tensors_;
  const TorchModel& torch_;
  std::string prefix_;
};

Tokenizer make_tokenizer(bool is_source, const std::string& unknown, const ImportOptions& options) {
  const auto of_side = [&](const std::string& source, const std::string& target) {
    return is_source || target.empty() ? source : target;
  };
  const std::string list = of_side(options.source_vocabulary, options.target_vocabulary),
                    model = of_side(options.source_tokenizer, options.target_tokenizer);
  if (list.empty() && model.empty())
    fail("a state dictionary has no vocabulary; wanted --source-vocabulary or --source-tokenizer");
  if (list.empty()) return Tokenizer::load(model);
  const std::string text = read_file(list, kMaxList);
  std::vector<std::string> pieces =
      list.ends_with(".json") ? pieces_from_json(text, list) : pieces_from_lines(text, list);
  const auto splitter = choose_splitter(is_source, options, [] { return std::optional<SentencePieceFile>(); });
  return Tokenizer::with_pieces(splitter, std::move(pieces), unknown, list);
}

}  // namespace

ImportedModel read_torch(const std::string& path, const ImportOptions& options) {
  const auto file = std::make_shared<const Safetensors>(Safetensors::open(path));
  std::map<std::string, TensorView> views;
  for (const std::string& name : file->names()) views.emplace(name, *file->find(name));
  ForeignTensors tensors(path, std::move(views));
  TorchTensors reader(tensors, options.torch);
  const ModelConfig config = reader.config();
  reader.use_all(config);

  TranslationConfig translation;
  override_tokens(translation, options);
  TokenizerPair tokenizers{make_tokenizer(true, translation.unknown, options),
                           make_tokenizer(false, translation.unknown, options)};
  if (!tokenizers.target.own_pieces()) translation = trained_translation(tokenizers, false);
  if (tokenizers.target.own_pieces()) translation.source_end = translation.end;
  override_tokens(translation, options);
  return {"PyTorch", path, config, TranslatorText{std::move(tokenizers), std::move(translation)}, tensors.take(), file};
}

}  // namespace qkv
