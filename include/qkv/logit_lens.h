// The logit lens: what a model with a decoder would predict after each of its layers. nostalgebraist, "interpreting GPT:
// the logit lens" (2020).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// A prediction of the next token, from the hidden state of one layer at one position.
struct LensPrediction {
  std::string token;               // the most probable one
  double probability = 0;          // its probability
  int64_t answer_rank = 0;         // of the answer, 1 for the most probable token
  double answer_probability = 0;   // of the answer
};

// The final norm and the output layer are applied to each hidden state (qkv/hidden_states.h). The last one is the
// prediction of the model, whose most probable token is the answer at its position.
struct LogitLens {
  std::string source, target;        // sentence and translation; of a language model the text, and ""
  std::vector<std::string> read;     // the tokens that the decoder has read
  std::vector<std::string> answers;  // of each of them
  std::vector<std::vector<LensPrediction>> layers;  // [layers + 1][tokens]; the first are those of the embeddings
};

// Returns tables for a terminal, with a row for each layer and a column for each token: the most probable token with its
// probability, and the rank of the answer with its probability. Lines have at most 100 columns.
std::string lens_to_text(const LogitLens& lens);

// Returns JSON: {"source", "target", "read", "answers", "layers": [[{"token", "probability", "answer_rank",
// "answer_probability"} …] …]}.
std::string lens_to_json(const LogitLens& lens);

}  // namespace qkv
