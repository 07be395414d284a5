// GGUF files: blocks, models and tokenizers that llama.cpp's Python package wrote (tests/golden/gguf/make.py), and
// files that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "convert/formats/ggml_blocks.h"
#include "convert/imported_model.h"
#include "convert/text/gguf_text.h"
#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "tests/support/decoder_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::GgufWriter;
using testing::TempDir;

const std::string kGguf = QKV_GOLDEN_DIR "/gguf/", kHuggingFace = QKV_GOLDEN_DIR "/transformers/";

std::vector<float> floats_of(const Safetensors& file, const std::string& name) {
  const TensorView& tensor = *file.find(name);
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct BlockCase {
  const char* name;
  DType dtype;
};

class GgufBlocks : public ::testing::TestWithParam<BlockCase> {};

TEST_P(GgufBlocks, HaveTheBitsOfThePythonPackage) {
  const Safetensors file = Safetensors::open(kGguf + "blocks.safetensors");
  const TensorView& bytes = *file.find(GetParam().name + std::string(".bytes"));
  const std::vector<float> expected = floats_of(file, GetParam().name + std::string(".values"));
  std::vector<float> values(expected.size());
  read_blocks(GetParam().dtype, bytes.data, 0, values);
  EXPECT_TRUE(same_bits(values, expected));
  // Parts that begin and end inside blocks.
  for (size_t begin = 0, length = 1; begin + length <= expected.size(); begin += length, length += 7) {
    std::vector<float> part(length);
    read_blocks(GetParam().dtype, bytes.data, static_cast<int64_t>(begin), part);
    EXPECT_TRUE(same_bits(part, std::span(expected).subspan(begin, length))) << begin;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, GgufBlocks,
                         ::testing::Values(BlockCase{"Q4_0", DType::q4_0}, BlockCase{"Q4_1", DType::q4_1},
                                           BlockCase{"Q5_0", DType::q5_0}, BlockCase{"Q5_1", DType::q5_1},
                                           BlockCase{"Q8_0", DType::q8_0}, BlockCase{"Q4_K", DType::q4_k},
                                           BlockCase{"Q5_K", DType::q5_k}, BlockCase{"Q6_K", DType::q6_k}),
                         [](const auto& test) { return std::string(test.param.name); });

// The same model as a GGUF file and in the Hugging Face layout. Its logits are compared with those of transformers in
// transformers_test.cc.
// A GGUF file and the model in the Hugging Face layout. GGUF does not store query_pre_attn_scalar of Gemma, which is
// usually the width of a head; `head` sets it so.
struct GgufCase {
  const char *name, *model;
  int head = 0;
};

class GgufModels : public ::testing::TestWithParam<GgufCase> {};

TEST_P(GgufModels, EqualThoseInTheHuggingFaceLayout) {
  const TempDir directory;
  const std::string model = directory / "model";
  testing::copy_decoder_case(GetParam().model, model);
  if (GetParam().head > 0) {
    json config = json::parse(testing::slurp(model + "/config.json"));
    config["query_pre_attn_scalar"] = GetParam().head;
    testing::spill(model + "/config.json", config.dump());
  }
  const ImportReport expected = import_model(model, directory / "expected");
  const ImportReport found = import_model(kGguf + GetParam().name + ".gguf", directory / "run");
  EXPECT_EQ(found.kind, expected.kind);
  EXPECT_EQ(to_json(found.config), to_json(expected.config));
  EXPECT_EQ(testing::slurp(directory / "run/model.safetensors"),
            testing::slurp(directory / "expected/model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Of, GgufModels,
                         ::testing::Values(GgufCase{"gemma2", "gemma2", 8}, GgufCase{"gemma3_text", "gemma3_text", 6},
                                           GgufCase{"gpt2", "gpt2"}, GgufCase{"gpt_neox", "gpt_neox"},
                                           GgufCase{"gpt_neox_sequential", "gpt_neox_sequential"},
                                           GgufCase{"llama", "llama"}, GgufCase{"llama3", "llama3"},
                                           GgufCase{"mistral", "mistral"}, GgufCase{"olmo2", "olmo2"},
                                           GgufCase{"phi", "phi"}, GgufCase{"phi_fused", "phi"},
                                           GgufCase{"phi3", "phi3"}, GgufCase{"qwen2", "qwen2"},
                                           GgufCase{"qwen3", "qwen3"}, GgufCase{"smollm3", "smollm3"},
                                           GgufCase{"starcoder2", "starcoder2"}),
                         [](const auto& model) { return std::string(model.param.name); });

TEST(Gguf, QuantizedModelMatchesTransformers) {
  const TempDir directory;
  import_model(kGguf + "quantized.gguf", directory / "run");
  const Safetensors expected = Safetensors::open(kGguf + "quantized.safetensors"),
                    found = Safetensors::open(directory / "run/model.safetensors");
  EXPECT_TRUE(same_bits(floats_of(found, "decoder.layers.0.self_attention.q.weight"), floats_of(expected, "q")));
  EXPECT_TRUE(same_bits(floats_of(found, "decoder.layers.0.feed_forward.second.weight"), floats_of(expected, "down")));

  const LanguageRun run = load_run<LanguageRun>(directory / "run");
  Arena arena;
  Context context{arena};
  context.inference = true;
  Packed none, text;
  std::vector<int32_t> ids(expected.find("ids")->data.size() / sizeof(int32_t));
  std::memcpy(ids.data(), expected.find("ids")->data.data(), ids.size() * sizeof(int32_t));
  text.append(ids);
  Transformer<float>::Saved saved;
  run.model->forward(none, text, context, saved);
  const Matrix<float> logits = run.model->output().logits(saved.h, context);
  const std::vector<float> wanted = floats_of(expected, "logits");
  float largest = 0, error = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    const auto [row, col] = std::div(static_cast<int64_t>(i), logits.cols);
    largest = std::max(largest, std::abs(wanted[i]));
    error = std::max(error, std::abs(wanted[i] - logits.row(row)[col]));
  }
  EXPECT_LE(error, 1e-5f * largest);
}

TEST(Gguf, VersionTwoIsReadAsVersionThree) {
  std::string bytes = testing::slurp(kGguf + "llama.gguf");
  bytes[4] = 2;
  const testing::TempFile file("model.gguf", bytes);
  const TempDir directory;
  import_model(file.path(), directory / "two");
  import_model(kGguf + "llama.gguf", directory / "three");
  EXPECT_EQ(testing::slurp(directory / "two/model.safetensors"), testing::slurp(directory / "three/model.safetensors"));
}

LanguageText golden_text(const std::string& name) {
  const std::string path = kGguf + name + ".tokenizer.gguf";
  const MappedFile file(path);
  return gguf_text(parse_gguf(file.bytes(), path).metadata);
}

struct TokenizerCase {
  const char *name, *ids, *start;
  std::vector<std::string> ends;
};

class GgufTokenizers : public ::testing::TestWithParam<TokenizerCase> {};

TEST_P(GgufTokenizers, GiveTheIdsOfTheLibrary) {
  const LanguageText text = golden_text(GetParam().name);
  EXPECT_EQ(text.config.start, GetParam().start);
  EXPECT_EQ(text.config.ends, GetParam().ends);
  const json cases = json::parse(testing::slurp(QKV_GOLDEN_DIR + std::string(GetParam().ids)));
  ASSERT_GT(cases.size(), 20u);
  const bool pieces = text.codec.unit() == TextUnit::pieces;  // whose library finds no control tokens
  for (const json& example : cases) {
    const auto line = example[0].get<std::string>();
    EXPECT_EQ(pieces ? text.codec.encode_plain(line, "text") : text.codec.encode(line, "text"),
              example[1].get<std::vector<int32_t>>())
        << line;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, GgufTokenizers,
    ::testing::Values(TokenizerCase{"spm", "/gguf/spm.ids.json", "<s>", {"</s>", "<|im_end|>"}},
                      TokenizerCase{"starcoder", "/gguf/starcoder.ids.json", "<|endoftext|>", {"<|endoftext|>"}},
                      TokenizerCase{"gpt2", "/tokenizers/gpt2.ids.json", "<|endoftext|>", {"<|endoftext|>"}},
                      TokenizerCase{"llama3", "/tokenizers/llama3.ids.json", "<|begin_of_text|>", {"<|endoftext|>"}},
                      TokenizerCase{"qwen2", "/tokenizers/qwen2.ids.json", "<|endoftext|>", {"<|im_start|>"}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(GgufTokenizer, OnlyLlama3AddsItsStartTokenByDefault) {
  EXPECT_EQ(golden_text("llama3").codec.before(), 420);
  EXPECT_EQ(golden_text("gpt2").codec.before(), std::nullopt);
}

// Gemma 3: the unknown token has the type of control tokens, user-defined pieces are written with spaces, and the
// tokens of turns, which the model's own tokenizer finds in texts, have the type of control tokens.
TEST(GgufTokenizer, OfGemmaFindsRunsOfSpacesAndTheTokensOfTurns) {
  GgufWriter w;
  w.add("tokenizer.ggml.model", "llama");
  w.add("tokenizer.ggml.tokens", std::vector<std::string>{"<pad>", "<eos>", "<bos>", "<unk>", "<turn>", "  ", "\n", "a",
                                                          "\u2581", "\u2581a", "    ", "\u2581\u2581\u2581\u2581"});
  w.add("tokenizer.ggml.scores",
        std::vector<float>{-1000, -1000, -1000, -1000, -1000, -1000, -1000, -1, -2, -3, -1000, -4});
  w.add("tokenizer.ggml.token_type", std::vector<int32_t>{3, 3, 3, 3, 3, 4, 4, 1, 1, 1, 4, 1});
  w.add("tokenizer.ggml.bos_token_id", uint32_t{2});
  w.add("tokenizer.ggml.eos_token_id", uint32_t{1});
  w.add("tokenizer.ggml.unknown_token_id", uint32_t{3});
  w.add("tokenizer.ggml.add_space_prefix", false);
  const testing::TempFile file("model.gguf", w.bytes());
  const MappedFile mapped(file.path());
  const TextCodec codec = gguf_text(parse_gguf(mapped.bytes(), file.path()).metadata).codec;
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(codec.encode("a a", "text"), (Ids{7, 9}));
  EXPECT_EQ(codec.encode("<turn>\na   a<bos>", "text"), (Ids{4, 6, 7, 5, 9, 2}));
  EXPECT_EQ(codec.encode("<eos><unk>a", "text"), (Ids{1, 3, 7}));
  EXPECT_EQ(codec.encode_plain("<turn>\na   a<bos>", "text"), (Ids{3, 6, 7, 5, 9, 3}));
  EXPECT_EQ(codec.decode(Ids{4, 6, 7, 5, 9}), "\na   a");
  EXPECT_EQ(codec.piece(10), "    ");  // another piece has the spelling of SentencePiece

  w.add("tokenizer.chat_template", "{% for m in messages %}{{ m.content }}<turn>\n{% endfor %}");
  w.add("tokenizer.chat_template.tool_use", "t");
  w.add("tokenizer.ggml.add_bos_token", false);
  const testing::TempFile chat("chat.gguf", w.bytes());
  const MappedFile mapped_chat(chat.path());
  const LanguageText text = gguf_text(parse_gguf(mapped_chat.bytes(), chat.path()).metadata);
  EXPECT_EQ(text.chat.templates.size(), 2U);
  EXPECT_EQ(text.chat.templates.at("tool_use"), "t");
  EXPECT_EQ(text.chat.tokens.bos_token, "<bos>");
  EXPECT_EQ(text.chat.tokens.eos_token, "<eos>");
  EXPECT_EQ(text.config.ends, (std::vector<std::string>{"<eos>", "<turn>"}));
  EXPECT_FALSE(text.chat.tokens.starts_prompts);
}

// The error of importing a file, without the folder of the test.
std::string gguf_error(const std::string& bytes) {
  const testing::TempFile file("model.gguf", bytes);
  const TempDir directory;
  const std::string text = error_of([&] { import_model(file.path(), directory / "run"); });
  EXPECT_FALSE(std::filesystem::exists(directory / "run"));
  EXPECT_EQ(text.find('\n'), text.npos);
  return text.substr(text.find("model.gguf"));
}

// A small model with something added or changed.
std::string error_with(const std::function<void(GgufWriter&)>& change) {
  GgufWriter w;
  add_small_llama(w, testing::kSmallPieces);
  add_small_pieces(w);
  change(w);
  return gguf_error(w.bytes());
}

TEST(GgufFiles, ASmallOneIsRead) {
  GgufWriter w;
  add_small_llama(w, testing::kSmallPieces);
  add_small_pieces(w);
  const testing::TempFile file("model.gguf", w.bytes());
  const TempDir directory;
  EXPECT_EQ(import_model(file.path(), directory / "run").kind, "Llama");
  EXPECT_EQ(load_run<LanguageRun>(directory / "run").language.start, "<s>");
}

TEST(GgufFiles, UnsupportedFeaturesAreNamed) {
  const auto with = [](const char* key, auto value) { return error_with([&](GgufWriter& w) { w.add(key, value); }); };
  EXPECT_EQ(with("llama.attention.scale", 0.5f), "model.gguf: not supported: \"llama.attention.scale\"");
  EXPECT_EQ(with("llama.expert_count", uint32_t{8}), "model.gguf: llama.expert_count must be 0 (is 8)");
  EXPECT_EQ(with("llama.attention.causal", false), "model.gguf: llama.attention.causal must be true");
  EXPECT_EQ(with("llama.rope.scaling.type", "longrope"),
            "model.gguf: llama.rope.scaling.type must be none, linear or yarn (is \"longrope\")");
  EXPECT_EQ(with("llama.attention.value_length", uint32_t{4}),
            "model.gguf: llama.attention.value_length must be 2 (is 4)");
  EXPECT_EQ(with("split.count", uint32_t{3}), "model.gguf: must be a whole model (is one of 3 parts)");
  EXPECT_EQ(
      with("tokenizer.chat_template./", "x"),
      "model.gguf: the name of a chat template must have 1 to 64 letters, digits, \"_\", \"-\" and \".\" (is \"/\")");
  EXPECT_EQ(with("general.alignment", uint32_t{48}),
            "model.gguf: general.alignment must be a power of two up to 1048576 (is 48)");
  EXPECT_EQ(error_with([](GgufWriter& w) { w.add_tensor("rope_freqs.weight", {1}, {3.0f}); }).substr(0, 80),
            "model.gguf: tensor \"rope_freqs.weight\": must be the divisors of Llama 3 for low_");
  EXPECT_EQ(error_with([](GgufWriter& w) { w.add_tensor("blk.0.attn_sinks.weight", {1}, {3.0f}); }),
            "model.gguf: tensor \"blk.0.attn_sinks.weight\": F32 [1] is not part of the model");

  GgufWriter other;
  other.add("general.architecture", "bloom");
  EXPECT_EQ(gguf_error(other.bytes()),
            "model.gguf: general.architecture must be one of gemma2, gemma3, gpt2, gptneox, llama, olmo2, phi2, phi3, "
            "qwen2, qwen3, smollm3, starcoder2 (is \"bloom\")");
  EXPECT_EQ(gguf_error(GgufWriter().bytes()), "model.gguf: general.architecture is missing");
}

TEST(GgufFiles, UnsupportedTokenizersAreNamed) {
  const auto with = [](const std::function<void(GgufWriter&)>& add) {
    GgufWriter w;
    add_small_llama(w, testing::kSmallPieces);
    add(w);
    return gguf_error(w.bytes());
  };
  EXPECT_EQ(with([](GgufWriter& w) { w.add("tokenizer.ggml.model", "t5"); }),
            "model.gguf: tokenizer.ggml.model must be llama or gpt2 (is \"t5\")");
  EXPECT_EQ(with([](GgufWriter& w) {
              w.add("tokenizer.ggml.model", "gpt2");
              w.add("tokenizer.ggml.pre", "tekken");
              w.add("tokenizer.ggml.tokens", std::vector<std::string>{"a"});
            }),
            "model.gguf: tokenizer.ggml.pre must be one of gpt-2, phi-2, olmo, mpt, starcoder, refact, smollm, "
            "dbrx, smaug-bpe, llama-bpe, qwen2, deepseek-r1-qwen (is \"tekken\")");
  EXPECT_EQ(with([](GgufWriter& w) {
              w.add("tokenizer.ggml.model", "llama");
              w.add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
              w.add("tokenizer.ggml.token_type", std::vector<int32_t>{1});
            }),
            "model.gguf: tokenizer.ggml.token_type must have 2 elements, one per token (has 1)");
  EXPECT_EQ(with([](GgufWriter& w) { w.add("tokenizer.ggml.tokens", "a"); }),
            "model.gguf: tokenizer.ggml.model is missing");
}

TEST(GgufFiles, BrokenOnesAreRefused) {
  EXPECT_EQ(gguf_error("GGUF"),
            "model.gguf: truncated, or not a GGUF file: the version at byte 4 needs 4 bytes (0 are left)");
  GgufWriter old;
  old.version = 1;
  EXPECT_EQ(gguf_error(old.bytes()), "model.gguf: version must be between 2 and 3 (is 1)");
  old.version = 0x03000000;
  EXPECT_EQ(gguf_error(old.bytes()), "model.gguf: big-endian files are not supported");
  const auto raw = [](auto value) { return GgufWriter::raw(value); };
  const std::string start = "GGUF" + raw(uint32_t{3});
  EXPECT_EQ(gguf_error(start + raw(uint64_t{1} << 40) + raw(uint64_t{0})),
            "model.gguf: the number of tensors must be at most 65536 (is 1099511627776)");
  EXPECT_EQ(gguf_error(start + raw(uint64_t{0}) + raw(uint64_t{9})),
            "model.gguf: truncated, or not a GGUF file: the number of metadata pairs is 9, but only 0 bytes are left");
  EXPECT_EQ(error_with([](GgufWriter& w) { w.add("llama.block_count", uint32_t{1}); }),
            "model.gguf: \"llama.block_count\" appears twice");
  EXPECT_EQ(error_with([&](GgufWriter& w) { w.pair("x", static_cast<GgufType>(13), ""); }),
            "model.gguf: \"x\": type must be below 13 (is 13)");
  EXPECT_EQ(error_with([&](GgufWriter& w) { w.array("x", GgufType::array, 1, ""); }),
            "model.gguf: \"x\": not supported: an array of arrays");
  EXPECT_EQ(error_with([&](GgufWriter& w) { w.pair("x", GgufType::boolean, "\2"); }),
            "model.gguf: \"x\": must be 0 or 1 (is 2)");
  EXPECT_EQ(error_with([&](GgufWriter& w) { w.array("x", GgufType::u64, uint64_t{1} << 61, ""); }).substr(0, 54),
            "model.gguf: \"x\": 2305843009213693952 values need more ");
  EXPECT_EQ(error_with([&](GgufWriter& w) { w.add(std::string(1025, 'k'), true); }).substr(0, 17), "model.gguf: a key");
}

TEST(GgufFiles, TensorsMustHaveAPlaceOfTheirOwn) {
  const auto with = [](const std::function<void(GgufWriter&)>& add) {
    GgufWriter w;
    add(w);
    return gguf_error(w.bytes());
  };
  const std::vector<float> one = {1};
  EXPECT_EQ(with([](GgufWriter& w) { w.add_info("t", 10, {256}, 0); }),
            "model.gguf: tensor \"t\": type must be one of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, "
            "BF16 (is Q2_K)");
  EXPECT_EQ(with([](GgufWriter& w) { w.add_info("t", 99, {1}, 0); }).substr(95), " Q6_K, BF16 (is 99)");
  EXPECT_EQ(with([](GgufWriter& w) {
              w.add_info("t", 8, {2, 48}, 0);
            }),
            "model.gguf: tensor \"t\": Q8_0 [2, 48] overflows, or its rows are not whole blocks");
  EXPECT_EQ(with([](GgufWriter& w) {
              w.add_info("t", 0, {1ull << 40, 1ull << 40}, 0);
            }),
            "model.gguf: tensor \"t\": F32 [1099511627776, 1099511627776] overflows, or its rows are not whole blocks");
  EXPECT_EQ(with([](GgufWriter& w) { w.add_info("t", 0, {1ull << 41}, 0); }),
            "model.gguf: tensor \"t\": dimension 0 must be at most 2^40 (is 2199023255552)");
  EXPECT_EQ(with([](GgufWriter& w) {
              w.add_info("t", 0, {1, 1, 1, 1, 1}, 0);
            }),
            "model.gguf: tensor \"t\": must have 1 to 4 dimensions (has 5)");
  EXPECT_EQ(with([](GgufWriter& w) { w.add_info("t", 0, {9}, 0); }),
            "model.gguf: tensor \"t\": F32 [9] takes 36 bytes at offset 0, beyond the 0 bytes of data");
  EXPECT_EQ(with([&](GgufWriter& w) {
              w.add_tensor("t", {1}, one);
              w.add_info("u", 0, {1}, 0);
            }),
            "model.gguf: tensor \"u\": offset must be 32 (is 0): tensors overlap");
  EXPECT_EQ(with([&](GgufWriter& w) {
              w.add_tensor("t", {1}, one);
              w.add_info("u", 0, {1}, 64);
            }),
            "model.gguf: tensor \"u\": offset must be 32 (is 64): tensors leave a gap");
  EXPECT_EQ(with([&](GgufWriter& w) {
              w.add_tensor("t", {1}, one);
              w.add_tensor("t", {1}, one);
            }),
            "model.gguf: tensor \"t\": appears twice");
  GgufWriter w;
  w.add_tensor("t", {1}, one);
  EXPECT_EQ(gguf_error(w.bytes() + "x"), "model.gguf: 1 bytes at the end belong to no tensor");
}

}  // namespace
}  // namespace qkv
