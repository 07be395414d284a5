// A model in inference, where it computes: on the host, or on a device. Results are on the host, in the arena of the
// context.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/batch.h"
#include "model/inference/row_range.h"
#include "model/layers/context.h"
#include "model/transformer.h"
#include "ops/next_tokens.h"
#include "qkv/config.h"
#include "qkv/matrix.h"

namespace qkv {

constexpr int64_t kEncodedTokens = 192;  // source tokens that are encoded at once, per thread

// Numbers of rows of keys and values: of tokens that the decoder has read, and of tokens of the encoder's output.
struct CacheRows {
  int64_t self = 0, cross = 0;

  CacheRows operator+(const CacheRows& other) const { return {self + other.self, cross + other.cross}; }
  CacheRows operator*(int64_t times) const { return {self * times, cross * times}; }
};

// Keys and values of all layers of a model.
class KeysValues {
 public:
  virtual ~KeysValues() = default;
  // Adds rows of tokens that the decoder reads. For keys and values that grow.
  virtual void grow(int64_t rows) = 0;
  virtual void set_to_zero(RowRange self) = 0;
  // Give the memory of rows back to the system. Their contents are lost; they can be used again.
  virtual void forget_self(RowRange rows) = 0;
  virtual void forget_cross(RowRange rows) = 0;
};

// Tokens of a step whose next tokens are wanted: the best ones, or the logits of all.
struct NextRequest {
  std::span<const RowRange> tokens;        // of the step, one range after the other
  int64_t best = 0;                        // number of best tokens; 0: the logits of all
  std::span<const int32_t> excluded = {};  // from the best, in increasing order
};
struct NextResult {
  NextTokens best = {};
  Matrix<float> logits = {};  // [tokens, V]
};

class InferenceEngine {
 public:
  explicit InferenceEngine(const Transformer<float>& host) : host_(host) {}
  virtual ~InferenceEngine() = default;
  InferenceEngine(const InferenceEngine&) = delete;
  InferenceEngine& operator=(const InferenceEngine&) = delete;

  const ModelConfig& config() const { return host_.config(); }
  // Returns the model in the memory of the host, which computes what no function here does, such as attention weights.
  const Transformer<float>& host() const { return host_; }

  // Return hidden states, [N, d] and [sequences, d], as Transformer does.
  virtual Matrix<float> hidden(const Packed& texts, Context& c) const = 0;
  virtual Matrix<float> last_hidden(const Packed& target, Context& c) const = 0;

  // Returns the bytes of a row of keys and values in all layers.
  virtual int64_t row_bytes() const = 0;
  // Returns rows whose memory is from the arena, or rows that grow, at first none. For a model with a decoder.
  virtual std::unique_ptr<KeysValues> make_rows(const CacheRows& rows, Arena& memory) const = 0;
  virtual std::unique_ptr<KeysValues> make_growing_rows() const = 0;

  // Encodes sources. Assigns keys and values of the encoder's output to the rows of each source.
  virtual void encode(const Packed& sources, std::span<const RowRange> rows, KeysValues& to, Context& c) const = 0;
  // Reads the tokens of a step, whose keys and values are assigned, and returns the result of each request.
  virtual std::vector<NextResult> step(const DecodingStep& step, KeysValues& rows,
                                       std::span<const NextRequest> requests, Context& c) const = 0;

 private:
  const Transformer<float>& host_;
};

// Returns an engine that computes with the model itself, which must outlive it.
std::shared_ptr<const InferenceEngine> make_host_inference(const Transformer<float>& model);

}  // namespace qkv
