#include "io/runs/decoding_defaults.h"

#include <filesystem>

#include "core/fail.h"
#include "core/fields.h"
#include "io/runs/run_config.h"

namespace qkv {
namespace {

template <class Value>
void take(const std::optional<Value>& value, Value& option) {
  option = value.value_or(option);
}

DecodingDefaults read_defaults(const RunDirectory& run, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  DecodingDefaults defaults = read_fields<DecodingDefaults>(run, path);
  check_defaults(defaults, path + ": ");
  return defaults;
}

void write_defaults(const std::string& path, const DecodingDefaults& defaults) {
  if (defaults != DecodingDefaults()) write_fields(path, defaults);
}

}  // namespace

void check_source_prefix(const std::string& prefix, const std::string& name) {
  constexpr size_t kMostBytes = 1024;
  if (prefix.size() > kMostBytes) fail("{} must have at most {} bytes (has {})", name, kMostBytes, prefix.size());
}

void check_defaults(const DecodingDefaults& defaults, const std::string& where) {
  check_ranges(defaults, where);
  check_source_prefix(defaults.source_prefix.value_or(""), where + "source_prefix");
}

DecodingDefaults read_decoding_defaults(const RunDirectory& run) { return read_defaults(run, run.decoding()); }
DecodingDefaults read_summary_defaults(const RunDirectory& run) { return read_defaults(run, run.summary()); }

void write_decoding_defaults(const RunDirectory& run, const DecodingDefaults& defaults) {
  write_defaults(run.decoding(), defaults);
}
void write_summary_defaults(const RunDirectory& run, const DecodingDefaults& defaults) {
  write_defaults(run.summary(), defaults);
}

void copy_decoding_defaults(const RunDirectory& from, const RunDirectory& to) {
  write_decoding_defaults(to, read_decoding_defaults(from));
  write_summary_defaults(to, read_summary_defaults(from));
}

void apply_defaults(const DecodingDefaults& defaults, SamplingOptions& options) {
  take(defaults.repetition_penalty, options.repetition_penalty);
  take(defaults.no_repeat_ngram, options.no_repeat_ngram);
  take(defaults.temperature, options.temperature);
  take(defaults.top_k, options.top_k);
  take(defaults.top_p, options.top_p);
  take(defaults.typical_p, options.typical_p);
  take(defaults.min_p, options.min_p);
}

void apply_defaults(const DecodingDefaults& defaults, DecodingOptions& options) {
  apply_defaults(defaults, static_cast<SamplingOptions&>(options));
  take(defaults.beam, options.beam);
  take(defaults.length_penalty, options.length_penalty);
  take(defaults.early_stopping, options.early_stopping);
  take(defaults.min_length, options.min_length);
  take(defaults.max_length, options.max_length);
}

}  // namespace qkv
