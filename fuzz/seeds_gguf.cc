// Seeds of GGUF files: every architecture as a model of one layer of width 4, and what else its reader accepts or
// refuses.
#include <string_view>

#include "fuzz/seeds.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/gguf_writer.h"

namespace qkv::fuzz {
namespace {

using testing::GgufWriter;

// A linear layer or a norm of the layer, after "blk.0.": its inputs are 0 for a norm.
struct SmallModule {
  const char* name;
  uint64_t outputs, inputs;
};

struct SmallGguf {
  const char* architecture;
  const char* norm;                             // the last part of the key of the number that its norms add
  enum Biases { kNone, kInputs, kAll } biases;  // kInputs: of queries, keys and values
  std::vector<SmallModule> modules;
};

const std::vector<SmallModule> kAttention = {
    {"attn_q", 4, 4}, {"attn_k", 2, 4}, {"attn_v", 2, 4}, {"attn_output", 4, 4}};
const std::vector<SmallModule> kGated = {{"ffn_gate", 4, 4}, {"ffn_up", 4, 4}, {"ffn_down", 4, 4}};
const std::vector<SmallModule> kPlain = {{"ffn_up", 4, 4}, {"ffn_down", 4, 4}};
const std::vector<SmallModule> kNorms = {{"attn_norm", 4, 0}, {"ffn_norm", 4, 0}};
const std::vector<SmallModule> kBranchNorms = {{"post_attention_norm", 4, 0}, {"post_ffw_norm", 4, 0}};

std::vector<SmallModule> all_of(std::initializer_list<std::vector<SmallModule>> parts) {
  std::vector<SmallModule> modules;
  for (const auto& part : parts) modules.insert(modules.end(), part.begin(), part.end());
  return modules;
}

std::vector<SmallGguf> small_ggufs() {
  const std::vector<SmallModule> head_norms = {{"attn_q_norm", 2, 0}, {"attn_k_norm", 2, 0}};
  const std::vector<SmallModule> wide_norms = {{"attn_q_norm", 4, 0}, {"attn_k_norm", 2, 0}};
  const std::vector<SmallModule> fused = {{"attn_qkv", 8, 4}, {"attn_output", 4, 4}};
  const std::vector<SmallModule> wide = {{"attn_qkv", 12, 4}, {"attn_output", 4, 4}};
  const char *rms = "rms_", *layer = "";
  return {{"qwen2", rms, SmallGguf::kInputs, all_of({kAttention, kGated, kNorms})},
          {"qwen3", rms, SmallGguf::kNone, all_of({kAttention, kGated, kNorms, head_norms})},
          {"olmo2", rms, SmallGguf::kNone, all_of({kAttention, kGated, kBranchNorms, wide_norms})},
          {"smollm3", rms, SmallGguf::kNone, all_of({kAttention, kGated, kNorms})},
          {"gemma2", rms, SmallGguf::kNone, all_of({kAttention, kGated, kNorms, kBranchNorms})},
          {"gemma3", rms, SmallGguf::kNone, all_of({kAttention, kGated, kNorms, kBranchNorms, head_norms})},
          {"phi3", rms, SmallGguf::kNone, all_of({fused, {{"ffn_up", 8, 4}, {"ffn_down", 4, 4}}, kNorms})},
          {"starcoder2", layer, SmallGguf::kAll, all_of({kAttention, kPlain, kNorms})},
          {"phi2", layer, SmallGguf::kAll, all_of({wide, kPlain, {{"attn_norm", 4, 0}}})},
          {"gpt2", layer, SmallGguf::kAll, all_of({wide, kPlain, kNorms})},
          {"gptneox", layer, SmallGguf::kAll, all_of({wide, kPlain, kNorms})}};
}

void add_module(GgufWriter& w, const std::string& name, uint64_t outputs, uint64_t inputs, bool bias) {
  testing::add_small_tensor(w, name + ".weight", inputs ? std::vector{outputs, inputs} : std::vector{outputs});
  if (bias) testing::add_small_tensor(w, name + ".bias", {outputs});
}

std::string bytes_of(const SmallGguf& model) {
  const std::string name = model.architecture, rms = model.norm;
  const bool all_heads = name == "phi2" || name == "gpt2" || name == "gptneox";
  GgufWriter w;
  w.add("general.architecture", model.architecture);
  const auto add = [&](const std::string& key, const auto& value) { w.add(name + "." + key, value); };
  for (const char* key : {"embedding_length", "feed_forward_length"}) add(key, uint32_t{4});
  add("context_length", uint32_t{32});
  add("block_count", uint32_t{1});
  add("attention.head_count", uint32_t{2});
  if (!all_heads) add("attention.head_count_kv", std::vector<int32_t>{1});
  add("attention.layer_norm_" + rms + "epsilon", 1e-5f);
  if (name != "gpt2") add("rope.dimension_count", uint32_t{2});
  if (name.starts_with("gemma")) add("attention.sliding_window", uint32_t{8});
  if (name == "gemma2")
    for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) add(key, 30.0f);
  if (name == "gptneox") add("use_parallel_residual", true);
  if (name == "qwen2") {
    add("rope.scaling.type", "yarn");
    add("rope.scaling.factor", 2.0f);
    add("rope.scaling.original_context_length", uint32_t{16});
  }
  testing::add_small_pieces(w);
  add_module(w, "token_embd", testing::kSmallPieces, 4, false);
  if (name == "gpt2") add_module(w, "position_embd", 32, 4, false);
  if (name == "phi2") add_module(w, "output", testing::kSmallPieces, 4, true);
  if (name == "gptneox") add_module(w, "output", testing::kSmallPieces, 4, false);
  add_module(w, "output_norm", 4, 0, model.biases == SmallGguf::kAll);
  for (const SmallModule& module : model.modules) {
    const bool is_input = std::string_view("attn_q attn_k attn_v").find(module.name) != std::string_view::npos;
    add_module(w, std::string("blk.0.") + module.name, module.outputs, module.inputs,
               model.biases == SmallGguf::kAll || (model.biases == SmallGguf::kInputs && is_input));
  }
  return w.bytes();
}

// A Llama with byte-level BPE, whose words are cut as `splitter` says, and the rotary divisors of Llama 3.
std::string with_bytes(const char* splitter, const std::vector<float>& divisors) {
  GgufWriter w;
  std::vector<std::string> tokens = testing::pieces_of_bytes();
  std::vector<int32_t> types(258, 1);
  tokens.push_back("ab");
  tokens.push_back("<|end|>");
  types.back() = 3;
  w.add("tokenizer.ggml.model", "gpt2");
  w.add("tokenizer.ggml.pre", splitter);
  w.add("tokenizer.ggml.tokens", tokens);
  w.add("tokenizer.ggml.token_type", types);
  w.add("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  w.add("tokenizer.ggml.bos_token_id", uint32_t{257});
  w.add("tokenizer.ggml.eos_token_id", uint32_t{257});
  testing::add_small_llama(w, tokens.size());
  w.add_tensor("rope_freqs.weight", {divisors.size()}, divisors);
  return w.bytes();
}

// A Llama with SentencePiece whose pieces have these types: 4 is user-defined.
std::string with_types(const std::vector<int32_t>& types) {
  GgufWriter w;
  testing::add_small_llama(w, testing::kSmallPieces);
  testing::add_small_pieces(w, types, "a b", " ");
  return w.bytes();
}

// A Llama with SentencePiece and one more value.
std::string with_value(const std::string& key, GgufType type, const std::string& value) {
  GgufWriter w;
  w.pair(key, type, value);
  testing::add_small_llama(w, testing::kSmallPieces);
  testing::add_small_pieces(w);
  return w.bytes();
}

}  // namespace

void gguf_seeds(const std::filesystem::path& directory) {
  Seeds seeds(directory, "gguf");
  GgufWriter pieces, blocks;
  testing::add_small_llama(pieces, testing::kSmallPieces);
  testing::add_small_pieces(pieces);
  seeds.add(pieces.bytes());
  for (const SmallGguf& model : small_ggufs()) seeds.add(bytes_of(model));
  for (const std::vector<float>& divisors : {std::vector{1.0f}, {2.0f, 8.0f}})
    seeds.add(with_bytes("llama-bpe", divisors));
  seeds.add(with_bytes("bloom", {1.0f}));
  seeds.add(with_types({2, 3, 3, 1, 1, 1, 4, 4}));
  seeds.add(with_types({2, 3, 3}));

  blocks.add("general.architecture", "llama");
  for (const auto& [type, size] : {std::pair{2u, 18u}, {8u, 34u}, {12u, 144u}, {14u, 210u}})
    blocks.add_tensor("t" + std::to_string(type), type, {1, type < 12 ? 32u : 256u}, std::string(size, 'x'));
  seeds.add(blocks.bytes());

  const std::string window = "llama.attention.sliding_window";
  for (const auto& [key, type, value] : {std::tuple<std::string, GgufType, std::string>{window, GgufType::u8, "\7"},
                                         {window, GgufType::i8, "\7"},
                                         {window, GgufType::u16, GgufWriter::raw(uint16_t{7})},
                                         {window, GgufType::i16, GgufWriter::raw(int16_t{7})},
                                         {window, GgufType::i64, GgufWriter::raw(int64_t{7})},
                                         {window, GgufType::u64, GgufWriter::raw(uint64_t{7})},
                                         {window, GgufType::u64, GgufWriter::raw(~uint64_t{0})},
                                         {window, GgufType::string, GgufWriter::string("7")},
                                         {"llama.rope.freq_base", GgufType::f64, GgufWriter::raw(1e4)},
                                         {"llama.attention.causal", GgufType::boolean, "\1"},
                                         {"llama.attention.causal", GgufType::boolean, std::string(1, '\0')},
                                         {"llama.attention.causal", GgufType::boolean, "\2"},
                                         {"llama.attention.causal", GgufType::u8, "\1"},
                                         {"llama.expert_count", GgufType::u8, "\2"},
                                         {"llama.rope.scaling.type", GgufType::string, GgufWriter::string("linear")},
                                         {"llama.rope.scaling.type", GgufType::string, GgufWriter::string("longrope")},
                                         {"split.count", GgufType::u16, GgufWriter::raw(uint16_t{2})},
                                         {"general.alignment", GgufType::u32, GgufWriter::raw(uint32_t{24})},
                                         {"tokenizer.ggml.add_bos_token", GgufType::boolean, std::string(1, '\0')},
                                         {"tokenizer.ggml.add_space_prefix", GgufType::boolean, std::string(1, '\0')},
                                         {"tokenizer.ggml.model", GgufType::string, GgufWriter::string("bert")}})
    seeds.add(with_value(key, type, value));
}

}  // namespace qkv::fuzz
