// The head of a model for sequence classification, as config.json of transformers and sentence-transformers describes
// it.
#pragma once

#include <string>

#include "convert/model_files.h"
#include "convert/settings.h"
#include "convert/tensor_map.h"
#include "qkv/classifier.h"

namespace qkv {

// How an architecture classifies: the modules of its head after the pooled hidden states, and the tokens of a pair.
struct HeadRule {
  std::string dense, norm = "", output = "classifier";  // modules; "" means none
  HeadActivation activation = HeadActivation::tanh;
  Pooling pooling = Pooling::first;
  bool dense_bias = true;
  int64_t separators = 1;    // end tokens between the texts of a pair
  bool token_types = false;  // whether the second text of a pair has a type of its own (type_vocab_size)
};

// The head of BERT: the pooler of its first token.
HeadRule bert_head(const std::string& pooler);
// The head of RoBERTa and MPNet, which have no pooler and separate the texts of a pair by two tokens.
HeadRule roberta_head();

// Returns whether `architectures` names a class for sequence classification.
bool is_classifier(const Settings& config);

// Returns the labels (id2label) and how logits become scores: as sentence-transformers says in
// config_sentence_transformers.json or config.json, or else problem_type, or else the number of labels. Throws Error,
// naming file and field.
ClassificationConfig read_classification(const ModelFiles& files, const Settings& config, const HeadRule& rule);

// Returns model_max_length of tokenizer_config.json, at most `most`.
int64_t read_text_limit(const ModelFiles& files, int64_t most);

// Adds the tensors of the head.
void add_head(TensorMap& map, const HeadRule& rule, const ModelConfig& model);

}  // namespace qkv
