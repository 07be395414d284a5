// Which tensors of another project's model hold which of our parameters. One list serves import and export.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convert/formats/foreign_tensors.h"
#include "qkv/config.h"

namespace qkv {

// How a tensor holds the rows of parameters:
//   rows     as rows
//   columns  as columns: a weight [in, out] where ours is [out, in], as in GPT-2
enum class Layout { rows, columns };

// A tensor and the parameters that it holds. Several parameters alternate in `groups` groups: each group holds an equal
// share of the rows of the first parameter, then of the second, and so on. One group puts the parameters one below the
// other. A group per attention head keeps the queries, keys and values of each head together.
struct TensorRule {
  std::string theirs;
  std::vector<std::string> ours;
  Layout layout = Layout::rows;
  int64_t groups = 1;
  std::vector<int64_t> rows = {};  // of each parameter; empty means that all have the same number of rows
  // Other names for the same numbers. A file may use any of the names; if it uses several, they must be equal.
  std::vector<std::string> aliases = {};
  std::vector<std::string> old_names = {};  // the same in old files; they are not written
  // The shapes of the tensor and of the parameter, if they differ although the numbers are the same.
  struct Reshape {
    std::vector<int64_t> theirs, ours;
  };
  std::optional<Reshape> reshape = {};
  // The parameter has the rows from `first_row` to the end; there must be `last_rows` of them (0: any number). The rows
  // before are written as zeros.
  int64_t first_row = 0, last_rows = 0;
  // Added to every number on import, and subtracted on export: 1 where a class multiplies by 1 + weight.
  double offset = 0;
  // A matrix whose first row is added to every row, and which is written as a row of zeros; "" if none.
  std::string addend = "";
  // Import only: see RowPlaces. Must be even and divide the rows.
  int64_t interleaved = 0;
  // Import only: multiplies the numbers.
  double factor = 1;
};

// A linear layer or a norm: a weight and usually a bias.
struct ModuleRule {
  std::string theirs;
  std::vector<std::string> ours;
  bool bias = true;
  Layout layout = Layout::rows;
  int64_t groups = 1;
  std::vector<int64_t> rows = {};  // as in TensorRule
  double weight_offset = 0;        // the offset of the weight
  // Endings of the names of the two tensors; "" means that there is no old one.
  std::string weight_name = ".weight", bias_name = ".bias", old_weight_name = "", old_bias_name = "";
};

struct TensorMap {
  // The beginning of the names in a model with a head; "" if none. Files of the bare model have the names without it.
  std::string prefix = "";
  std::vector<TensorRule> rules = {};
  std::vector<std::string> unused = {};  // tensors that a file may hold and that have no effect
  // Our vectors that a file lacks, and their lengths. They are zeros, or the model is not exported.
  std::vector<std::pair<std::string, int64_t>> zeros = {};
  std::vector<std::string> heads = {};  // modules after the last hidden state, which are left out and reported

  void add_tensor(TensorRule rule) { rules.push_back(std::move(rule)); }
  void add_module(const ModuleRule& module);
};

// Returns whether the model's norms have a bias.
bool norm_has_bias(const ModelConfig& config);

// Makes the tensors the origins of our parameters, and returns the heads that were left out. Throws Error, naming file
// and tensor, if a tensor is missing, does not have the shape of its rule, differs from an alias, or has no rule.
std::set<std::string> map_tensors(ForeignTensors& tensors, const TensorMap& map);

}  // namespace qkv
