// Seeds of the importers: a small model with the tensor names of other projects.
#include <zip.h>

#include <memory>

#include "core/to_size.h"
#include "export/weights_out.h"
#include "fuzz/decoder.h"
#include "fuzz/seeds.h"
#include "fuzz/small_adapter.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/foreign_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hostile_checkpoints.h"
#include "tests/support/npz_writer.h"

namespace qkv::fuzz {
namespace {

using testing::CTranslate2Writer;

std::string ctranslate2(const Transformer<float>& model, uint32_t version, uint32_t revision,
                        CTranslate2Writer::Type type) {
  CTranslate2Writer writer(version, revision);
  const testing::ForeignModel tensors = testing::as_ctranslate2(model);
  for (const auto& tensor : tensors) writer.add(tensor, type);
  for (const std::string side : {"encoder/", "decoder/"}) {
    writer.add_attribute(side + "num_heads", int16_t{2});
    writer.add_attribute(side + "pre_norm", int8_t{0});
    writer.add_attribute(side + "activation", int8_t{2});
  }
  writer.add_attribute("with_target_bos", int8_t{0});
  for (const char* name : {"encoder/embeddings_0/weight", "decoder/projection/weight"}) {
    testing::ForeignTensor copy = tensors.front();
    copy.name = name;
    if (version < 3)
      writer.add(copy, type);
    else
      writer.add_alias(name, tensors.front().name);
  }
  return writer.bytes();
}

std::unique_ptr<Transformer<float>> random_model(const ModelConfig& config) {
  auto model = std::make_unique<Transformer<float>>(config);
  testing::randomize(model->parameters(), 1);
  return model;
}

using Names = std::vector<std::pair<const char*, const char*>>;  // a part of ours, of theirs

// The tensors of a model, with parts of their names replaced.
testing::ForeignModel renamed(const Transformer<float>& model, const Names& names) {
  testing::ForeignModel tensors;
  for (const auto& p : model.parameters().all()) {
    std::string name = p.name;
    for (const auto& [ours, theirs] : names)
      if (const size_t at = name.find(ours); at != std::string::npos)
        name.replace(at, std::string_view(ours).size(), theirs);
    tensors.push_back({name, p.shape, std::vector<float>(p.value, p.value + p.size())});
  }
  return tensors;
}

// The tensors by the names of BertModel, with two token types.
testing::ForeignModel as_bert(const Transformer<float>& model) {
  testing::ForeignModel tensors = renamed(model, {{"source_embedding.", "embeddings.word_embeddings."},
                                                  {"encoder.positions.", "embeddings.position_embeddings."},
                                                  {"encoder.embedding_norm.", "embeddings.LayerNorm."},
                                                  {"encoder.layers.", "encoder.layer."},
                                                  {"self_attention_norm", "attention.output.LayerNorm"},
                                                  {"feed_forward_norm", "output.LayerNorm"},
                                                  {"self_attention.output", "attention.output.dense"},
                                                  {"self_attention.q", "attention.self.query"},
                                                  {"self_attention.k", "attention.self.key"},
                                                  {"self_attention.v", "attention.self.value"},
                                                  {"feed_forward.first", "intermediate.dense"},
                                                  {"feed_forward.second", "output.dense"}});
  const int64_t d = model.config().d_model;
  tensors.push_back({"embeddings.token_type_embeddings.weight", {2, d}, std::vector<float>(to_size(2 * d), 1)});
  return tensors;
}

ModelConfig bert_config() {
  ModelConfig c;
  c.decoder_layers = 0;
  c.shared_embeddings = c.scale_embeddings = c.tied_output = false;
  c.source_vocab = 8;
  c.encoder_layers = 1;
  make_narrow(c);
  c.embedding_norm = true;
  c.positions = Positions::learned;
  return c;
}

void add_decoder(const std::filesystem::path& directory, const std::string& type) {
  Seeds seeds(directory, type);
  const auto model = random_model(small_decoder(type));
  const ModelClass model_class = choose_class(model->config(), "seed");
  for (const ExportType as : {ExportType::float32, ExportType::bfloat16, ExportType::float16})
    write_tensors(seeds.path(), *model, model_class, as);
}

// A Llama with a tokenizer of SentencePiece, and one with byte-level BPE and a quantized tensor.
void add_gguf(const std::filesystem::path& directory) {
  Seeds seeds(directory, "gguf");
  testing::GgufWriter pieces, bytes;
  testing::add_small_llama(pieces, testing::kSmallPieces);
  testing::add_small_pieces(pieces);
  seeds.add(pieces.bytes());

  std::vector<std::string> tokens = testing::pieces_of_bytes();
  std::vector<int32_t> types(258, 1);
  tokens.push_back("ab");
  tokens.push_back("<|end|>");
  types.back() = 3;
  bytes.add("tokenizer.ggml.model", "gpt2");
  bytes.add("tokenizer.ggml.pre", "llama-bpe");
  bytes.add("tokenizer.ggml.tokens", tokens);
  bytes.add("tokenizer.ggml.token_type", types);
  bytes.add("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  bytes.add("tokenizer.ggml.bos_token_id", uint32_t{257});
  bytes.add("tokenizer.ggml.eos_token_id", uint32_t{257});
  testing::add_small_llama(bytes, tokens.size());
  bytes.add_tensor("rope_freqs.weight", {1}, {1.0f});
  seeds.add(bytes.bytes());

  testing::GgufWriter blocks;
  blocks.add("general.architecture", "llama");
  for (const auto& [type, size] : {std::pair{2u, 18u}, {8u, 34u}, {12u, 144u}, {14u, 210u}})
    blocks.add_tensor("t" + std::to_string(type), type, {1, type < 12 ? 32u : 256u}, std::string(size, 'x'));
  seeds.add(blocks.bytes());
}

// Marian models with one layer on each side: post-norm with tied tables, and pre-norm without.
void add_npz(const std::filesystem::path& directory) {
  Seeds seeds(directory, "npz");
  for (const bool pre : {false, true}) {
    testing::NpzWriter npz;
    const auto add = [&](const std::string& name, int64_t rows, int64_t cols) {
      std::string numbers;
      for (int64_t i = 0; i < rows * cols; i++) numbers += testing::number_bytes(static_cast<float>(i % 5) / 4);
      npz.add(name + ".npy", testing::npy("<f4", fmt::format("{}, {}", rows, cols), numbers));
    };
    const auto add_norm = [&](const std::string& prefix, const std::string& ending) {
      add(prefix + "_ln_scale" + ending, 1, 4);
      add(prefix + "_ln_bias" + ending, 1, 4);
    };
    const std::string ending = pre ? "_pre" : "";
    for (const char* table : {"encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_Wt"})
      if (pre) add(table, 4, 4);
    if (!pre) add("Wemb", 4, 4);
    add("decoder_ff_logit_out_b", 1, 4);
    for (const std::string part : {"encoder_l1_self", "decoder_l1_self", "decoder_l1_context"}) {
      for (const char* matrix : {"q", "k", "v", "o"}) add(part + "_W" + matrix, 4, 4), add(part + "_b" + matrix, 1, 4);
      add_norm(part + "_Wo", ending);
    }
    for (const std::string side : {"encoder", "decoder"}) {
      for (const char* layer : {"1", "2"}) add(side + "_l1_ffn_W" + layer, 4, 4), add(side + "_l1_ffn_b" + layer, 1, 4);
      add_norm(side + "_l1_ffn_ffn", ending);
      if (pre) add_norm(side + "_top", "");
    }
    std::string config =
        "type: transformer\nenc-depth: 1\ndec-depth: 1\ndim-emb: 4\ntransformer-heads: 2\ntransformer-dim-ffn: 4\n"
        "transformer-tied-layers:\n  []\n";
    config += pre ? "transformer-preprocess: n\ntransformer-postprocess: da\ntransformer-postprocess-top: n\n"
                  : "tied-embeddings-all: true\ntransformer-ffn-activation: relu\n";
    npz.add("special:model.yml.npy", testing::npy("|i1", fmt::format("{},", config.size()), config));
    seeds.add(npz.bytes());
    seeds.add(config);
  }
  seeds.add("\"</s>\": 0\n<unk>: 1\n'a': 2\n? b\n: 3\n# comment\n");
}

void adapter_seeds(const std::filesystem::path& directory) {
  Seeds seeds(directory, "adapter");
  const testing::TempDir folder;
  const RunDirectory base(folder / "base"), run(folder / "run");
  for (const RunDirectory& one : {base, run}) std::filesystem::create_directory(one.root());
  save_base(base);
  save_small_adapter(run, small_adapter(base));
  for (const std::string& file : {run.base(), run.adapter_config(), run.adapter_weights()})
    seeds.add(testing::slurp(file));
}

// Files that torch would write, and short ones that are refused: they have the opcodes to begin with.
void checkpoint_seeds(const std::filesystem::path& directory) {
  Seeds seeds(directory, "pickle");
  const std::vector<float> values(12, 1);
  const std::vector<NamedTensor> tensors = {{"w", f32_tensor({3, 4}, values)},
                                            {"b", f32_tensor({4}, std::span(values).first(4))}};
  seeds.add(testing::pickled::zip_checkpoint(tensors));
  seeds.add(testing::pickled::old_checkpoint(tensors));
  for (const testing::HostileCheckpoint& file : testing::hostile_checkpoints())
    if (file.bytes.size() < 1000) seeds.add(file.bytes);
}

}  // namespace

void import_seeds(const std::filesystem::path& directory) {
  checkpoint_seeds(directory);
  adapter_seeds(directory);
  ModelConfig config = small_foreign();
  const auto model = random_model(config);
  Seeds marian(directory, "marian"), torch(directory, "torch"), bins(directory, "ctranslate2"),
      packages(directory, "argos"), settings(directory, "settings");
  testing::write_foreign(marian.path(), testing::as_marian(*model));
  for (const char* type : {"gpt2", "gpt_neox", "llama"}) add_decoder(directory, type);
  add_gguf(directory);
  add_npz(directory);
  Seeds bert(directory, "bert");
  testing::write_foreign(bert.path(), as_bert(*random_model(bert_config())));

  ModelConfig untied = config;
  untied.tied_output = false;
  const auto state = random_model(untied);
  testing::ForeignModel tensors = testing::as_torch(*state);
  testing::write_foreign(torch.path(), tensors);
  tensors.push_back({"positions", {1, 2, untied.d_model}, std::vector<float>(to_size(2 * untied.d_model))});
  testing::write_foreign(torch.path(), tensors);

  config.positions = Positions::closed_halves;
  config.max_length = 1024;
  const auto other = random_model(config);
  bins.add(ctranslate2(*other, 6, 7, CTranslate2Writer::f32));
  bins.add(ctranslate2(*other, 6, 7, CTranslate2Writer::i8));
  bins.add(ctranslate2(*other, 5, 5, CTranslate2Writer::f16));
  bins.add(ctranslate2(*other, 4, 3, CTranslate2Writer::bf16));
  bins.add(ctranslate2(*other, 2, 2, CTranslate2Writer::i16));

  zip_t* archive = zip_open(packages.path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  const std::pair<std::string, std::string> files[] = {
      {"en_de/metadata.json", R"({"from_code": "en", "to_code": "de"})"},
      {"en_de/model/model.bin", ctranslate2(*other, 6, 7, CTranslate2Writer::i8)},
      {"en_de/model/config.json", R"({"add_source_eos": true, "decoder_start_token": "</s>"})"},
      {"en_de/model/shared_vocabulary.json", kPieceList}};
  for (const auto& [name, content] : files)
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, content.data(), content.size(), 0), 0);
  zip_close(archive);

  settings.add(kPieceList);
  settings.add("</s>\n<unk>\na\n");
  settings.add(R"({"</s>": 0, "<unk>": 1, "a": 2})");
  settings.add(R"({"added_tokens_decoder": {"5": {"content": "<s>", "lstrip": true, "special": true}}})");
  settings.add(R"({"bad_words_ids": [[6]]})");
  settings.add(kMarianConfig);

  Seeds hub(directory, "hub");
  hub.add(R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [{"rfilename": "config.json"},
      {"rfilename": "1_Pooling/config.json"}, {"rfilename": "model.safetensors"}, {"rfilename": "source.spm"}]})");
  hub.add(R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  hub.add(R"([{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}])");
  hub.add("owner/name/model.gguf@refs/pr/1");
  hub.add("W/\"0123456789abcdef\"");
}

}  // namespace qkv::fuzz
