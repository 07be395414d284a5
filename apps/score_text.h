// qkv score perplexity and tokens: how probable a language model finds texts.
#pragma once

#include <string>

#include "qkv/generator.h"

struct ScoreTextOptions {
  std::string run, file = "-";
  bool lines = false, json = false;
  qkv::ScoreOptions score;
};

// Prints the perplexity of a file, or of each of its lines.
void score_perplexity(const ScoreTextOptions& options);
// Prints the log-probability of each token of each line, as JSON lines.
void score_tokens(const ScoreTextOptions& options);
