// Measurements of the library on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/config.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"

namespace qkv {

// What one op on one shape took of a training step.
struct OpTime {
  // "linear 2945 × 128 × 384": a product [M, K] [K, N]; "linear, backward": [N, out] [out, in], and one more as long;
  // "attention 256 × 4 × 32": sequences, heads, width of a head; "layer norm 2945 × 128": rows, columns.
  std::string name;
  double calls = 0;               // a step
  double ms = 0;                  // a step
  double gflops = 0, gbytes = 0;  // a second; bytes of operands and results, each counted once
};

struct TrainBenchmark {
  int64_t target_tokens = 0;  // of a step
  double median_ms = 0, best_ms = 0, mean_ms = 0;
  double tokens_per_second = 0;  // target tokens, by the median
  int64_t parameters = 0;
  int64_t activation_bytes = 0;
  std::vector<OpTime> ops;  // of a profile, the longest first; what they leave of a step is outside the ops
};

struct TrainBenchmarkOptions {
  int64_t steps = 20;      // that are timed, after three that are not
  bool recompute = false;  // compute activations again in backward
  bool profile = false;    // time every op too
};

// Times whole training steps (forward, backward, Adam) of a translator on random sentences of 8 to 16 tokens, about
// `tokens` / 16 of them: the work of nn.Transformer in a usual comparison.
TrainBenchmark benchmark_training(const TranslationRecipe& recipe, int64_t tokens,
                                  const TrainBenchmarkOptions& options);

// The same of a recommender, on random histories of the model's max_length among `items` items, about `tokens` in all.
TrainBenchmark benchmark_training(const RecommendationRecipe& recipe, int64_t items, int64_t tokens,
                                  const TrainBenchmarkOptions& options);

// The same of a language model, on random sequences of the model's max_length of `vocab` kinds of tokens.
TrainBenchmark benchmark_training(const LanguageRecipe& recipe, int64_t vocab, int64_t tokens,
                                  const TrainBenchmarkOptions& options);

struct DecodeBenchmarkOptions {
  int64_t beam = 4, batch = 32;  // sentences of a batch
  int64_t length = 24;           // tokens of every translation
  int64_t workers = 1;           // batches side by side, which share the threads
  bool int8 = false;             // weights and inputs of products in 8 bits
  bool profile = false;          // time every op; with one worker
};

struct DecodeBenchmark {
  int64_t lines = 0, tokens = 0;  // tokens: of the best translation of every line
  double load_ms = 0;             // opening the run, tokenisers included
  double seconds = 0;             // the best of three times over all lines
  double tokens_per_second = 0;
  std::vector<OpTime> ops;  // ms of the whole, as calls are
};

// Times the translation of `lines` with a run, every one to `length` tokens, so that models of any quality do the same
// work; tokenisation is not timed. Throws Error as Translator does, and where the model gives no number.
DecodeBenchmark benchmark_decoding(const std::string& run, const std::vector<std::string>& lines,
                                   const DecodeBenchmarkOptions& options);

struct RecommendBenchmarkOptions {
  std::string run;                      // "": random weights in this shape
  int64_t items = 3416, d_model = 128;  // heads of width 64, or one
  int64_t layers = 2;
  int64_t length = 200;  // events of a history, at most
  int64_t top = 10;
  int64_t requests = 1000;
  bool int8 = false;  // weights and inputs of products in 8 bits
};

struct RecommendBenchmark {
  int64_t items = 0, d_model = 0;
  double load_ms = 0;
  double mean_ms = 0, p50_ms = 0, p99_ms = 0, max_ms = 0;  // of a request
};

// Times requests one by one, names in and names out: of a run those of its users, again and again, else of random
// items. Twenty are not counted. Throws Error as Recommender does, and for sizes that are not positive.
RecommendBenchmark benchmark_recommending(const RecommendBenchmarkOptions& options);

struct GenerationBenchmarkOptions {
  std::string run;  // of a language model; "": random weights in the shape of `model`
  ModelConfig model;
  int64_t batch = 1;     // texts side by side
  int64_t prompt = 64;   // tokens that each begins with
  int64_t tokens = 64;   // that are generated after them
  bool int8 = false;     // weights and inputs of products in 8 bits
  bool profile = false;  // time every op too
};

struct GenerationBenchmark {
  int64_t parameters = 0;
  double load_ms = 0;
  double first_token_ms = 0;     // from the prompts to the first token of every text
  double tokens_per_second = 0;  // of all texts together, after the first ones
  int64_t weight_bytes = 0;      // that a token takes: of all products
  double read_bandwidth = 0;     // bytes a second that all threads read from an array of 256 MiB, beside
  std::vector<OpTime> ops;       // ms of a step after the first token, as calls are

  // Of the tokens a second that reading the weights allows at this bandwidth.
  double bandwidth_share = 0;
};

// Times generation: the most probable token after random prompts, until every text has its tokens. Seven rounds, each
// of generation and of reading memory, after one that is not counted; of these the one with the median share, whose
// steps and reads are medians too. Throws Error as Generator does, and for sizes out of range.
GenerationBenchmark benchmark_generation(const GenerationBenchmarkOptions& options);

// The most float32 operations a second that all threads do together in multiply-adds on registers, with the active
// instruction set: the limit that the speed of a kernel is a share of. Takes about `seconds`.
double measure_fma_peak(double seconds = 0.2);

// The most bytes a second that all threads read together from an array of 256 MiB. Takes about `seconds`.
double measure_read_bandwidth(double seconds = 0.3);

}  // namespace qkv
