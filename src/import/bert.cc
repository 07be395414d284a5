// Encoders of BERT's family in the Hugging Face layout: config.json and safetensors with the names of transformers'
// BertModel, RobertaModel (XLM-R's, too) and DistilBertModel, alone or inside a model with a head.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "import/config_fields.h"
#include "import/imported_model.h"
#include "import/marian_config.h"
#include "import/sentence_transformers.h"
#include "import/settings.h"
#include "import/shards.h"
#include "import/vocabulary_files.h"
#include "text/vocabulary.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int64_t kMaxBertPositions = 1 << 20;

// The words of one of them.
struct Family {
  const char *kind, *prefix;  // in the report; before the tensors' names in a model with a head
  bool token_types;           // whether tokens have types; all of a text have the first one
  bool after_padding;         // positions begin at pad_token_id + 1
  // Members of config.json.
  const char *layers, *width, *heads, *ffn, *activation, *dropout, *attention_dropout;
  // Tensors of a layer.
  const char *layer, *q, *k, *v, *output, *attention_norm, *first, *second, *norm;
  const char *start, *end, *unknown;  // tokens
};

constexpr Family kBert = {.kind = "BERT",
                          .prefix = "bert.",
                          .token_types = true,
                          .after_padding = false,
                          .layers = "num_hidden_layers",
                          .width = "hidden_size",
                          .heads = "num_attention_heads",
                          .ffn = "intermediate_size",
                          .activation = "hidden_act",
                          .dropout = "hidden_dropout_prob",
                          .attention_dropout = "attention_probs_dropout_prob",
                          .layer = "encoder.layer.",
                          .q = "attention.self.query",
                          .k = "attention.self.key",
                          .v = "attention.self.value",
                          .output = "attention.output.dense",
                          .attention_norm = "attention.output.LayerNorm",
                          .first = "intermediate.dense",
                          .second = "output.dense",
                          .norm = "output.LayerNorm",
                          .start = "[CLS]",
                          .end = "[SEP]",
                          .unknown = "[UNK]"};

constexpr Family roberta() {
  Family f = kBert;
  f.kind = "RoBERTa";
  f.prefix = "roberta.";
  f.after_padding = true;
  f.start = "<s>";
  f.end = "</s>";
  f.unknown = "<unk>";
  return f;
}

constexpr Family distilbert() {
  Family f = kBert;
  f.kind = "DistilBERT";
  f.prefix = "distilbert.";
  f.token_types = false;
  f.layers = "n_layers";
  f.width = "dim";
  f.heads = "n_heads";
  f.ffn = "hidden_dim";
  f.activation = "activation";
  f.dropout = "dropout";
  f.attention_dropout = "attention_dropout";
  f.layer = "transformer.layer.";
  f.q = "attention.q_lin";
  f.k = "attention.k_lin";
  f.v = "attention.v_lin";
  f.output = "attention.out_lin";
  f.attention_norm = "sa_layer_norm";
  f.first = "ffn.lin1";
  f.second = "ffn.lin2";
  f.norm = "output_layer_norm";
  return f;
}

Family family_of(const Settings& s) {
  const std::string type = s.text("model_type");
  if (type == "roberta" || type == "xlm-roberta") return roberta();
  return type == "distilbert" ? distilbert() : kBert;
}

// The row of the table of positions that the first token of a text has.
int64_t first_position(const Settings& s, const Family& family) {
  if (!family.after_padding) return 0;
  const int64_t padding = s.integer("pad_token_id", 1);
  if (padding < 0 || padding > kMaxBertPositions)
    fail("{}: pad_token_id is {}, wanted 0 to {}", s.where(), padding, kMaxBertPositions);
  return padding + 1;
}

void refuse_others(const Settings& s) {
  for (const char* member : {"is_decoder", "add_cross_attention"})
    if (s.flag(member, false)) fail("{}: {} is true, wanted an encoder", s.where(), member);
  const std::string positions = s.text("position_embedding_type", "absolute");
  if (positions != "absolute")
    fail("{}: position_embedding_type is {}, wanted absolute", s.where(), excerpt(positions));
}

