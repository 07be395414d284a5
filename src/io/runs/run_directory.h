// The paths of a run directory. docs/run-directory.md describes the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace qkv {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;  // of any JSON file of options

class RunDirectory {
 public:
  explicit RunDirectory(std::string root);  // trailing slashes are removed

  const std::string& root() const { return root_; }
  std::string config() const { return root_ + "/config.json"; }
  std::string training() const { return root_ + "/training.json"; }
  std::string text() const { return root_ + "/text.json"; }
  std::string recommendation() const { return root_ + "/recommendation.json"; }
  std::string language() const { return root_ + "/language.json"; }
  std::string chat() const { return root_ + "/chat.json"; }  // special tokens of the chat templates
  std::string chat_template() const { return root_ + "/chat_template.jinja"; }
  std::string chat_templates() const { return root_ + "/additional_chat_templates"; }
  std::string embedding() const { return root_ + "/embedding.json"; }
  std::string encoder() const { return root_ + "/encoder.json"; }     // how an encoder was trained
  std::string embedder() const { return root_ + "/embedder.json"; }   // how an embedder was trained
  std::string dense() const { return root_ + "/dense.safetensors"; }  // linear layers after the pooling
  std::string classification() const { return root_ + "/classification.json"; }
  std::string classifier() const { return root_ + "/classifier.safetensors"; }  // the weights of the head
  std::string labels() const { return root_ + "/labels.json"; }                 // how a classifier was trained
  std::string decoding() const { return root_ + "/decoding.json"; }             // defaults of options of decoding
  std::string summary() const { return root_ + "/summary.json"; }               // the same for summaries only
  std::string translation() const { return root_ + "/translation.json"; }
  std::string abbreviations() const { return root_ + "/abbreviations.txt"; }
  std::string lengths() const { return root_ + "/lengths.json"; }       // of the sentences of the training text
  std::string model() const { return root_ + "/model.safetensors"; }    // the weights that are served
  std::string tokenizer() const { return root_ + "/tokenizer.model"; }  // of both sides
  std::string tokenizer_json() const { return root_ + "/tokenizer.json"; }
  std::string source_tokenizer() const { return root_ + "/source.model"; }
  std::string target_tokenizer() const { return root_ + "/target.model"; }
  std::string vocabulary() const { return root_ + "/vocabulary.json"; }  // of both sides
  std::string source_vocabulary() const { return root_ + "/source_vocabulary.json"; }
  std::string target_vocabulary() const { return root_ + "/target_vocabulary.json"; }
  std::string interactions() const { return root_ + "/interactions.safetensors"; }  // the log of a recommender
  std::string users() const { return root_ + "/users.json"; }                       // names of its users
  std::string items() const { return root_ + "/items.json"; }
  std::string features() const { return root_ + "/features.json"; }                // names of its item features
  std::string feature_columns() const { return root_ + "/feature_columns.json"; }  // columns of their table
  std::string transitions() const { return root_ + "/transitions.json"; }          // fitted to the validation
  std::string negatives(int64_t each, int64_t seed) const;                         // items drawn for an evaluation
  std::string start() const { return root_ + "/start.safetensors"; }               // weights that training started from
  std::string base() const { return root_ + "/base.json"; }                        // of an adapter: the run it changes
  std::string adapter_config() const { return root_ + "/adapter_config.json"; }    // as PEFT writes it
  std::string adapter_weights() const { return root_ + "/adapter_model.safetensors"; }
  std::string metrics() const { return root_ + "/metrics.jsonl"; }
  std::string checkpoints() const { return root_ + "/checkpoints"; }
  std::string state() const { return checkpoints() + "/state.safetensors"; }        // everything that resuming needs
  std::string rollback() const { return checkpoints() + "/rollback.safetensors"; }  // the state to return to
  std::string lock() const { return checkpoints() + "/lock"; }  // of the process that trains the run
  std::string weights(int64_t step) const;                      // at one evaluation, for averaging

 private:
  std::string root_;
};

}  // namespace qkv
