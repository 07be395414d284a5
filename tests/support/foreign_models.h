// A small model with the tensor names of MarianMT, CTranslate2 and PyTorch, and the bytes of their files.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "io/weights/safetensors.h"
#include "model/transformer.h"
#include "qkv/bfloat16.h"
#include "tests/support/models.h"

namespace qkv::testing {

struct ForeignTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using ForeignModel = std::vector<ForeignTensor>;

// d 8, 2 heads, feed-forward 12, 2 + 1 layers, one table of 7 tokens for both sides and the output, with a bias.
inline ModelConfig foreign_config() {
  ModelConfig c;
  c.source_vocab = c.target_vocab = 7;
  c.encoder_layers = 2, c.decoder_layers = 1;
  c.d_model = 8;
  c.attention.heads = 2;
  c.attention.key_width = c.attention.value_width = 4;
  c.ffn = 12;
  c.activation = Activation::silu;
  c.positions = Positions::halves;
  c.output_bias = true;
  c.max_length = 32;
  c.dropout.residual = 0;
  return c;
}

// Collects parameters under other names.
class Renamer {
 public:
  explicit Renamer(const Transformer<float>& from) : from_(from) {}

  // Adds a tensor with the rows of several parameters, one below the other.
  void add(const std::string& name, const std::vector<std::string>& parameters) {
    ForeignTensor tensor{name, {}, {}};
    for (const std::string& parameter : parameters) {
      const auto p = std::ranges::find(from_.parameters().all(), parameter, &Parameter<float>::name);
      if (tensor.shape.empty())
        tensor.shape = p->shape;
      else
        tensor.shape[0] += p->shape[0];
      tensor.values.insert(tensor.values.end(), p->value, p->value + p->size());
    }
    model.push_back(std::move(tensor));
  }
  void add_pair(const std::string& name, const std::vector<std::string>& parameters,
                const std::string& weight = ".weight", const std::string& bias = ".bias") {
    for (const auto& [ours, theirs] : {std::pair{std::string(".weight"), weight}, {std::string(".bias"), bias}}) {
      std::vector<std::string> names;
      for (const std::string& parameter : parameters) names.push_back(parameter + ours);
      add(name + theirs, names);
    }
  }

  ForeignModel model;

 private:
  const Transformer<float>& from_;
};

inline ForeignModel as_marian(const Transformer<float>& model) {
  Renamer r(model);
  r.add("model.shared.weight", {"embedding.weight"});
  r.add("final_logits_bias", {"output.bias"});
  r.model.back().shape = {1, r.model.back().shape[0]};
  const auto attention = [&](const std::string& theirs, const std::string& ours) {
    for (const char* part : {"q", "k", "v"}) r.add_pair(theirs + "." + part + "_proj", {ours + "." + part});
    r.add_pair(theirs + ".out_proj", {ours + ".output"});
    r.add_pair(theirs + "_layer_norm", {ours + "_norm"});
  };
  for (const std::string side : {"encoder", "decoder"}) {
    const int64_t layers = side == "encoder" ? model.config().encoder_layers : model.config().decoder_layers;
    for (int64_t i = 0; i < layers; i++) {
      const std::string ours = side + ".layers." + std::to_string(i) + ".", theirs = "model." + ours;
      attention(theirs + "self_attn", ours + "self_attention");
      if (side == "decoder") attention(theirs + "encoder_attn", ours + "cross_attention");
      r.add_pair(theirs + "fc1", {ours + "feed_forward.first"});
      r.add_pair(theirs + "fc2", {ours + "feed_forward.second"});
      r.add_pair(theirs + "final_layer_norm", {ours + "feed_forward_norm"});
    }
  }
  return r.model;
}

inline ForeignModel as_torch(const Transformer<float>& model) {
  Renamer r(model);
  r.add("src.weight", {"embedding.weight"});
  r.add("generator.weight", {"output.weight"});
  r.add("generator.bias", {"output.bias"});
  const auto attention = [&](const std::string& theirs, const std::string& ours) {
    r.add_pair(theirs + ".in_proj", {ours + ".q", ours + ".k", ours + ".v"}, "_weight", "_bias");
    r.add_pair(theirs + ".out_proj", {ours + ".output"});
  };
  for (const std::string side : {"encoder", "decoder"}) {
    if (model.config().norm.final) r.add_pair("core." + side + ".norm", {side + ".norm"});
    const int64_t layers = side == "encoder" ? model.config().encoder_layers : model.config().decoder_layers;
    for (int64_t i = 0; i < layers; i++) {
      const std::string ours = side + ".layers." + std::to_string(i) + ".", theirs = "core." + ours;
      attention(theirs + "self_attn", ours + "self_attention");
      r.add_pair(theirs + "norm1", {ours + "self_attention_norm"});
      if (side == "decoder") {
        attention(theirs + "multihead_attn", ours + "cross_attention");
        r.add_pair(theirs + "norm2", {ours + "cross_attention_norm"});
      }
      r.add_pair(theirs + (side == "decoder" ? "norm3" : "norm2"), {ours + "feed_forward_norm"});
      r.add_pair(theirs + "linear1", {ours + "feed_forward.first"});
      r.add_pair(theirs + "linear2", {ours + "feed_forward.second"});
    }
  }
  return r.model;
}

inline ForeignModel as_ctranslate2(const Transformer<float>& model) {
  Renamer r(model);
  r.add("decoder/embeddings/weight", {"embedding.weight"});
  r.add("decoder/projection/bias", {"output.bias"});
  const auto linear = [&](const std::string& theirs, const std::vector<std::string>& ours) {
    r.add_pair(theirs, ours, "/weight", "/bias");
  };
  const auto norm = [&](const std::string& theirs, const std::string& ours) {
    r.add_pair(theirs + "layer_norm", {ours + "_norm"}, "/gamma", "/beta");
  };
  for (const std::string side : {"encoder", "decoder"}) {
    const int64_t layers = side == "encoder" ? model.config().encoder_layers : model.config().decoder_layers;
    for (int64_t i = 0; i < layers; i++) {
      const std::string ours = side + ".layers." + std::to_string(i) + ".",
                        theirs = side + "/layer_" + std::to_string(i) + "/", self = ours + "self_attention",
                        cross = ours + "cross_attention";
      linear(theirs + "self_attention/linear_0", {self + ".q", self + ".k", self + ".v"});
      linear(theirs + "self_attention/linear_1", {self + ".output"});
      norm(theirs + "self_attention/", self);
      if (side == "decoder") {
        linear(theirs + "attention/linear_0", {cross + ".q"});
        linear(theirs + "attention/linear_1", {cross + ".k", cross + ".v"});
        linear(theirs + "attention/linear_2", {cross + ".output"});
        norm(theirs + "attention/", cross);
      }
      linear(theirs + "ffn/linear_0", {ours + "feed_forward.first"});
      linear(theirs + "ffn/linear_1", {ours + "feed_forward.second"});
      norm(theirs + "ffn/", ours + "feed_forward");
    }
  }
  return r.model;
}

inline void write_foreign(const std::string& path, const ForeignModel& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& t : model) tensors.push_back({t.name, f32_tensor(t.shape, t.values)});
  write_safetensors(path, tensors);
}

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Writes a model.bin piece by piece.
class CTranslate2Writer {
 public:
  CTranslate2Writer(uint32_t version, uint32_t revision) : version_(version), revision_(revision) {}

