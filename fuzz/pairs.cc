// Parallel text that is checked.
#include <numeric>

#include "fuzz/reader.h"
#include "qkv/corpus.h"

void qkv::fuzz::fuzz_pairs(std::string_view bytes) {
  const MemoryFile file(bytes);
  attempt([&] {
    const PairReport report = check_corpus({file.path()}).train;
    const auto add = [](int64_t sum, const Defect& defect) { return sum + defect.pairs; };
    require(std::accumulate(report.defects.begin(), report.defects.end(), report.kept, add) == report.pairs,
            "every pair is counted once");
  });
}
