// Arrays between Python and C++: inputs are checked and never copied; results are of the same kind as an input.
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "qkv/attention.h"
#include "qkv/bfloat16.h"
#include "qkv/error.h"

namespace qkv::python {

namespace nb = nanobind;
using Shape = std::vector<int64_t>;

// where: the function or class that is called.
template <class... Args>
[[noreturn]] void fail_in(const std::string& where, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(where + ": " + fmt::format(format, std::forward<Args>(args)...));
}

// Returns a text such as "[2, 8, 5]".
std::string to_text(const Shape& shape);

// Returns the row-major strides of a shape.
Shape dense_strides(const Shape& shape);

// Returns the DLPack type of T.
template <class T>
constexpr nb::dlpack::dtype dtype_of() {
  if constexpr (std::is_same_v<T, bfloat16>)
    return {static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1};
  else
    return nb::dtype<T>();
}

// An array of NumPy, or of any library that supports DLPack, in CPU memory.
class Array {
 public:
  // Throws Error, which begins with `where`, if `object` is not such an array, requires a gradient, or is not aligned
  // to its elements.
  Array(std::string where, std::string name, nb::handle object);

  const std::string& where() const { return where_; }
  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  // in elements
  int64_t ndim() const { return static_cast<int64_t>(shape_.size()); }
  int64_t size(int64_t axis) const { return shape_[axis < 0 ? shape_.size() + axis : axis]; }
  int64_t stride(int64_t axis) const { return strides_[axis < 0 ? strides_.size() + axis : axis]; }
  std::string type_name() const;  // as Python names it

  template <class T>
  bool holds() const {
    return type_ == dtype_of<T>();
  }
  // Throws Error if the elements are not of type T.
  template <class T>
  const T* data() const {
    if (!holds<T>()) fail_in(where_, "{} is {}, expected {}", name_, type_name(), expected_name<T>());
    return static_cast<const T*>(data_);
  }
  // Throws Error unless the last axis has stride 1.
  void check_last_axis() const;

 private:
  template <class T>
  static const char* expected_name() {
    if (std::is_same_v<T, int32_t>) return "int32 or int64";
    return std::is_same_v<T, bfloat16> ? "bfloat16" : std::is_same_v<T, double> ? "float64" : "float32";
  }

  std::string where_, name_;
  nb::object object_;
  nb::ndarray<nb::ro> array_;
  nb::dlpack::dtype type_;
  Shape shape_, strides_;
  const void* data_ = nullptr;
};

// Reads integers of 32 or 64 bits from a list or an array with one axis, which is not empty; `expected` describes its
// shape.
std::vector<int64_t> read_integers(const std::string& where, const char* name, nb::handle object, const char* expected);

// Throws Error unless a mask of this shape broadcasts to `full`, [B, H, T, S].
void check_broadcast(const Array& mask, const Shape& full);
// Returns a view that broadcasts to four axes.
template <class T>
AttentionMask<T> broadcast(T* data, const Shape& shape, const Shape& strides);

// Memory aligned to cache lines or, if large, to huge pages.
struct FreeMemory {
  void operator()(void* data) const;
};
using Memory = std::unique_ptr<void, FreeMemory>;
Memory allocate(size_t bytes);

// A dense array to return. Its elements are uninitialized.
class Result {
 public:
  Result() = default;
  Result(const Shape& shape, nb::dlpack::dtype type);

  template <class T>
  T* data() const {
    return static_cast<T*>(memory_.get());
  }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  size_t bytes() const { return bytes_; }
  void fill_with_zeros() { std::memset(memory_.get(), 0, bytes_); }
  // Moves the memory into an array of the same kind as `like`: of PyTorch or another framework with the array API,
  // otherwise of NumPy.
  nb::object release(nb::handle like);

 private:
  Shape shape_, strides_;
  nb::dlpack::dtype type_;
  size_t bytes_ = 0;
  Memory memory_;
};

}  // namespace qkv::python
