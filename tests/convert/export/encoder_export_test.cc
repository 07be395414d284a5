// Exported encoders, embedders and classifiers are read back as the same models; what no class can express is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "io/weights/weights.h"
#include "qkv/classifier.h"
#include "qkv/embedder.h"
#include "qkv/export.h"
#include "qkv/import.h"
#include "qkv/text.h"
#include "tests/support/bert_case.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::TempDir;

json parsed(const std::string& path) { return json::parse(testing::slurp(path)); }

// The model, which has no dropout.
ModelConfig model_of(const std::string& run) {
  ModelConfig model = read_config(RunDirectory(run)).model;
  model.dropout = {0, 0, 0};
  return model;
}

// A golden directory, and the class that it is written as.
struct EncoderExportCase {
  const char* source;
  const char* model_class;
  bool lists_tokens = false;  // whether text is split at spaces
};
void PrintTo(const EncoderExportCase& c, std::ostream* out) { *out << c.source; }

class EncoderRoundTrip : public ::testing::TestWithParam<EncoderExportCase> {
 protected:
  // Imports, exports and imports again, and expects the same weights.
  void go() const {
    const EncoderExportCase& c = GetParam();
    const std::string source = std::string(QKV_GOLDEN_DIR "/") + c.source;
    import_model(source, run(), c.lists_tokens ? testing::listed_tokens() : ImportOptions());
    export_model(run(), out());
    EXPECT_EQ(parsed(out() + "/config.json")["architectures"], json({c.model_class}));
    const ImportReport report = import_model(out(), again());
    EXPECT_EQ(report.notes, std::vector<std::string>());
    EXPECT_EQ(model_of(again()), model_of(run()));
    for (const char* file : {"/model.safetensors", "/dense.safetensors", "/classifier.safetensors"}) {
      ASSERT_EQ(std::filesystem::exists(run() + file), std::filesystem::exists(again() + file));
      if (!std::filesystem::exists(run() + file)) continue;
      EXPECT_EQ(testing::slurp(again() + file), testing::slurp(run() + file));
    }
  }
  // Texts whose tokens and lengths differ.
  std::vector<std::string> texts() const {
    if (GetParam().lists_tokens) return testing::BertCase::texts();
    return {"a b c", "The end of the caf\u00e9.", "A zzz, b  a", "Who is it?", "x"};
  }

  std::string run() const { return directory_ / "run"; }
  std::string out() const { return directory_ / "out"; }
  std::string again() const { return directory_ / "again"; }

  TempDir directory_;
};

class EmbedderRoundTrip : public EncoderRoundTrip {};

TEST_P(EmbedderRoundTrip, KeepsWeightsAndVectors) {
  go();
  const Embedder ours(run()), theirs(again());
  EXPECT_EQ(theirs.max_length(), ours.max_length());
  EXPECT_EQ(theirs.prompts(), ours.prompts());
  const std::vector<EmbedderTokens> wanted = ours.tokens(texts()), found = theirs.tokens(texts());
  for (size_t i = 0; i < wanted.size(); i++) EXPECT_EQ(found[i].ids, wanted[i].ids) << texts()[i];
  EXPECT_EQ(theirs.embed(texts()).values, ours.embed(texts()).values);
}

constexpr EncoderExportCase kEmbedders[] = {
    {"bert/sentence", "BertModel", true},
    {"bert/pretraining", "BertForMaskedLM", true},
    {"bert/roberta", "RobertaForMaskedLM", true},
    {"bert/distilbert", "BertForMaskedLM", true},
    {"bert/mpnet", "MPNetForMaskedLM", true},
    {"bert/modernbert", "ModernBertForMaskedLM", true},
    {"bert/electra", "ElectraModel", true},
    {"bert/albert", "AlbertForMaskedLM"},
    {"masked/electra", "ElectraForMaskedLM", true},
    {"masked/esm", "EsmForMaskedLM", true},
    {"sentence_transformers/mean3", "BertModel"},
    {"sentence_transformers/dense5", "BertModel"},
    {"sentence_transformers/dense6", "BertModel"},
    {"sentence_transformers/gte_6", "GteModel"},
    {"sentence_transformers/nomic_6", "NomicBertModel"},
    {"sentence_transformers/modernbert_6", "ModernBertModel"},
    {"sentence_transformers/qwen3_5", "Qwen3Model"},
    {"sentence_transformers/qwen3_6", "Qwen3Model"},
};

