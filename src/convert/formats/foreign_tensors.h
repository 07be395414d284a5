// The tensors of an imported file, and which of their numbers become which parameters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "io/weights/tensor_view.h"

namespace qkv {

// Where the rows of a parameter lie in a tensor: `group` consecutive rows from `begin`, the next group `stride` rows
// after the start of the last one, and so on. Consecutive rows are a single group.
struct RowPlaces {
  int64_t begin = 0, group = 1, stride = 1;
  // If above 0, the parameter's rows form blocks of this size, and in each block the tensor alternates between rows of
  // the first and of the second half.
  int64_t interleaved = 0;

  int64_t of(int64_t row) const {
    if (interleaved > 0) {
      const int64_t place = row % interleaved, half = interleaved / 2;
      row += 2 * (place % half) + place / half - place;
    }
    return begin + row / group * stride + row % group;
  }
};

// The numbers of one parameter in a file: float32, float64, float16 or bfloat16, integers over a float32 scale, or
// blocks of GGUF.
struct Origin {
  std::string name;                   // of the tensor
  TensorView tensor;                  // the whole tensor; without bytes if all numbers are 0
  std::span<const std::byte> scales;  // float32: one per row of the tensor, or one for all; empty for floats
  std::vector<int64_t> shape;         // of the parameter
  RowPlaces rows;                     // rows of the tensor, or its columns if `transposed`
  bool transposed = false;
  double factor = 1;                          // multiplies every number
  float offset = 0;                           // is added to every number then
  std::shared_ptr<const Origin> addend = {};  // its first row is added to every row; may be null
};

// Origins by parameter name.
using Origins = std::map<std::string, Origin>;

// A part of a tensor that holds one parameter.
struct TensorPart {
  std::vector<int64_t> shape;  // of the parameter
  RowPlaces rows;
  bool transposed = false;
  double factor = 1;  // multiplies every number
  float offset = 0;   // is added to every number then
};

// The tensors of an untrusted file. Every tensor must be used, or ignored by name. The caller keeps the bytes of the
// file alive.
class ForeignTensors {
 public:
  // `path` names the file in errors. Integers in a tensor NAME have their scales in the tensor NAME_scale; see Origin.
  ForeignTensors(std::string path, std::map<std::string, TensorView> tensors);

  const std::string& path() const { return path_; }
  const std::map<std::string, TensorView>& all() const { return tensors_; }
  const TensorView* find(const std::string& name) const;  // null if missing
  bool has(const std::string& name) const { return find(name) != nullptr; }
  // Throws Error if the tensor is missing or empty. The sizes of a tensor that passes, and their products, are at most
  // twice the number of bytes in the file.
  const TensorView& at(const std::string& name) const;
  // Returns the sizes of a tensor. Throws Error if it is missing, empty, or has another rank.
  std::vector<int64_t> shape(const std::string& name, size_t rank) const;
  // Counts the consecutive tensors PREFIX0SUFFIX, PREFIX1SUFFIX, …
  int64_t count(const std::string& prefix, const std::string& suffix) const;

  // Makes a part of a tensor the origin of a parameter. The part must lie inside the tensor. Throws Error if the tensor
  // is missing or does not hold numbers, if columns are taken of integers or blocks, or if the parameter already has an
  // origin.
  void use(const std::string& parameter, const std::string& name, TensorPart part);
  // Adds the first row of another tensor to every row of a parameter. Throws Error if their lengths differ.
  void add_first_row(const std::string& parameter, const std::string& name);
  // Makes a parameter a vector of zeros, which takes no bytes of the file.
  void add_zeros(const std::string& parameter, int64_t size);
  bool is_used(const std::string& name) const { return used_.contains(name); }
  // Marks a tensor and its scales as known to have no part in the result.
  void ignore(const std::string& name);
  // Whether two tensors have the same type, shape, bytes and scales. False if one is missing.
  bool same(const std::string& a, const std::string& b) const;

  // Throws Error, naming a tensor that was neither used nor ignored.
  void refuse_unused() const;
  Origins take() { return std::move(origins_); }

 private:
  Origin whole(const std::string& name);
  std::span<const std::byte> scales_of(const std::string& name, const TensorView& values);

  std::string path_;
  std::map<std::string, TensorView> tensors_;
  std::set<std::string> used_;
  Origins origins_;
};

// "FILE: tensor "NAME"", the beginning of an error.
std::string in_file(const std::string& path, const std::string& name);

// Reads rows [begin, end) of a parameter as float32; to.size() is a multiple of their number. Throws Error, naming file
// and tensor, for a number that is not finite.
void read_floats(const Origin& origin, const std::string& path, int64_t begin, int64_t end, std::span<float> to);

}  // namespace qkv
