// The adapter of a run that was trained with LoRA: a reference to its base run, adapter_config.json and
// adapter_model.safetensors in the layout of PEFT, and the place of each module in the base. A text head that is
// trained with it has a file of its own (io/runs/text_head_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/runs/run_directory.h"
#include "model/transformer.h"

namespace qkv {

// A linear layer of another project, or of ours, that has an update s B A.
struct AdapterModule {
  std::string name;                     // "model.encoder.layers.0.self_attn.q_proj"
  std::vector<std::string> parameters;  // ours, whose rows are the rows of B
  int64_t groups = 1;                   // number of groups of rows in which they alternate (convert/tensor_map.h)
};

struct Adapter {
  std::string base;         // path of the base run
  std::string sha256;       // of its model.safetensors
  int64_t rank = 0;         // r
  double alpha = 0;         // s = alpha / r
  bool transposed = false;  // whether the modules of the other project store weights as [in, out]
  std::string task;         // of PEFT: "CAUSAL_LM", "SEQ_2_SEQ_LM" or "FEATURE_EXTRACTION"
  std::vector<AdapterModule> modules;

  double scale() const { return alpha / static_cast<double>(rank); }
  // The adapters as a model has them. Their names are those of PEFT's tensors.
  std::vector<Transformer<float>::Adapter> of_model() const;
};

// Whether a run is an adapter of another run.
bool has_adapter(const RunDirectory& run);
// Reads base.json. Throws Error, naming file and field.
Adapter read_adapter(const RunDirectory& run);
// Writes base.json and adapter_config.json.
void write_adapter(const RunDirectory& run, const Adapter& adapter);
// Writes adapter_model.safetensors. `values` have the layout of `list`, which ends with the parameters of the adapter.
// metadata: that the file also has.
void write_adapter_weights(const RunDirectory& run, const Adapter& adapter, const ParameterList<float>& list,
                           std::span<const float> values, const std::map<std::string, std::string>& metadata = {});

// Returns the SHA-256 of a file.
std::string sha256_of_file(const std::string& path);

// Loads the base of an adapter for training, without the layers that `config` lacks. Throws Error if it is missing, has
// changed, is quantized, or has other parameters than `config`.
std::unique_ptr<Transformer<float>> load_base(const RunDirectory& run, const Adapter& adapter,
                                              const ModelConfig& config);

// Returns the file of the weights of a run, or of its adapter.
std::string weights_of(const RunDirectory& run);
// Whether a run has weights: those of a training run are missing before its first evaluation.
bool has_weights(const RunDirectory& run);
// Loads the weights of a run. Those of an adapter are added to the weights of its base.
std::unique_ptr<Transformer<float>> load_run_model(const RunDirectory& run, const ModelConfig& config,
                                                   const ItemInputs& items = {});

}  // namespace qkv
