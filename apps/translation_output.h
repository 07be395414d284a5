// How translations are printed.
#pragma once

#include <string>

#include "qkv/translator.h"

// What a line of output shows besides the text.
struct OutputForm {
  bool json = false, n_best = false, scores = false, word_scores = false, alignment = false, attention = false;
};

// The lines of translation `number`, from 0, each with its end: one for each hypothesis, or one object. A plain line is
// `text`, or fields with " ||| " between them: number (of an n-best list), text, alignment, word scores, score.
std::string output_lines(const qkv::Translation& translation, int64_t number, const OutputForm& form);