std::string name_of_case(const ::testing::TestParamInfo<EncoderExportCase>& info) {
  std::string name = info.param.source;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Of, EmbedderRoundTrip, ::testing::ValuesIn(kEmbedders), name_of_case);

class ClassifierRoundTrip : public EncoderRoundTrip {};

TEST_P(ClassifierRoundTrip, KeepsWeightsAndScores) {
  go();
  const Classifier ours(run()), theirs(again());
  EXPECT_EQ(theirs.labels(), ours.labels());
  EXPECT_EQ(theirs.scores(), ours.scores());
  EXPECT_EQ(theirs.max_length(), ours.max_length());
  std::vector<ClassifierInput> inputs;
  for (const std::string& text : texts()) {
    inputs.push_back({text});
    inputs.push_back({text, texts().front()});
  }
  ClassifyOptions all;
  all.top = 0;
  EXPECT_EQ(theirs.classify(inputs, all).texts, ours.classify(inputs, all).texts);
}

constexpr EncoderExportCase kClassifiers[] = {
    {"classify/albert", "AlbertForSequenceClassification"},
    {"classify/bert", "BertForSequenceClassification"},
    {"classify/cross", "BertForSequenceClassification"},
    {"classify/distilbert", "DistilBertForSequenceClassification"},
    {"classify/electra", "ElectraForSequenceClassification"},
    {"classify/modernbert", "ModernBertForSequenceClassification"},
    {"classify/mpnet", "MPNetForSequenceClassification"},
    {"classify/roberta", "RobertaForSequenceClassification"},
    {"sentence_transformers/cross5", "BertForSequenceClassification"},
    {"sentence_transformers/cross6", "BertForSequenceClassification"},
    {"sentence_transformers/labels6", "BertForSequenceClassification"},
};

INSTANTIATE_TEST_SUITE_P(Of, ClassifierRoundTrip, ::testing::ValuesIn(kClassifiers), name_of_case);

const std::vector<std::string> kLines = {"the cat sat on the mat", "a dog and a cat", "she said hello to the dog",
                                         "the end of the story", "Der Hund und die Katze"};

// A run as `qkv train encoder` writes it, with random weights.
class TrainedEncoder : public ::testing::Test {
 protected:
  static ModelConfig bert_shape() {
    ModelConfig m;
    m.decoder_layers = 0;
    m.encoder_layers = 2;
    m.shared_embeddings = m.scale_embeddings = false;
    m.d_model = 12;
    m.attention.heads = 3;
    m.attention.key_width = m.attention.value_width = 4;
    m.ffn = 20;
    m.activation = Activation::gelu;
    m.positions = Positions::learned;
    m.embedding_norm = true;
    m.norm.epsilon = 1e-12;
    m.token_head = TokenHead::dense;
    m.tied_output = m.output_bias = true;
    m.max_length = 24;
    return m;
  }
  static ModelConfig tiny_shape() {
    ModelConfig m = bert_shape();
    m.positions = Positions::rotary;
    m.embedding_norm = false;
    m.norm.position = NormPosition::pre;
    m.norm.final = true;
    m.norm.epsilon = 1e-5;
    return m;
  }
  static Tokenizer pieces(TokenizerKind kind) {
    return Tokenizer::train(kLines, {.kind = kind, .vocab_size = 60, .control = {"<mask>"}});
  }

  void write(ModelConfig model, const Tokenizer& tokenizer, EmbeddingConfig text = {}) const {
    std::filesystem::remove_all(run());
    std::filesystem::remove_all(out());
    model.source_vocab = tokenizer.size();
    text.start = "<s>", text.end = "</s>";
    Transformer<float> weights(model);
    testing::randomize(weights.parameters(), 1);
    create_run(RunDirectory(run()), EncoderRun{model, text, TextCodec::of_pieces(tokenizer)},
               [&](const RunDirectory& partial) {
                 save_weights(partial.model(), weights.parameters(), weights.parameters().values());
               });
  }
  std::string exported(const ModelConfig& model, const EmbeddingConfig& text = {}) const {
    write(model, pieces(TokenizerKind::unigram), text);
    return export_model(run(), out()).model_type;
  }
  std::string error_for(const std::function<void(ModelConfig&)>& change) const {
    ModelConfig model = bert_shape();
    change(model);
    write(model, pieces(TokenizerKind::unigram));
    const std::string text = error_of([&] { export_model(run(), out()); });
    EXPECT_FALSE(std::filesystem::exists(out()) || std::filesystem::exists(out() + ".partial"));
    return text.substr(std::min(text.size(), run().size() + 1));
  }
  // Imports the exported directory and expects the same weights, ids and vectors.
  void expect_same_when_read(const std::vector<std::string>& texts) const {
    std::filesystem::remove_all(directory_ / "again");
    import_model(out(), directory_ / "again");
    EXPECT_EQ(model_of(directory_ / "again"), model_of(run()));
    EXPECT_EQ(testing::slurp(directory_ / "again/model.safetensors"), testing::slurp(run() + "/model.safetensors"));
    const Embedder ours(run()), theirs(directory_ / "again");
    const std::vector<EmbedderTokens> wanted = ours.tokens(texts), found = theirs.tokens(texts);
    for (size_t i = 0; i < texts.size(); i++) EXPECT_EQ(found[i].ids, wanted[i].ids) << texts[i];
    EXPECT_EQ(theirs.embed(texts).values, ours.embed(texts).values);
  }

