// Sentences of the source side of a training text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/parallel_corpus.h"

namespace qkv {

struct SourceSentences {
  std::vector<std::string> abbreviations;  // as in TranslatorRun
};

// Finds the sentences in the source of the text, of a sample if it has more than `most` pairs. `known` are
// abbreviations in addition to those that are found in it. The lines are read in the case of the file, because a
// capital is evidence for the start of a sentence. The result does not depend on the number of threads.
SourceSentences find_sentences(const ParallelCorpus& text, int64_t most, const std::vector<std::string>& known);

}  // namespace qkv
