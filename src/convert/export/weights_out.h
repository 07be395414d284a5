// model.safetensors with the tensor names of a class of transformers.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/export/model_class.h"
#include "io/runs/run_directory.h"
#include "io/weights/safetensors.h"
#include "model/transformer.h"
#include "qkv/export.h"

namespace qkv {

// The token that is added behind the vocabulary of a translator: translations start from it, and it is never generated.
// Its vector is zero, because the decoder's first position takes that of `start`, the token that the model starts from
// (none if that is zero, too).
struct StartRow {
  std::optional<int32_t> start;
};

// Writes the tensors, with one of them in memory at a time, and returns how many numbers were written. With `added` the
// class has a token more than the model. `head`: the parameters of a head of labels, which go before those of the
// model; may be null. Throws Error, naming file and parameter of the run, for a number that is too large for the type,
// and for one that is not 0 where the class has none.
int64_t write_tensors(const std::string& path, const RunDirectory& run, const Transformer<float>& model,
                      const ModelClass& model_class, ExportType type, const std::optional<StartRow>& added = {},
                      const Safetensors* head = nullptr);

// Writes tensors of a file, whose path `where` is, under other names.
int64_t write_renamed(const std::string& path, const Safetensors& from, const std::string& where,
                      const std::vector<std::pair<std::string, std::string>>& names, ExportType type);

}  // namespace qkv
