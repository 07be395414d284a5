// Small decoder-only language models, and a run directory with random weights.
#pragma once

#include <functional>
#include <string>

#include "io/runs/run.h"
#include "tests/decode/searcher.h"
#include "tests/support/models.h"

namespace qkv::testing {

// A model of two layers, with widths that do not divide evenly.
inline ModelConfig language_config(int64_t vocab, int64_t max_length) {
  ModelConfig c = config_of(vocab, max_length, true);
  c.encoder_layers = c.source_vocab = 0;
  c.shared_embeddings = false;
  c.positions = Positions::learned;
  return c;
}

// The same model, and variants with the other kinds of attention.
inline std::vector<ModelConfig> language_configs(int64_t vocab, int64_t max_length) {
  std::vector<ModelConfig> configs(9, language_config(vocab, max_length));
  configs[1].positions = Positions::rotary;
  configs[1].attention.key_value_heads = 1;
  configs[1].attention.query_key_norm = true;
  configs[2].positions = Positions::alibi;
  configs[2].attention.softcap = 2;
  configs[3].positions = Positions::none;
  configs[3].attention.window = 3;
  for (const size_t i : {4u, 5u}) {  // as in GPT-NeoX and Phi: a separate output table, without and with a bias
    configs[i].positions = Positions::rotary;
    configs[i].rotary.width = 4;
    configs[i].tied_output = false;
  }
  configs[4].sublayers = Sublayers::parallel;
  configs[4].output_bias = false;
  configs[5].sublayers = Sublayers::parallel_shared_norm;
  configs[6].positions = Positions::none;
  configs[6].attention.relative_buckets = 6;
  configs[6].attention.relative_distance = 7;
  for (const size_t i : {7u, 8u}) {  // as in Gemma 3 and OLMo 2, with layers that differ
    configs[i].positions = Positions::rotary;
    configs[i].attention.query_key_norm = true;
    configs[i].norm.position = i == 7 ? NormPosition::sandwich : NormPosition::branch;
  }
  configs[7].attention.layer_pattern = "lg";
  configs[7].attention.window = 3;
  configs[7].rotary.local_base = 100;
  configs[7].output_softcap = 2;
  configs[8].attention.layer_pattern = "gn";
  configs[8].attention.query_key_norm_over_heads = true;
  return configs;
}

// Writes a byte-level run whose texts never end by themselves, and returns its path. `change` may set weights.
inline std::string make_language_run(const std::string& path, int64_t max_length = 40,
                                     const std::function<void(Transformer<float>&)>& change = {}) {
  Transformer<float> model(language_config(257, max_length));
  randomize(model.parameters(), 3);
  values_of(model.parameters(), "output.bias")[256] = -100;
  if (change) change(model);
  const RunDirectory run(path);
  create_run(run, LanguageRun{model.config(), {.unit = TextUnit::bytes}, {}}, [&](const RunDirectory& partial) {
    save_weights(partial.model(), model.parameters(), model.parameters().values());
  });
  return run.root();
}

}  // namespace qkv::testing