ModelConfig config_of(const Settings& s, const Family& family) {
  refuse_others(s);
  ModelConfig m;
  m.decoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = m.tied_output = false;
  m.source_vocab = s.integer("vocab_size");
  m.encoder_layers = s.integer(family.layers);
  m.d_model = s.integer(family.width);
  m.attention.heads = s.integer(family.heads);
  if (m.attention.heads < 1 || m.d_model % m.attention.heads != 0)
    fail("{}: {} is {} and {} is {}, wanted a divisor of it", s.where(), family.heads, m.attention.heads, family.width,
         m.d_model);
  m.attention.key_width = m.attention.value_width = m.d_model / m.attention.heads;
  m.ffn = s.integer(family.ffn);
  m.activation = activation_of(s, family.activation, "gelu");
  m.positions = Positions::learned;
  m.embedding_norm = true;
  m.norm.epsilon = s.number("layer_norm_eps", 1e-12);
  const int64_t rows = s.integer("max_position_embeddings"), first = first_position(s, family);
  if (rows <= first || rows > kMaxBertPositions)
    fail("{}: max_position_embeddings is {}, wanted {} to {}", s.where(), rows, first + 1, kMaxBertPositions);
  m.max_length = rows - first;
  m.dropout.residual = s.number(family.dropout, 0.1);
  m.dropout.attention = s.number(family.attention_dropout, 0.1);
  return m;
}

// The files, and what they do not hold as it is used.
struct Held {
  explicit Held(const ModelFiles& files) : shards(files) {}

  Shards shards;
  std::vector<float> positions;  // [max_length, d]
};

// Positions from `first` on, and to each of them the first row of the types: tokens are of no other type here, so that
// a sum in float32 that does not depend on them can be done once.
TensorView sum_positions(const ForeignTensors& tensors, const std::string& table, const std::string& types,
                         int64_t first, int64_t wanted, std::vector<float>& to) {
  const std::vector<int64_t> shape = tensors.shape(table, 2);
  const int64_t rows = shape[0] - first, d = shape[1];
  if (rows != wanted)
    fail("{}: {} rows, config.json says {}", in_file(tensors.path(), table), shape[0], wanted + first);
  ForeignTensors parts = tensors;
  parts.use("positions", table, {first, shape[0]});
  if (!types.empty()) {
    if (tensors.shape(types, 2)[1] != d)
      fail("{}: {} columns, the positions have {}", in_file(tensors.path(), types), tensors.shape(types, 2)[1], d);
    parts.use("types", types, {0, 1});
  }
  const Origins origins = parts.take();
  to.resize(static_cast<size_t>(rows * d));
  read_floats(origins.at("positions"), tensors.path(), to);
  if (!types.empty()) {
    std::vector<float> type(static_cast<size_t>(d));
    read_floats(origins.at("types"), tensors.path(), type);
    for (size_t i = 0; i < to.size(); i++) to[i] += type[i % type.size()];
  }
  return f32_tensor({rows, d}, to);
}

// Which tensor becomes which parameter.
class BertTensors {
 public:
  BertTensors(std::string path, Held& held, const Family& family, const ModelConfig& config, int64_t first_position)
      : family_(family), config_(config), tensors_(std::move(path), held.shards.views()) {
    if (const std::string prefix = family.prefix; tensors_.has(prefix + kWords)) prefix_ = prefix;
    std::map<std::string, TensorView> views = tensors_.all();
    views[prefix_ + kPositions] =
        sum_positions(tensors_, prefix_ + kPositions, family.token_types ? prefix_ + kTypes : "", first_position,
                      config.max_length, held.positions);
    tensors_ = ForeignTensors(tensors_.path(), std::move(views));
  }

  Origins use_all() {
    tensors_.use("source_embedding.weight", prefix_ + kWords);
    tensors_.use("encoder.positions.weight", prefix_ + kPositions);
    use("encoder.embedding_norm", "embeddings.LayerNorm");
    for (int64_t i = 0; i < config_.encoder_layers; i++)
      use_layer(fmt::format("encoder.layers.{}.", i), fmt::format("{}{}.", family_.layer, i));
    for (const char* name : {kTypes, "embeddings.position_ids", "embeddings.token_type_ids"})
      tensors_.let_go(prefix_ + name);
    let_heads_go();
    tensors_.refuse_others();
    return tensors_.take();
  }
  const std::set<std::string>& heads() const { return heads_; }  // that were left out

 private:
  static constexpr const char* kWords = "embeddings.word_embeddings.weight";
  static constexpr const char* kPositions = "embeddings.position_embeddings.weight";
  static constexpr const char* kTypes = "embeddings.token_type_embeddings.weight";

  // A weight and a bias, which norms of old files call gamma and beta.
  void use(const std::string& ours, const std::string& theirs) {
    for (const auto& [name, old] : {std::pair{".weight", ".gamma"}, {".bias", ".beta"}}) {
      const std::string stem = prefix_ + theirs;
      tensors_.use(ours + name, stem + (tensors_.has(stem + old) ? old : name));
    }
  }

