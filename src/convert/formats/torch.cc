// State dictionaries of PyTorch models around nn.Transformer, saved as safetensors or by torch.save. The layers have
// the names of nn.Transformer after a prefix; the caller names embeddings and output layer, which are not part of
// nn.Transformer.
#include "convert/formats/shards.h"
#include "convert/imported_model.h"
#include "convert/tensor_map.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

constexpr size_t kMaxList = size_t{16} << 20;  // bytes
constexpr const char* kFirst = "encoder.layers.0.self_attn.in_proj_weight";

std::string find_prefix(const ForeignTensors& tensors) {
  const std::string* found = nullptr;
  for (const auto& [name, tensor] : tensors.all()) {
    if (!name.ends_with(kFirst)) continue;
    if (found)
      fail("{}: must hold one model (both {} and {} belong to one)", tensors.path(), excerpt(*found), excerpt(name));
    found = &name;
  }
  if (!found) fail("{}: must be a model around nn.Transformer (has no tensor [PREFIX]{})", tensors.path(), kFirst);
  return found->substr(0, found->size() - std::string_view(kFirst).size());
}

class TorchReader {
 public:
  TorchReader(const ForeignTensors& tensors, const TorchModel& torch)
      : tensors_(tensors), torch_(torch), prefix_(find_prefix(tensors)) {}

  ModelConfig config() const {
    ModelConfig c;
    const std::string encoder = prefix_ + "encoder.", decoder = prefix_ + "decoder.";
    c.encoder_layers = tensors_.count(encoder + "layers.", ".linear1.weight");
    c.decoder_layers = tensors_.count(decoder + "layers.", ".linear1.weight");
    const std::vector<int64_t> first = tensors_.shape(encoder + "layers.0.linear1.weight", 2);
    c.ffn = first[0], c.d_model = first[1];
    if (!torch_.heads) fail("{}: heads must be given, because tensors do not show their number", tensors_.path());
    c.attention.heads = *torch_.heads;
    if (c.d_model < 1 || c.d_model % c.attention.heads != 0)
      fail("{}: heads must divide the width {} (is {})", tensors_.path(), c.d_model, c.attention.heads);
    c.attention.key_width = c.attention.value_width = c.d_model / c.attention.heads;
    c.activation = torch_.activation;
    c.norm.position = torch_.norm_position;
    if (c.norm.position == NormPosition::branch || c.norm.position == NormPosition::sandwich)
      fail("{}: norm_position must be post, pre or query (is {})", tensors_.path(), name_of(c.norm.position));
    c.norm.epsilon = torch_.norm_epsilon;
    c.norm.final = tensors_.has(encoder + "norm.weight");
    c.attention.input_bias = tensors_.has(encoder + "layers.0.self_attn.in_proj_bias");
    c.attention.output_bias = tensors_.has(encoder + "layers.0.self_attn.out_proj.bias");
    c.scale_embeddings = torch_.scale_embeddings;
    c.positions = torch_.position_table.empty() ? torch_.positions : Positions::learned;
    if (torch_.position_table.empty() && torch_.positions == Positions::learned)
      fail("{}: position_table must name the tensor of learned positions", tensors_.path());
    c.max_length = torch_.position_table.empty() ? torch_.max_length : position_rows(c.d_model);
    if (torch_.source_embedding.empty()) fail("{}: source_embedding must name a tensor", tensors_.path());
    c.source_vocab = tensors_.shape(torch_.source_embedding, 2)[0];
    c.target_vocab = tensors_.shape(target_embedding(), 2)[0];
    c.shared_embeddings = tensors_.same(torch_.source_embedding, target_embedding());
    c.tied_output = torch_.output_layer.empty() || tensors_.same(torch_.output_layer, target_embedding());
    c.output_bias = !torch_.output_layer.empty() && tensors_.has(output_bias());
    c.dropout.residual = 0;
    return c;
  }

  TensorMap tensors(const ModelConfig& m) const {
    TensorMap map;
    add_tables(map, m);
    for (const char* side : {"encoder", "decoder"}) {
      if (m.positions == Positions::learned)
        map.add_tensor(
            {.theirs = torch_.position_table,
             .ours = {side + std::string(".positions.weight")},
             .reshape = TensorRule::Reshape{tensors_.at(torch_.position_table).shape, {m.max_length, m.d_model}}});
      if (m.norm.final) map.add_module({.theirs = prefix_ + side + ".norm", .ours = {side + std::string(".norm")}});
    }
    for (int64_t i = 0; i < m.encoder_layers; i++) add_layer(map, "encoder", i, m);
    for (int64_t i = 0; i < m.decoder_layers; i++) add_layer(map, "decoder", i, m);
    map.unused = torch_.ignore;
    map.unused.push_back(target_embedding());  // the tables may have several names
    map.unused.push_back(torch_.output_layer);
    return map;
  }

