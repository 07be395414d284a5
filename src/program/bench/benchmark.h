// Measurements of the library on this machine, for qkv bench.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/cpu/machine_limits.h"  // IWYU pragma: export
#include "qkv/config.h"
#include "qkv/encoder.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"

namespace qkv {

// The time of one op on one shape.
struct OpTime {
  // "linear 2945 × 128 × 384": a product [M, K] [K, N]. "linear, backward": [N, out] [out, in] and a second product of
  // the same size. "attention 256 × 4 × 32": sequences, heads, width of a head. "layer norm 2945 × 128": rows, columns.
  std::string name;
  double calls = 0;               // per step
  double ms = 0;                  // per step
  double gflops = 0, gbytes = 0;  // per second; bytes count each operand and result once
};

struct TrainBenchmark {
  int64_t target_tokens = 0;  // per step
  double median_ms = 0, best_ms = 0, mean_ms = 0;
  double update_ms = 0;          // median of the part of the optimizer
  double tokens_per_second = 0;  // target tokens, from the median
  int64_t parameters = 0;
  int64_t activation_bytes = 0;
  std::vector<OpTime> ops;  // of a profile, longest first; the rest of a step is spent outside ops
};

// The numbers that the linear layers multiply. Benchmarks of training run on the CPU.
enum class HostPrecision { float32, int8 };
constexpr std::array<std::string_view, 2> names_of(HostPrecision) { return {"float32", "int8"}; }

struct TrainBenchmarkOptions {
  int64_t steps = 20;      // timed steps, after three that are not timed
  bool recompute = false;  // recompute activations in the backward pass
  bool profile = false;    // also time every op
  HostPrecision precision = HostPrecision::float32;
};

// Measures training steps (forward, backward, Adam) of a translator on about tokens / 16 random sentences of 8 to 16
// tokens, a usual benchmark of nn.Transformer.
TrainBenchmark benchmark_training(const TranslationRecipe& recipe, int64_t tokens,
                                  const TrainBenchmarkOptions& options);

// The same for a recommender, on random histories of length max_length over `items` items, about `tokens` in total.
TrainBenchmark benchmark_training(const RecommendationRecipe& recipe, int64_t items, int64_t tokens,
                                  const TrainBenchmarkOptions& options);

// The same for a language model with a vocabulary of `vocab` tokens, on random sequences of length max_length.
TrainBenchmark benchmark_training(const LanguageRecipe& recipe, int64_t vocab, int64_t tokens,
                                  const TrainBenchmarkOptions& options);

// The same for an encoder, on random texts of length max_length. The share mask_share of the tokens is predicted.
TrainBenchmark benchmark_training(const EncoderRecipe& recipe, int64_t vocab, int64_t tokens,
                                  const TrainBenchmarkOptions& options);

struct ClusterBenchmarkOptions {
  std::vector<int64_t> ranks = {8, 16, 32, 64};
  std::vector<double> lines = {1e9, 10e9, 25e9};  // bits per second; not used if the network is measured
  int64_t shards = 64;                            // per step, at least as many as ranks
  int64_t tokens = 4096;                          // target tokens per shard, approximately
  int64_t steps = 5;                              // that are timed on this machine
  double speed = 1;                               // of a machine of the cluster, relative to this one
  double efficiency = 0.94;                       // share of a line that carries data: without headers of TCP/IP
  double message_seconds = 15e-6;                 // of a rank, to send a message and to receive one
  double spread = 0.02;                           // standard deviation of the time of a shard, relative to it
  RankOptions launcher;                           // of at least two ranks, whose network is measured; off by default
};

// A step on R machines, predicted.
struct ClusterPrediction {
  int64_t ranks = 0;
  double line = 0;                                             // bits per second
  double step_seconds = 0, efficiency = 0;                     // of one machine's time divided by R times this one
  double synchronous_seconds = 0, synchronous_efficiency = 0;  // if the exchange did not overlap with the computation
};

struct ClusterBenchmark {
  double shard_seconds = 0, update_seconds = 0;  // measured on this machine
  int64_t parameters = 0;
  int64_t measured_ranks = 0;   // between which the network was measured; 0: it was not
  double bytes_per_second = 0;  // that each of them sends and receives
  double message_seconds = 0;
  std::vector<ClusterPrediction> predictions;  // of all ranks for the first line, then for the second one, …
};

// Predicts the time of a training step of a translator on several machines from that of a shard on this one. With a
// launcher, also measures the network between the ranks, and predicts for its speed; ranks above 0 then get nothing.
// Throws Error for sizes out of range, and if the ranks cannot be connected.
std::optional<ClusterBenchmark> benchmark_cluster(const TranslationRecipe& recipe,
                                                  const ClusterBenchmarkOptions& options);

struct DecodeBenchmarkOptions {
  int64_t beam = 4, batch = 32;  // sentences per batch
  int64_t length = 24;           // tokens per translation
  int64_t workers = 0;           // batches in parallel, which share the threads; 0: one per thread, at most 16
  bool int8 = false;             // compute matrix products in 8 bits
  bool profile = false;          // time every op; requires one worker
};

struct DecodeBenchmark {
  int64_t lines = 0, tokens = 0;  // tokens: of the best translation of each line
  double load_ms = 0;             // time to load the run, including tokenizers
  double seconds = 0;             // best of three measurements over all lines
  double tokens_per_second = 0;
  std::vector<OpTime> ops;  // ms and calls in total
};

// Measures the translation of `lines` with a run. Every translation has `length` tokens, so that the work does not
// depend on the quality of the model. Tokenization is not included. Throws Error as Translator does, and if the model
// computes NaN.
DecodeBenchmark benchmark_decoding(const std::string& run, const std::vector<std::string>& lines,
                                   const DecodeBenchmarkOptions& options);

struct RecommendBenchmarkOptions {
  std::string run;                      // "": random weights of the shape below
  int64_t items = 3416, d_model = 128;  // heads have width 64; a narrower model has one head
  int64_t layers = 2;
  int64_t length = 200;  // maximum events per history
  int64_t top = 10;
  int64_t requests = 1000;
  bool int8 = false;  // compute matrix products in 8 bits
};

struct RecommendBenchmark {
  int64_t items = 0, d_model = 0;
  double load_ms = 0;
  double mean_ms = 0, p50_ms = 0, p99_ms = 0, max_ms = 0;  // per request
};

// Measures single requests, from names to names: histories of the users of a run, in turn, or of random items. The
// first twenty are not counted. Throws Error as Recommender does, and for sizes that are not positive.
RecommendBenchmark benchmark_recommending(const RecommendBenchmarkOptions& options);

struct GenerationBenchmarkOptions {
  std::string run;  // of a language model; "": random weights of the shape of `model`
  ModelConfig model;
  int64_t batch = 1;     // texts in parallel
  int64_t prompt = 64;   // tokens per prompt
  int64_t tokens = 64;   // tokens generated per prompt
  int bits = 32;         // 8 or 4: quantize the weights; 32: use them as they are
  bool profile = false;  // also time every op
};

struct GenerationBenchmark {
  int64_t parameters = 0;
  double load_ms = 0;
  double first_token_ms = 0;     // from the prompts to the first token of each text
  double tokens_per_second = 0;  // of all texts together, after the first tokens
  int64_t weight_bytes = 0;      // bytes of weights that are read for each token
  double read_bandwidth = 0;     // bytes per second that all threads read from an array of 256 MiB
  std::vector<OpTime> ops;       // ms and calls per step after the first token

  // tokens_per_second relative to the limit that read_bandwidth sets for reading the weights.
  double bandwidth_share = 0;
};

// Measures generation of the most probable tokens after random prompts. After one round that is not counted, seven
// rounds measure generation and memory bandwidth in turn. The result is the round with the median bandwidth_share,
// where times of steps and reads are medians too. Throws Error as Generator does, and for sizes out of range.
GenerationBenchmark benchmark_generation(const GenerationBenchmarkOptions& options);

}  // namespace qkv