  std::string run() const { return directory_ / "run"; }
  std::string out() const { return directory_ / "out"; }
  TempDir directory_;
};

const std::vector<std::string> kOddTexts = {"the cat sat on the dog",
                                            "  The\tCAT   sat  ",
                                            "\u2460 \uff23at \ufb01sh caf\u00e9 cafe\u0301",
                                            "\u2603\u2603 a\u2603b \u2603",
                                            "a <mask> on</s> the <unk> mat<s>",
                                            "she said \u201chello\u201d \u2014 twice\u2026",
                                            "\u2581the\u2581end",
                                            "Hundundkatzeandadogandacat"};

TEST_F(TrainedEncoder, BecomesABertWithItsPieces) {
  EXPECT_EQ(exported(bert_shape()), "bert");
  expect_same_when_read(kOddTexts);
  const json config = parsed(out() + "/config.json"), tokenizer = parsed(out() + "/tokenizer_config.json");
  EXPECT_EQ(config["architectures"], json({"BertForMaskedLM"}));
  EXPECT_EQ(config["type_vocab_size"], 1);
  EXPECT_EQ(config["mask_token_id"], 3);
  EXPECT_EQ(config["pad_token_id"], 2);
  EXPECT_EQ(tokenizer["mask_token"], "<mask>");
  EXPECT_EQ(tokenizer["model_input_names"], json({"input_ids", "attention_mask"}));
  const Safetensors file = Safetensors::open(out() + "/model.safetensors");
  EXPECT_EQ(file.find("cls.predictions.decoder.weight"), nullptr);
  std::vector<float> types(12, 1);
  file.read("bert.embeddings.token_type_embeddings.weight", {1, 12}, types);
  EXPECT_EQ(types, std::vector<float>(12));
}

TEST_F(TrainedEncoder, BytePairsBecomeMerges) {
  write(bert_shape(), pieces(TokenizerKind::bpe));
  export_model(run(), out());
  EXPECT_EQ(parsed(out() + "/tokenizer.json")["model"]["type"], "BPE");
  expect_same_when_read(kOddTexts);
}

// Spaces stay as they are, and characters without a piece are bytes.
TEST_F(TrainedEncoder, ExactPiecesKeepTheirSpaces) {
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    write(bert_shape(),
          Tokenizer::train(kLines, {.kind = kind, .vocab_size = 320, .exact = true, .control = {"<mask>"}}));
    export_model(run(), out());
    expect_same_when_read({"the cat sat", "a  dog ", " and a  \u2603 cat", "on the mat <mask> the"});
  }
}

TEST_F(TrainedEncoder, KeepsHowTextIsRead) {
  EmbeddingConfig text;
  text.lowercase = text.strip_accents = text.plain_quotes = true;
  text.prefix = "the ";
  text.prompt_names = {"query"};
  text.prompts = {"on "};
  text.pooling = Pooling::weighted_mean;
  text.normalize = true;
  text.max_length = 9;
  exported(bert_shape(), text);
  import_model(out(), directory_ / "again");
  const Embedder ours(run()), theirs(directory_ / "again");
  EXPECT_EQ(theirs.embed(kOddTexts).values, ours.embed(kOddTexts).values);
  EXPECT_EQ(theirs.max_length(), 9);
  const EmbeddingConfig again = load_run<EncoderRun>(directory_ / "again").embedding;
  EXPECT_EQ(again.prefix, "the ");
  EXPECT_EQ(again.prompt_names, (std::vector<std::string>{"default", "query"}));
  EXPECT_EQ(again.pooling, Pooling::weighted_mean);
}