 private:
  const std::string& target_embedding() const {
    return torch_.target_embedding.empty() ? torch_.source_embedding : torch_.target_embedding;
  }
  std::string output_bias() const {
    const size_t stem =
        torch_.output_layer.ends_with(".weight") ? torch_.output_layer.size() - 7 : torch_.output_layer.size();
    return torch_.output_layer.substr(0, stem) + ".bias";
  }
  // Rows of the table of positions [max_length, d], which may have a dimension of 1 for the batch.
  int64_t position_rows(int64_t d) const {
    const TensorView& table = tensors_.at(torch_.position_table);
    if (table.shape.size() < 2 || table.shape.back() != d)
      fail("{}: must be [length, {}] (is {})", in_file(tensors_.path(), torch_.position_table), d,
           describe(table.dtype, table.shape));
    int64_t rows = 1;
    for (const int64_t size : table.shape) rows *= size;  // bounded by the bytes of the file
    return rows / d;
  }

  void add_tables(TensorMap& map, const ModelConfig& m) const {
    map.add_tensor({.theirs = torch_.source_embedding,
                    .ours = {m.shared_embeddings ? "embedding.weight" : "source_embedding.weight"}});
    if (!m.shared_embeddings) map.add_tensor({.theirs = target_embedding(), .ours = {"target_embedding.weight"}});
    if (!m.tied_output) map.add_tensor({.theirs = torch_.output_layer, .ours = {"output.weight"}});
    if (m.output_bias) map.add_tensor({.theirs = output_bias(), .ours = {"output.bias"}});
  }

  static void add_attention(TensorMap& map, const std::string& ours, const std::string& theirs, const ModelConfig& m) {
    map.add_module({.theirs = theirs + ".in_proj",
                    .ours = {ours + ".q", ours + ".k", ours + ".v"},
                    .bias = m.attention.input_bias,
                    .weight_name = "_weight",
                    .bias_name = "_bias"});
    map.add_module({.theirs = theirs + ".out_proj", .ours = {ours + ".output"}, .bias = m.attention.output_bias});
  }

  void add_layer(TensorMap& map, const std::string& side, int64_t i, const ModelConfig& m) const {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = prefix_ + ours;
    const bool decoder = side == "decoder";
    add_attention(map, ours + "self_attention", theirs + "self_attn", m);
    map.add_module({.theirs = theirs + "norm1", .ours = {ours + "self_attention_norm"}});
    if (decoder) {
      add_attention(map, ours + "cross_attention", theirs + "multihead_attn", m);
      map.add_module({.theirs = theirs + "norm2", .ours = {ours + "cross_attention_norm"}});
    }
    map.add_module({.theirs = theirs + "linear1", .ours = {ours + "feed_forward.first"}});
    map.add_module({.theirs = theirs + "linear2", .ours = {ours + "feed_forward.second"}});
    map.add_module({.theirs = theirs + (decoder ? "norm3" : "norm2"), .ours = {ours + "feed_forward_norm"}});
  }

  const ForeignTensors& tensors_;
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
    fail("a state dictionary has no vocabulary: source_vocabulary or source_tokenizer must name one");
  if (list.empty()) return Tokenizer::load(model);
  const std::string text = read_file(list, kMaxList, Accepts::unnamed_pipe);
  std::vector<std::string> pieces =
      list.ends_with(".json") ? pieces_from_json(text, list) : pieces_from_lines(text, list);
  const auto splitter = choose_splitter(is_source, options, [] { return std::optional<SentencePieceFile>(); });
  return Tokenizer::with_pieces(splitter, std::move(pieces), unknown, list);
}

}  // namespace

ImportedModel read_torch(const std::string& path, const ImportOptions& options) {
  const auto file = std::make_shared<const Shards>(path);
  ForeignTensors tensors(path, file->views());
  const TorchReader reader(tensors, options.torch);
  const ModelConfig config = reader.config();
  map_tensors(tensors, reader.tensors(config));

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
