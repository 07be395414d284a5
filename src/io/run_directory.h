// The run directory, the unit that people hold: what lies where, and how it is read. docs/run-directory.md describes
// it.
#pragma once

#include <memory>
#include <string>

#include "model/transformer.h"
#include "qkv/train.h"
#include "text/tokenizer.h"

namespace qkv {

class RunDirectory {
 public:
  explicit RunDirectory(std::string root);  // a slash at its end does not matter

  const std::string& root() const { return root_; }
  std::string config() const { return root_ + "/config.json"; }
  std::string training() const { return root_ + "/training.json"; }
  std::string model() const { return root_ + "/model.safetensors"; }    // the weights that are served
  std::string tokenizer() const { return root_ + "/tokenizer.model"; }  // of both sides
  std::string source_tokenizer() const { return root_ + "/source.model"; }
  std::string target_tokenizer() const { return root_ + "/target.model"; }
  std::string metrics() const { return root_ + "/metrics.jsonl"; }
  std::string checkpoints() const { return root_ + "/checkpoints"; }
  std::string state() const { return checkpoints() + "/state.safetensors"; }  // all that resuming needs
  std::string weights(int64_t step) const;                                    // of one evaluation, for averaging

 private:
  std::string root_;
};

struct TokenizerPair {
  Tokenizer source, target;
};

// config.json and training.json. Throws Error, naming file and field.
Recipe load_recipe(const RunDirectory& run);

// Makes the directory with all but weights, whole or not at all. It must not exist.
void create_run(const RunDirectory& run, const Recipe& recipe, const TokenizerPair& tokenizers);

// tokenizer.model for both sides, or source.model and target.model.
TokenizerPair load_tokenizers(const RunDirectory& run);

// What translating needs, from a directory that is not trusted. Throws Error, naming the file.
struct LoadedRun {
  TokenizerPair tokenizers;
  std::unique_ptr<Transformer<float>> model;
  bool lowercase = false;
};
LoadedRun load_run(const std::string& directory);

}  // namespace qkv
