// The arguments of a module's forward pass in Python, converted for qkv/layers.h.
#pragma once

#include <optional>
#include <vector>

#include "array.h"
#include "qkv/layers.h"

namespace qkv::python {

// As given in Python; None where not given.
struct LayerArguments {
  std::vector<nb::object> inputs;
  nb::object offsets, lengths, memory_offsets, memory_lengths, mask, memory_mask, source_mask;
  Causal causal = Causal::none;
  std::optional<uint64_t> seed;
};

// rows: the rows of an input have nothing to do with each other; ids: the input is token ids; attention: queries, keys
// and values; stack: x and memory; whole: source and target.
enum class LayerKind { rows, ids, attention, stack, whole };

// An array [..., d] as rows of width d.
template <class Real>
class LayerRows {
 public:
  // Throws Error unless rows have equal distances and elements are Real.
  LayerRows(const std::string& where, const char* name, nb::handle object);

  const Shape& shape() const { return array_.shape(); }
  Matrix<const Real> matrix() const { return matrix_; }

 private:
  Array array_;
  Matrix<const Real> matrix_;
};

// A checked forward pass. It keeps the arrays that the module reads.
template <class Real>
class LayerPass {
 public:
  // heads: of the module's attention.
  LayerPass(const std::string& where, LayerKind kind, int64_t heads, const LayerArguments& arguments);

  bool is_of_ids() const { return kind_ == LayerKind::ids; }
  std::span<const int32_t> ids() const { return ids_; }
  std::vector<Matrix<const Real>> inputs() const;
  layers::Call<Real> call() const { return call_; }
  nb::handle like() const { return arguments_.inputs.front(); }
  Shape output_shape(int64_t width) const;
  Shape input_shape(size_t i) const { return rows_[i].shape(); }

 private:
  size_t output_input() const { return kind_ == LayerKind::whole ? 1 : 0; }
  layers::Rows rows_of(const Shape& shape, nb::handle offsets, nb::handle lengths, const char* prefix) const;
  void read_ids();
  void read_rows();
  layers::Masks<Real> masks(const char* name, nb::handle object, const layers::Rows& queries, const layers::Rows& keys,
                            int64_t query_rows, int64_t key_rows);

  std::string where_;
  LayerArguments arguments_;
  LayerKind kind_;
  int64_t heads_;
  std::vector<LayerRows<Real>> rows_;
  std::vector<Array> masks_;
  std::vector<int32_t> ids_;
  Shape leading_;  // of the output: its shape without the last axis
  layers::Call<Real> call_;
};

}  // namespace qkv::python
