// Lengths of the pairs of a training text.
#pragma once

#include <cstdint>
#include <optional>

#include "io/runs/sentence_lengths.h"
#include "io/runs/translation_config.h"
#include "text/parallel_corpus.h"

namespace qkv {

// Measures the pairs of the text that are trained on: those of 1 to `max_length` tokens on each side, of a sample if it
// has more than some 50,000. Returns nothing if there are fewer than 1,000. The result does not depend on the number of
// threads.
std::optional<SentenceLengths> measure_lengths(const ParallelCorpus& text, const TokenizerPair& tokenizers,
                                               int64_t max_length);

// Returns the lengths of a text that a model is trained on after another one, whose lengths are perhaps not known.
std::optional<SentenceLengths> with_earlier(std::optional<SentenceLengths> lengths,
                                            const std::optional<SentenceLengths>& earlier, int64_t max_length);

}  // namespace qkv
