// Writes GGUF files (convert/formats/gguf_file.h), valid or not.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "convert/formats/gguf_file.h"

namespace qkv::testing {

class GgufWriter {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;

  void add(const std::string& key, const char* text) { pair(key, GgufType::string, string(text)); }
  void add(const std::string& key, uint32_t value) { pair(key, GgufType::u32, raw(value)); }
  void add(const std::string& key, float value) { pair(key, GgufType::f32, raw(value)); }
  void add(const std::string& key, bool value) { pair(key, GgufType::boolean, std::string(1, value ? '\1' : '\0')); }
  void add(const std::string& key, const std::vector<std::string>& texts) {
    std::string values;
    for (const std::string& text : texts) values += string(text);
    array(key, GgufType::string, texts.size(), values);
  }
  void add(const std::string& key, const std::vector<float>& numbers) {
    array(key, GgufType::f32, numbers.size(), bytes_of(numbers));
  }
  void add(const std::string& key, const std::vector<int32_t>& numbers) {
    array(key, GgufType::i32, numbers.size(), bytes_of(numbers));
  }
  void pair(const std::string& key, GgufType type, const std::string& value) {
    pairs_ += string(key) + raw(static_cast<uint32_t>(type)) + value;
    pair_count_++;
  }
  void array(const std::string& key, GgufType type, uint64_t count, const std::string& values) {
    pair(key, GgufType::array, raw(static_cast<uint32_t>(type)) + raw(count) + values);
  }

  // A tensor of any type, with the sizes from the outermost to the innermost.
  void add_tensor(const std::string& name, uint32_t type, const std::vector<uint64_t>& shape, const std::string& data) {
    add_info(name, type, shape, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
  }
  void add_tensor(const std::string& name, const std::vector<uint64_t>& shape, const std::vector<float>& numbers) {
    add_tensor(name, 0, shape, bytes_of(numbers));
  }
  void add_info(const std::string& name, uint32_t type, const std::vector<uint64_t>& shape, uint64_t offset) {
    infos_ += string(name) + raw(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i > 0; i--) infos_ += raw(shape[i - 1]);
    infos_ += raw(type) + raw(offset);
    info_count_++;
  }

  std::string bytes() const {
    std::string all = "GGUF" + raw(version) + raw(info_count_) + raw(pair_count_) + pairs_ + infos_;
    all.resize((all.size() + alignment - 1) / alignment * alignment);
    return all + data_;
  }

  static std::string string(std::string_view text) { return raw(uint64_t{text.size()}) + std::string(text); }
  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }

 private:
  template <class T>
  static std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }

  std::string pairs_, infos_, data_;
  uint64_t pair_count_ = 0, info_count_ = 0;
};

// Adds a tensor of small numbers.
inline void add_small_tensor(GgufWriter& w, const std::string& name, const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape) count *= size;
  std::vector<float> numbers(count);
  for (uint64_t i = 0; i < count; i++) numbers[i] = static_cast<float>(i % 7) / 8 - 0.25f;
  w.add_tensor(name, shape, numbers);
}

// Adds the metadata and the tensors of a Llama with one layer of width 4: two heads of width 2, one of keys and values.
inline void add_small_llama(GgufWriter& w, uint64_t tokens, uint64_t layers = 1) {
  w.add("general.architecture", "llama");
  for (const auto& [key, value] : {std::pair<const char*, uint32_t>{"context_length", 32},
                                   {"embedding_length", 4},
                                   {"block_count", static_cast<uint32_t>(layers)},
                                   {"feed_forward_length", 4},
                                   {"attention.head_count", 2},
                                   {"attention.head_count_kv", 1},
                                   {"rope.dimension_count", 2}})
    w.add(std::string("llama.") + key, value);
  w.add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const auto add = [&](const std::string& name, const std::vector<uint64_t>& shape) {
    add_small_tensor(w, name + ".weight", shape);
  };
  add("token_embd", {tokens, 4});
  add("output_norm", {4});
  add("blk.0.attn_norm", {4});
  add("blk.0.attn_q", {4, 4});
  add("blk.0.attn_k", {2, 4});
  add("blk.0.attn_v", {2, 4});
  add("blk.0.attn_output", {4, 4});
  add("blk.0.ffn_norm", {4});
  for (const char* part : {"gate", "up", "down"}) add(std::string("blk.0.ffn_") + part, {4, 4});
}

// Adds a tokenizer of SentencePiece with eight pieces, the last two and the types of all of which may be others.
inline constexpr uint64_t kSmallPieces = 8;
inline void add_small_pieces(GgufWriter& w, const std::vector<int32_t>& types = {2, 3, 3, 1, 1, 1, 1, 1},
                             const std::string& seventh = "\u2581a", const std::string& eighth = "ab") {
  w.add("tokenizer.ggml.model", "llama");
  w.add("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>", "\u2581", "a", "b", seventh, eighth});
  w.add("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -1, -2, -3, -4, -5});
  w.add("tokenizer.ggml.token_type", types);
  w.add("tokenizer.ggml.bos_token_id", uint32_t{1});
  w.add("tokenizer.ggml.eos_token_id", uint32_t{2});
}

}  // namespace qkv::testing
