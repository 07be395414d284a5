// The output of qkv translate.
#pragma once

#include <string>

#include "qkv/translator.h"

// The contents of a line of output in addition to the text.
struct OutputForm {
  bool json = false, n_best = false, scores = false, word_scores = false, alignment = false, attention = false;
};

// Returns the lines of translation `number`, which counts from 0: one per hypothesis, or one JSON object. A plain line
// is the text, or fields separated by " ||| ": number (of an n-best list), text, alignment, word scores, score.
std::string output_lines(const qkv::Translation& translation, int64_t number, const OutputForm& form);