  enum Type { f32 = 0, i8 = 1, i16 = 2, f16 = 4, bf16 = 5 };

  void add_raw(const std::string& name, const std::vector<int64_t>& shape, Type type, const std::string& data) {
    constexpr size_t kSizes[] = {4, 1, 2, 4, 2, 2};
    variables_ += string(name) + static_cast<char>(shape.size());
    for (const int64_t size : shape) variables_ += bytes_of(static_cast<uint32_t>(size));
    const bool old = version_ < 4;
    variables_ += static_cast<char>(old ? kSizes[type] : to_size(type));
    variables_ += bytes_of(static_cast<uint32_t>(old ? data.size() / kSizes[type] : data.size())) + data;
    count_++;
  }
  template <class T>
  void add_attribute(const std::string& name, T value) {
    add_raw(name, {}, sizeof(T) == 4 ? f32 : sizeof(T) == 2 ? i16 : i8, bytes_of(value));
  }
  // Adds a tensor: matrices in this type, others in float32 or the 16-bit type.
  void add(const ForeignTensor& t, Type type) {
    const bool quantized = (type == i8 || type == i16) && t.shape.size() == 2;
    if (!quantized && (type == i8 || type == i16)) type = f32;
    std::string data, scales;
    const size_t rows = to_size(t.shape[0]), cols = t.values.size() / rows;
    for (size_t r = 0; r < rows; r++) {
      float scale = 1000;
      if (type == i8) {
        float most = 0;
        for (size_t c = 0; c < cols; c++) most = std::max(most, std::abs(t.values[r * cols + c]));
        scale = 127 / most;
        scales += bytes_of(scale);
      }
      for (size_t c = 0; c < cols; c++) {
        const float x = t.values[r * cols + c];
        if (type == f32) data += bytes_of(x);
        if (type == bf16) data += bytes_of(bfloat16(x));
        if (type == f16) data += bytes_of(half(x));
        if (type == i8) data += bytes_of(static_cast<int8_t>(std::nearbyint(x * scale)));
        if (type == i16) data += bytes_of(static_cast<int16_t>(std::nearbyint(x * scale)));
      }
    }
    add_raw(t.name, t.shape, type, data);
    if (type == i8) add_raw(t.name + "_scale", {t.shape[0]}, f32, scales);
  }
  void add_alias(const std::string& alias, const std::string& name) { aliases_.emplace_back(alias, name); }

  std::string bytes(const std::string& specification = "TransformerSpec") const {
    std::string file = bytes_of(version_) + string(specification) + bytes_of(revision_) + bytes_of(count_) + variables_;
    if (version_ < 3) return file;
    file += bytes_of(static_cast<uint32_t>(aliases_.size()));
    for (const auto& [alias, name] : aliases_) file += string(alias) + string(name);
    return file;
  }

  // float16 of a number within its normal range, rounded down.
  static uint16_t half(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023));
  }

 private:
  static std::string string(const std::string& text) {
    return bytes_of(static_cast<uint16_t>(text.size() + 1)) + text + '\0';
  }

  uint32_t version_, revision_, count_ = 0;
  std::string variables_;
  std::vector<std::pair<std::string, std::string>> aliases_;
};

}  // namespace qkv::testing
