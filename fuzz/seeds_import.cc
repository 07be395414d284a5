// Seeds of the importers: a small model with the tensor names of other projects.
#include <zip.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "convert/architecture.h"
#include "convert/export/weights_out.h"
#include "core/to_size.h"
#include "fuzz/decoder.h"
#include "fuzz/seeds.h"
#include "fuzz/small_adapter.h"
#include "tests/support/foreign_models.h"
#include "tests/support/hostile_checkpoints.h"
#include "tests/support/npz_writer.h"
#include "tests/support/rewrite_tensors.h"

namespace qkv::fuzz {
namespace {

using testing::CTranslate2Writer;

// `more` adds further attributes and tensors.
std::string ctranslate2(
    const Transformer<float>& model, uint32_t version, uint32_t revision, CTranslate2Writer::Type type,
    float activation = 2, const std::function<void(CTranslate2Writer&)>& more = [](CTranslate2Writer&) {}) {
  CTranslate2Writer writer(version, revision);
  const testing::ForeignModel tensors = testing::as_ctranslate2(model);
  for (const auto& tensor : tensors) writer.add(tensor, type);
  for (const std::string side : {"encoder/", "decoder/"}) {
    writer.add_attribute(side + "num_heads", int16_t{2});
    writer.add_attribute(side + "pre_norm", int8_t{0});
    writer.add_attribute(side + "activation", activation);
  }
  more(writer);
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
    write_tensors(seeds.path(), RunDirectory("seed"), *model, model_class, as);
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
  const std::string type = "type: transformer\n", layers = type + "enc-depth: 1\ndec-depth: 1\ntransformer-heads: 2\n",
                    width = layers + "dim-emb: 4\ntransformer-dim-ffn: 4\n";
  for (const std::string& refused :
       {type + "enc-depth: 5000\n", layers + "dim-emb: 3\n", width + "transformer-ffn-activation: gelu\n",
        width + "transformer-preprocess: x\n", width + "transformer-postprocess-top: a\n"}) {
    testing::NpzWriter npz;
    npz.add("special:model.yml.npy", testing::npy("|i1", fmt::format("{},", refused.size()), refused));
    seeds.add(npz.bytes());
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
  // Names as of a model with a head, and of a module that the base lacks.
  const std::string part = "model.decoder";
  for (const char* other : {"model.model.decoder", "model.elsewhere"}) {
    const std::string path = seeds.path();
    std::filesystem::copy_file(run.adapter_weights(), path, std::filesystem::copy_options::overwrite_existing);
    testing::rewrite_tensors(path, [&](auto& tensors) {
      for (testing::Tensor& tensor : tensors)
        if (const size_t at = tensor.name.find(part); at != std::string::npos)
          tensor.name.replace(at, part.size(), other);
    });
  }
  seeds.add(R"({"peft_type": "IA3", "lora_alpha": 1})");
  seeds.add(R"({"peft_type": "LORA", "bias": "all"})");
}

// Files that torch would write, and short ones that are refused: they have the opcodes to begin with.
void checkpoint_seeds(const std::filesystem::path& directory) {
  Seeds seeds(directory, "pickle");
  const std::vector<float> values(12, 1);
  const std::vector<NamedTensor> tensors = {{"w", f32_tensor({3, 4}, values)},
                                            {"b", f32_tensor({4}, std::span(values).first(4))}};
  seeds.add(testing::pickled::zip_checkpoint(tensors));
  seeds.add(testing::pickled::old_checkpoint(tensors));
  using namespace testing::pickled;
  const auto six = [](const std::string& value) {
    return std::vector<Member>{{"m/data.pkl", file(dictionary({{"w", value}}))}, {"m/data/0", std::string(24, '\1')}};
  };
  const std::string columns = tensor(storage("0", 6), 0, {2, 3}, {1, 2}), rows = tensor(storage("0", 6), 0, {6}, {1});
  seeds.add(zip(six(columns)));
  seeds.add(zip64(six(rows)));
  seeds.add(zip(six(call(global("torch._utils", "_rebuild_parameter"), {rows, kNo, ordered()}))));
  for (const testing::HostileCheckpoint& file : testing::hostile_checkpoints())
    if (file.bytes.size() < 1000) seeds.add(file.bytes);
}

// The config.json of every architecture that is exported, with a layer on each side, and of a T5.
void add_configurations(Seeds& seeds) {
  seeds.add(R"({"model_type": "t5", "vocab_size": 8, "num_layers": 1, "num_decoder_layers": 1, "d_model": 4,
    "num_heads": 2, "d_kv": 2, "d_ff": 4, "feed_forward_proj": "gated-gelu"})");
  for (const Architecture* architecture : all_architectures()) {
    if (!architecture->widen) continue;
    ModelConfig c = architecture->base;
    c.source_vocab = c.target_vocab = 8;
    c.encoder_layers = std::min<int64_t>(c.encoder_layers, 1);
    c.decoder_layers = std::min<int64_t>(c.decoder_layers, 1);
    make_narrow(c);
    nlohmann::json config = write_config(*architecture, c, {{"pad_token_id", 1}}, "seed");
    seeds.add(config.dump());
    config["tie_word_embeddings"] = !c.tied_output;
    config["position_embedding_type"] = "relative_key";
    config["pad_token_id"] = -1;
    config["decoder_ffn_dim"] = 3;
    seeds.add(config.dump());
  }
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
  for (const auto& tensor : testing::as_torch(*state))
    tensors.push_back({"other." + tensor.name, tensor.shape, tensor.values});
  testing::write_foreign(torch.path(), tensors);

  config.positions = Positions::closed_halves;
  config.max_length = 1024;
  const auto other = random_model(config);
  bins.add(ctranslate2(*other, 6, 7, CTranslate2Writer::f32));
  bins.add(ctranslate2(*other, 6, 7, CTranslate2Writer::i8));
  bins.add(ctranslate2(*other, 5, 5, CTranslate2Writer::f16));
  bins.add(ctranslate2(*other, 4, 3, CTranslate2Writer::bf16));
  bins.add(ctranslate2(*other, 2, 2, CTranslate2Writer::i16));
  for (const float activation : {0.0f, 1.0f, 3.0f, 9.0f, 1e9f})
    bins.add(ctranslate2(*other, 6, 7, CTranslate2Writer::f32, activation));
  for (const float scale : {1.0f, 2.0f, 3.0f})
    bins.add(ctranslate2(*other, 6, 7, CTranslate2Writer::f32, 2, [&](CTranslate2Writer& writer) {
      for (const std::string side : {"encoder", "decoder"}) writer.add_attribute(side + "/scale_embeddings", scale);
    }));
  // An attribute that is a text, one that should be, and one that should be a number.
  const auto with_raw = [&](const char* name, CTranslate2Writer::Type type, int64_t size) {
    bins.add(ctranslate2(*other, 4, 3, CTranslate2Writer::f32, 2,
                         [&](CTranslate2Writer& writer) { writer.add_raw(name, {size}, type, "<unk>   "); }));
  };
  with_raw("unk_token", CTranslate2Writer::i8, 8);
  with_raw("unk_token", CTranslate2Writer::f32, 2);
  with_raw("decoder/start_from_zero_embedding", CTranslate2Writer::i8, 8);
  bins.add(ctranslate2(*other, 6, 7, CTranslate2Writer::f32, 2, [&](CTranslate2Writer& writer) {
    const std::vector<float> table(to_size(32 * config.d_model), 0.5f);
    for (const std::string side : {"encoder", "decoder"})
      writer.add({side + "/position_encodings/encodings", {32, config.d_model}, table}, CTranslate2Writer::f32);
  }));

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
  add_configurations(settings);
  for (const char* refused : {R"({"a": null})", R"({"a": -1})", R"({"a": {"b": 1}})", "[null]", "[[1]]", "[true]"})
    settings.add(refused);

  Seeds hub(directory, "hub");
  hub.add(R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [{"rfilename": "config.json"},
      {"rfilename": "1_Pooling/config.json"}, {"rfilename": "model.safetensors"}, {"rfilename": "source.spm"}]})");
  hub.add(R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [{"rfilename": "a.gguf"},
      {"rfilename": "b.gguf"}]})");
  hub.add(R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [{"rfilename": "a.gguf"}]})");
  hub.add(R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  hub.add(R"([{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}])");
  hub.add("owner/name/model.gguf@refs/pr/1");
  hub.add("W/\"0123456789abcdef\"");
}

}  // namespace qkv::fuzz