TEST_F(TrainedEncoder, TheClassIsTheOneThatFits) {
  EXPECT_EQ(exported(tiny_shape()), "esm");
  expect_same_when_read(kLines);
  ModelConfig modern = tiny_shape();
  modern.embedding_norm = modern.gated_ffn = true;
  modern.norm.first = false;
  modern.norm.kind = NormKind::layer_no_bias;
  modern.attention.input_bias = modern.attention.output_bias = modern.ffn_bias = false;
  modern.attention.window = 3;
  modern.attention.layer_pattern = "gl";
  modern.rotary.local_base = 100;
  EXPECT_EQ(exported(modern), "modernbert");
  EXPECT_EQ(parsed(out() + "/config.json")["global_attn_every_n_layers"], 2);
  expect_same_when_read(kLines);
  ModelConfig untied = bert_shape();
  untied.tied_output = false;
  EXPECT_EQ(exported(untied), "bert");
  EXPECT_EQ(parsed(out() + "/config.json")["tie_word_embeddings"], false);
  expect_same_when_read(kLines);
}

TEST_F(TrainedEncoder, ClassifiersMustBeEncoders) {
  const Tokenizer tokenizer = pieces(TokenizerKind::unigram);
  ClassifierRun parts;
  ModelConfig& m = parts.config;
  m = tiny_shape();
  m.encoder_layers = 0;
  m.decoder_layers = 2;
  m.token_head = TokenHead::none;
  m.output_bias = false;
  m.source_vocab = 0;
  m.target_vocab = tokenizer.size();
  parts.codec = TextCodec::of_pieces(tokenizer);
  parts.embedding.end = "</s>";
  parts.embedding.pooling = Pooling::last;
  parts.classification.labels = {"a", "b"};
  const auto head = std::make_shared<StandaloneLabelHead>(m, label_head_shape(parts.classification));
  parts.head = head;
  const Transformer<float> weights(m);
  create_run(RunDirectory(run()), parts, [&](const RunDirectory& partial) {
    save_weights(partial.model(), weights.parameters(), weights.parameters().values());
  });
  EXPECT_EQ(error_of([&] { export_model(run(), out()); }),
            run() +
                "/config.json: decoder_layers must be 0 to export a classifier, because only encoders are exported as "
                "such (is 2)");
}

// SentencePiece finds no special tokens in text that becomes their spelling.
TEST_F(TrainedEncoder, NormalizedTextSpellsNoSpecialToken) {
  std::vector<std::string> lines = kLines;
  lines.insert(lines.end(), {"a < b > c / d", "s > < / s"});
  write(bert_shape(), Tokenizer::train(lines, {.vocab_size = 60, .control = {"<mask>"}}));
  export_model(run(), out());
  expect_same_when_read({"the \uff1cs\uff1e cat", "a \uff1c/s\uff1e", "a <s> cat"});
}

// The model has other parts then, which compute the same.
TEST_F(TrainedEncoder, PartsThatItLacksHaveNoEffect) {
  ModelConfig model = bert_shape();
  model.positions = Positions::interleaved;
  model.scale_embeddings = true;
  model.norm.kind = NormKind::layer_no_bias;
  model.attention.input_bias = model.ffn_bias = false;
  model.output_bias = false;
  EXPECT_EQ(exported(model), "bert");
  import_model(out(), directory_ / "again");
  const std::vector<float> wanted = Embedder(run()).embed(kLines).values,
                           found = Embedder(directory_ / "again").embed(kLines).values;
  for (size_t i = 0; i < wanted.size(); i++) EXPECT_NEAR(found[i], wanted[i], 1e-5);
}

TEST_F(TrainedEncoder, PartsThatNoClassHasAreNamed) {
  EXPECT_EQ(error_for([](auto& m) { m.positions = Positions::alibi; }),
            "config.json: positions must be learned for the nearest class, bert (is alibi)");
  EXPECT_EQ(error_for([](auto& m) { m.token_head = TokenHead::output; }),
            "config.json: token_head must be none or dense to export an encoder (is output)");
  EXPECT_EQ(error_for([](auto& m) { m.norm.kind = NormKind::rms; }),
            "config.json: norm must be layer for the nearest class, bert (is rms)");
  EXPECT_EQ(error_for([](auto& m) { m.attention.window = 3; }),
            "config.json: window must be 0 for the nearest class, bert (is 3)");
}