  void use_layer(const std::string& ours, const std::string& theirs) {
    for (const auto& [our, their] : {std::pair{"self_attention.q", family_.q},
                                     {"self_attention.k", family_.k},
                                     {"self_attention.v", family_.v},
                                     {"self_attention.output", family_.output},
                                     {"self_attention_norm", family_.attention_norm},
                                     {"feed_forward.first", family_.first},
                                     {"feed_forward.second", family_.second},
                                     {"feed_forward_norm", family_.norm}})
      use(ours + our, theirs + their);
  }

  // What stands behind the last hidden states, none of which depends on it.
  void let_heads_go() {
    for (const auto& [name, tensor] : tensors_.all()) {
      const std::string inner = name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
      const std::string head = inner.substr(0, inner.find('.'));
      for (const char* known : {"pooler", "cls", "classifier", "lm_head", "qa_outputs", "pre_classifier",
                                "vocab_transform", "vocab_layer_norm", "vocab_projector"})
        if (head == known) {
          tensors_.let_go(name);
          heads_.insert(head);
        }
    }
  }

  const Family& family_;
  const ModelConfig& config_;
  ForeignTensors tensors_;
  std::string prefix_;
  std::set<std::string> heads_;
};

void read_tokens(const ModelFiles& files, const Family& family, const ImportOptions& options, EmbeddingConfig& config) {
  const Settings s = read_tokenizer_config(files);
  const auto token = [&](const char* name, const char* otherwise) {
    return s.find(name) ? token_of(s, name) : otherwise;
  };
  config.start = options.source_start.value_or(token("cls_token", family.start));
  config.end = options.source_end.value_or(token("sep_token", family.end));
  config.unknown = options.unknown.value_or(token("unk_token", family.unknown));
}

// The pieces of a SentencePiece model by the ids of fairseq, which XLM-R has: four tokens of its own, those of the
// model but its first three, and the mask.
std::vector<std::string> fairseq_pieces(const Tokenizer& tokenizer, const std::string& where) {
  constexpr const char* kFirst[] = {"<unk>", "<s>", "</s>"};
  for (int32_t id = 0; id < 3; id++)
    if (tokenizer.size() <= id || tokenizer.piece(id) != kFirst[id])
      fail("{}: wanted the piece {} at {}", where, kFirst[id], id);
  std::vector<std::string> pieces = {"<s>", "<pad>", "</s>", "<unk>"};
  for (int32_t id = 3; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  pieces.push_back("<mask>");
  return pieces;
}

// A list of tokens, to split text at spaces.
std::vector<std::string> listed_pieces(const ModelFiles& files) {
  if (files.has("vocab.txt")) return pieces_from_lines(files.open_small("vocab.txt")->text(), files.path("vocab.txt"));
  if (files.has("vocab.json")) return parse_piece_ids(files.open_small("vocab.json")->text(), files.path("vocab.json"));
  fail("{}: holds neither vocab.txt nor vocab.json, wanted a list of tokens", files.path());
}

TextCodec read_codec(const ModelFiles& files, const ImportOptions& options, const Settings& config,
                     const std::string& unknown) {
  constexpr const char* kFairseq = "sentencepiece.bpe.model";
  if (options.tokens)
    return TextCodec::of_pieces(Tokenizer::with_pieces({}, listed_pieces(files), unknown, files.path()));
  if (files.has(kFairseq)) {
    const SentencePieceFile splitter = SentencePieceFile::read(files.path(kFairseq));
    std::vector<std::string> pieces =
        fairseq_pieces(Tokenizer::from_serialized(splitter.bytes, splitter.where), splitter.where);
    return TextCodec::of_pieces(Tokenizer::with_pieces(splitter, std::move(pieces), unknown, splitter.where));
  }
  return read_text_codec(files, config);
}

}  // namespace

ImportedModel read_bert(const ModelFiles& files, const ImportOptions& options) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  const Family family = family_of(settings);
  const ModelConfig config = config_of(settings, family);
  EmbeddingConfig embedding;
  read_tokens(files, family, options, embedding);
  TextCodec codec = read_codec(files, options, settings, embedding.unknown);
  embedding.unit = codec.unit();
  read_sentence_transformers(files, embedding);
  embedding.max_length = std::min(embedding.max_length, config.max_length);

  const auto held = std::make_shared<Held>(files);
  const std::string path = files.path("model.safetensors");
  BertTensors tensors(path, *held, family, config, first_position(settings, family));
  Origins origins = tensors.use_all();
  std::vector<std::string> notes;
  if (!tensors.heads().empty())
    notes.push_back(fmt::format("left out: {}; no hidden state depends on them", fmt::join(tensors.heads(), ", ")));
  return {family.kind,        path, config,          EncoderText{std::move(embedding), std::move(codec)},
          std::move(origins), held, std::move(notes)};
}

}  // namespace qkv
