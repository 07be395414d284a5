#include "io/runs/sentence_lengths.h"

#include <filesystem>

#include "core/fields.h"
#include "io/runs/run_config.h"

namespace qkv {

std::optional<SentenceLengths> read_sentence_lengths(const RunDirectory& run) {
  std::error_code error;
  if (!std::filesystem::exists(run.lengths(), error)) return std::nullopt;
  SentenceLengths lengths = read_fields<SentenceLengths>(run, run.lengths());
  visit_fields(lengths, RangeChecker(run.lengths() + ": "));
  return lengths;
}

void write_sentence_lengths(const RunDirectory& run, const std::optional<SentenceLengths>& lengths) {
  if (lengths) write_fields(run.lengths(), *lengths);
}

}  // namespace qkv
