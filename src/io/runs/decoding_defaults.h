// Values of options of decoding that a model was published with, which are the defaults of its run: decoding.json, and
// summary.json with the values that summaries have instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/runs/run_directory.h"
#include "qkv/decoding.h"
#include "qkv/field.h"

namespace qkv {

// Throws Error, beginning with `name`, for a text before sources that has more than 1,024 bytes.
void check_source_prefix(const std::string& prefix, const std::string& name);

struct DecodingDefaults {
  std::optional<int64_t> beam, min_length, max_length, max_tokens, no_repeat_ngram, top_k;
  std::optional<double> length_penalty, repetition_penalty, temperature, top_p, typical_p, min_p;
  std::optional<EarlyStopping> early_stopping;
  std::optional<Sentences> sentences;
  std::optional<std::string> source_prefix;

  bool operator==(const DecodingDefaults&) const = default;
};

template <class Visitor>
void visit_fields(DecodingDefaults& c, Visitor&& visit) {
  visit("sentences", c.sentences, {"How text is split", "search"});
  visit("source_prefix", c.source_prefix, {"Text to put before each source", "search"});
  visit("beam", c.beam, {"Hypotheses kept per step", "search", between(1, 1024)});
  visit("length_penalty", c.length_penalty, {"Divide scores by length^penalty", "search", between(-10, 10)});
  visit("early_stopping", c.early_stopping, {"When beam search ends", "search"});
  visit("min_length", c.min_length,
        {"Minimum number of tokens before the end token", "search", between(0, kMaxTokens)});
  visit("max_length", c.max_length, {"Maximum number of tokens of a translation", "search", between(1, kMaxTokens)});
  visit("max_tokens", c.max_tokens, {"Maximum number of tokens to generate", "output", between(1, kMaxTokens)});
  visit("repetition_penalty", c.repetition_penalty,
        {"Factor on the log-probability of tokens that occurred before", "repetition", between(0, 1000).without_min()});
  visit("no_repeat_ngram", c.no_repeat_ngram,
        {"Never repeat an n-gram of this size", "repetition", between(0, kMaxTokens)});
  visit("temperature", c.temperature, {"Sample tokens from p^(1/temperature)", "sampling", at_least(0)});
  visit("top_k", c.top_k, {"Sample only from the k most probable tokens", "sampling", between(0, kMaxTokens)});
  visit("top_p", c.top_p, {"Total probability to sample from", "sampling", between(0, 1).without_min()});
  visit("typical_p", c.typical_p, {"Total probability of typical tokens", "sampling", between(0, 1).without_min()});
  visit("min_p", c.min_p, {"Least fraction of the highest probability", "sampling", between(0, 1)});
}

// Throws Error, beginning with `where`, such as "decoding.json: ", for a value outside the range of its option.
void check_defaults(const DecodingDefaults& defaults, const std::string& where);

// Read a file, or return no defaults if there is none. Throw Error, naming file and field.
DecodingDefaults read_decoding_defaults(const RunDirectory& run);
DecodingDefaults read_summary_defaults(const RunDirectory& run);
// Write a file, unless there are no defaults.
void write_decoding_defaults(const RunDirectory& run, const DecodingDefaults& defaults);
void write_summary_defaults(const RunDirectory& run, const DecodingDefaults& defaults);
// Copies both files, if they exist. Throws Error as reading them does.
void copy_decoding_defaults(const RunDirectory& from, const RunDirectory& to);

// Set the options that have a default of the run.
void apply_defaults(const DecodingDefaults& defaults, SamplingOptions& options);
void apply_defaults(const DecodingDefaults& defaults, DecodingOptions& options);

}  // namespace qkv
