// The run directory, the unit that people hold: what lies where, and how it is read. docs/run-directory.md describes
// it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "io/translation_config.h"
#include "model/transformer.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "text/tokenizer.h"

namespace qkv {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;  // of any file of values

class RunDirectory {
 public:
  explicit RunDirectory(std::string root);  // a slash at its end does not matter

  const std::string& root() const { return root_; }
  std::string config() const { return root_ + "/config.json"; }
  std::string training() const { return root_ + "/training.json"; }
  std::string text() const { return root_ + "/text.json"; }
  std::string recommendation() const { return root_ + "/recommendation.json"; }
  std::string language() const { return root_ + "/language.json"; }
  std::string embedding() const { return root_ + "/embedding.json"; }
  std::string translation() const { return root_ + "/translation.json"; }
  std::string model() const { return root_ + "/model.safetensors"; }    // the weights that are served
  std::string tokenizer() const { return root_ + "/tokenizer.model"; }  // of both sides
  std::string tokenizer_json() const { return root_ + "/tokenizer.json"; }
  std::string source_tokenizer() const { return root_ + "/source.model"; }
  std::string target_tokenizer() const { return root_ + "/target.model"; }
  std::string vocabulary() const { return root_ + "/vocabulary.json"; }  // of both sides
  std::string source_vocabulary() const { return root_ + "/source_vocabulary.json"; }
  std::string target_vocabulary() const { return root_ + "/target_vocabulary.json"; }
  std::string interactions() const { return root_ + "/interactions.safetensors"; }  // the log of a recommender
  std::string users() const { return root_ + "/users.json"; }                       // the names of its users
  std::string items() const { return root_ + "/items.json"; }
  std::string features() const { return root_ + "/features.json"; }   // the names of its items' features
  std::string negatives(int64_t each, int64_t seed) const;            // drawn for an evaluation
  std::string start() const { return root_ + "/start.safetensors"; }  // weights of a warm start
  std::string metrics() const { return root_ + "/metrics.jsonl"; }
  std::string checkpoints() const { return root_ + "/checkpoints"; }
  std::string state() const { return checkpoints() + "/state.safetensors"; }  // all that resuming needs
  std::string weights(int64_t step) const;                                    // of one evaluation, for averaging

 private:
  std::string root_;
};

// config.json. Throws Error, naming file and field.
ModelConfig load_config(const RunDirectory& run);

// config.json and training.json; text.json. Throws Error, naming file and field.
Recipe load_recipe(const RunDirectory& run);
TextConfig load_text(const RunDirectory& run);

// recommendation.json. Throws Error, naming file and field.
RecommendationConfig load_recommendation(const RunDirectory& run);

// translation.json, whose tokens are not looked up. Throws Error, naming file and field.
TranslationConfig load_translation(const RunDirectory& run);

// Makes the directory with what `write` writes into it, whole or not at all. It must not exist.
void make_run(const RunDirectory& run, const std::function<void(const RunDirectory&)>& write);

// What the run of a translator holds but for the weights.
struct RunParts {
  ModelConfig model;
  TokenizerPair tokenizers;
  TranslationConfig translation;
};

// make_run of these parts and what `more` writes.
void create_run(const RunDirectory& run, const RunParts& parts, const std::function<void(const RunDirectory&)>& more);

// For each side a SentencePiece model, a list of pieces, or both.
void write_tokenizers(const RunDirectory& run, const TokenizerPair& tokenizers);
TokenizerPair load_tokenizers(const RunDirectory& run, const std::string& unknown);

// What translating needs, from a directory that is not trusted. Throws Error, naming the file.
struct LoadedRun {
  TokenizerPair tokenizers;
  std::unique_ptr<Transformer<float>> model;
  TranslationTokens translation;
};
LoadedRun load_run(const std::string& directory);

}  // namespace qkv
