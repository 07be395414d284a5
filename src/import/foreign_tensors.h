// The tensors of a model from elsewhere, and how they become parameters of ours.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_view.h"

namespace qkv {

// Numbers of a file that become one parameter: float32, float64, float16 or bfloat16, or integers over a float32 scale.
struct Origin {
  std::string name;                   // of the tensor in its file
  TensorView values;                  // [rows, …]
  std::span<const std::byte> scales;  // float32: one for each row, or one for all; empty for floats
  int64_t columns = 0;                // above 0: the rows are columns of the tensor, which has so many of them
};

// By name of the parameter.
using Origins = std::map<std::string, Origin>;

// A half open range of rows; all of them by default.
struct Rows {
  int64_t begin = 0, end = -1;
};

// Every tensor must find its use, or be let go by name. All views belong to somebody who outlives this.
class ForeignTensors {
 public:
  // `path` names the file in errors. A tensor NAME with a neighbour NAME_scale is integers; see Origin.
  ForeignTensors(std::string path, std::map<std::string, TensorView> tensors);

  const std::string& path() const { return path_; }
  const std::map<std::string, TensorView>& all() const { return tensors_; }
  const TensorView* find(const std::string& name) const;  // null if there is none
  bool has(const std::string& name) const { return find(name) != nullptr; }
  // Throws Error if there is none or it is empty. So what is used has sizes, and products of them, of at most the bytes
  // of its file.
  const TensorView& at(const std::string& name) const;
  // The sizes of one of this rank. Throws Error if there is none or it has another rank.
  std::vector<int64_t> shape(const std::string& name, size_t rank) const;
  // How many of PREFIX0/…, PREFIX1/…, … there are, from 0 on; `suffix` follows the number.
  int64_t count(const std::string& prefix, const std::string& suffix) const;

  // Makes rows of a tensor the origin of a parameter. Throws Error if there is no such tensor, it has not so many rows,
  // its type is not one of numbers, or the parameter has an origin already.
  void use(const std::string& parameter, const std::string& name, Rows rows = {});
  // Its rows, shared out evenly, become the origins of several parameters. Throws Error where they cannot be.
  void use_rows(const std::vector<std::string>& parameters, const std::string& name);
  // The same of the columns of a matrix of floats: column j of a part is row j of its parameter.
  void use_columns(const std::vector<std::string>& parameters, const std::string& name);
  // The same as use() with another shape of as many numbers.
  void use_as(const std::string& parameter, const std::string& name, std::vector<int64_t> shape);
  // A tensor that has no part in the result.
  void let_go(const std::string& name) { used_.insert(name); }
  // Do two tensors hold the same, bit for bit? False where one is not there.
  bool same(const std::string& a, const std::string& b) const;

  // Throws Error that names a tensor which nothing used.
  void refuse_others() const;
  Origins take() { return std::move(origins_); }

 private:
  void add_origin(const std::string& parameter, Origin origin);
  int64_t share(const std::string& name, size_t dimension, size_t parts) const;
  std::span<const std::byte> scales_of(const std::string& name, const TensorView& values);

  std::string path_;
  std::map<std::string, TensorView> tensors_;
  std::set<std::string> used_;
  Origins origins_;
};

// "FILE: tensor "NAME"", the beginning of an error.
std::string in_file(const std::string& path, const std::string& name);

// Some rows of an origin of one dimension or more.
Origin part_of(const Origin& origin, Rows rows);

// The numbers as float32; to.size() is the product of the shape. Throws Error, naming file and tensor, if one is not
// finite.
void read_floats(const Origin& origin, const std::string& path, std::span<float> to);

}  // namespace qkv
