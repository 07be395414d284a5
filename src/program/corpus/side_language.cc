#include "program/corpus/side_language.h"

#include <cmath>

#include "core/hash.h"

namespace qkv {
namespace {

constexpr size_t kTable = size_t{1} << 16, kBytes = 4;
constexpr uint32_t kFewest = 20;    // occurrences of a sequence on both sides, for it to count
constexpr int kShortest = 8;        // sequences of a text with a language
constexpr double kEvidence = 0.75;  // mean log-odds of its sequences

// Calls f with the hash of each sequence of the text, in lower case (ASCII), with a space before and after it.
template <class F>
void for_each_sequence(std::string_view text, F&& f) {
  uint32_t window = ' ';
  size_t seen = 1;
  const auto take = [&](unsigned char c) {
    window = window << 8 | (c >= 'A' && c <= 'Z' ? c + 32u : c);
    if (++seen >= kBytes) f(hash_mix(0x2545F4914F6CDD1D, window) >> 48);
  };
  for (const char c : text) take(static_cast<unsigned char>(c));
  take(' ');
}

}  // namespace

SideLanguage::SideLanguage() : counts_{std::vector<uint32_t>(kTable), std::vector<uint32_t>(kTable)} {}

void SideLanguage::add(std::string_view source, std::string_view target) {
  const std::string_view texts[] = {source, target};
  for (size_t side = 0; side < 2; side++)
    for_each_sequence(texts[side], [&](size_t hash) {
      if (counts_[side][hash] == UINT32_MAX) return;
      counts_[side][hash]++;
      total_[side]++;
    });
}

// Returns the mean log-odds of the text's sequences: above 0 for the source; 0 for a text without enough of them.
double SideLanguage::evidence(std::string_view text) const {
  double sum = 0;
  int count = 0;
  for_each_sequence(text, [&](size_t hash) {
    const uint32_t source = counts_[0][hash], target = counts_[1][hash];
    if (uint64_t{source} + target < kFewest) return;
    sum += std::log((source + 0.5) / (total_[0] + 1)) - std::log((target + 0.5) / (total_[1] + 1));
    count++;
  });
  return count < kShortest ? 0 : sum / count;
}

Side SideLanguage::of(std::string_view text) const {
  const double found = evidence(text);
  return found > kEvidence ? Side::source : found < -kEvidence ? Side::target : Side::unknown;
}

}  // namespace qkv