// XLM-R: pieces of a SentencePiece model with ids of their own, and special tokens that a text may spell.
TEST_F(TrainedEncoder, PiecesMayHaveTheIdsOfFairseq) {
  const std::string source = directory_ / "source";
  std::filesystem::copy(QKV_GOLDEN_DIR "/bert/roberta", source, std::filesystem::copy_options::recursive);
  json config = parsed(source + "/config.json");
  config["model_type"] = "xlm-roberta";
  testing::spill(source + "/config.json", config.dump());
  const Tokenizer eleven = Tokenizer::train(std::vector<std::string>(40, "a b c ab"), {.vocab_size = 11});
  testing::spill(source + "/sentencepiece.bpe.model", eleven.serialized());
  import_model(source, run());
  EXPECT_EQ(export_model(run(), out()).model_type, "roberta");
  expect_same_when_read({"a c ab z", "zz b", "a <mask>b", "c</s> ab", ""});
}

// A classifier of BERT with another head.
class ExportedClassifiers : public TrainedEncoder {
 protected:
  void SetUp() override { import_model(QKV_GOLDEN_DIR "/classify/bert", run()); }
  void change(const std::string& field, const json& value) const {
    json object = parsed(run() + "/classification.json");
    object[field] = value;
    testing::spill(run() + "/classification.json", object.dump());
  }
  std::string error_with(const std::string& field, const json& value) const {
    const std::string path = run() + "/classification.json", before = testing::slurp(path);
    change(field, value);
    const std::string text = error_of([&] { export_model(run(), out()); });
    testing::spill(path, before);
    return text.substr(std::min(text.size(), run().size() + 1));
  }
};

TEST_F(ExportedClassifiers, HeadsThatNoClassHasAreNamed) {
  EXPECT_EQ(error_with("pooling", "mean"),
            "classification.json: pooling must be first for the nearest class, bert (is mean)");
  EXPECT_EQ(error_with("pooling", "last"),
            "classification.json: pooling must be first for the nearest class, bert (is last)");
  EXPECT_EQ(error_with("separators", 2),
            "classification.json: separators must be 1 for the nearest class, bert (is 2)");
}

void set_field(const std::string& path, const std::string& field, const json& value) {
  json object = parsed(path);
  object[field] = value;
  testing::spill(path, object.dump());
}

TEST_F(ExportedClassifiers, TextsAreReadAsTheClassReadsThem) {
  const std::string path = run() + "/embedding.json";
  set_field(path, "prefix", "query: ");
  EXPECT_EQ(error_of([&] { export_model(run(), out()); }),
            path + ": prefix must be empty to export a classifier (is \"query: \")");
  set_field(path, "prefix", "");
  set_field(path, "max_length", 1000);
  const int64_t longest = model_of(run()).max_length;
  EXPECT_EQ(error_of([&] { export_model(run(), out()); }),
            fmt::format("{}: max_length must be between 0 and {}, the model's (is 1000)", path, longest));
}

TEST_F(ExportedClassifiers, EachLabelHasAName) {
  EXPECT_EQ(error_with("labels", {"a", "b", "a"}), "classification.json: labels must differ (has \"a\" twice)");
}

TEST_F(ExportedClassifiers, NumbersThatTheTypeLacksAreNamed) {
  const std::string path = run() + "/classifier.safetensors";
  StandaloneLabelHead head(model_of(run()), LabelHeadShape{3, HeadActivation::tanh, true, false});
  load_weights(path, head.parameters(), head.parameters().values());
  head.parameters().all().front().value[0] = 1e30F;
  save_weights(path, head.parameters(), head.parameters().values());
  EXPECT_EQ(error_of([&] { export_model(run(), out(), ExportType::float16); }),
            path + ": head.dense.weight must hold finite numbers of float16 (holds 1e+30)");
}

TEST_F(ExportedClassifiers, SayWhatTheScoresAre) {
  export_model(run(), out());
  json config = parsed(out() + "/config.json");
  EXPECT_EQ(config["problem_type"], "single_label_classification");
  EXPECT_EQ(config["id2label"], json({{"0", "negative"}, {"1", "neutral"}, {"2", "positive"}}));
  EXPECT_EQ(config["label2id"]["positive"], 2);
  EXPECT_FALSE(config.contains("sentence_transformers"));
  std::filesystem::remove_all(out());
  change("scores", "sigmoid");
  export_model(run(), out());
  config = parsed(out() + "/config.json");
  EXPECT_EQ(config["problem_type"], "multi_label_classification");
  EXPECT_EQ(config["sentence_transformers"]["activation_fn"], "torch.nn.modules.activation.Sigmoid");
}

}  // namespace
}  // namespace qkv
