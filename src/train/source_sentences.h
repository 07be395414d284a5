// Sentences of the source side of a training text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/parallel_corpus.h"

namespace qkv {

struct SourceSentences {
  std::vector<std::string> abbreviations;  // as in TranslatorRun
  int64_t lines = 0, several = 0;          // lines with a sentence, and those of them with several

  // Whether the model translates whole texts, such as paragraphs or documents: most lines have several sentences.
  bool are_texts() const { return 2 * several > lines; }
};

// Finds the sentences in the source of the text, of a sample if it has more than `most` pairs. `known` are
// abbreviations in addition to those that are found in it. The lines are read in the case of the file, because a
// capital is evidence for the start of a sentence. The result does not depend on the number of threads.
SourceSentences find_sentences(const ParallelCorpus& text, int64_t most, const std::vector<std::string>& known);

}  // namespace qkv
