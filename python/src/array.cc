#include "array.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace qkv::python {
namespace {

constexpr size_t kCacheLine = 64, kHugePage = size_t{2} << 20;

std::string type_name_of(nb::handle object) { return nb::inst_name(object).c_str(); }

std::string dtype_text(nb::handle object) { return nb::str(nb::object(object.attr("dtype"))).c_str(); }

// Returns whether `object` has this type of a module; false if the module is not imported.
bool is_of(nb::handle object, const char* module, const char* type) {
  const nb::object loaded = nb::module_::import_("sys").attr("modules").attr("get")(module);
  const nb::object found = nb::getattr(loaded, type, nb::none());
  return !found.is_none() && nb::isinstance(object, found);
}

// NumPy cannot export bfloat16 of ml_dtypes by DLPack. It is exported as uint16.
bool is_numpy_bfloat16(nb::handle object) {
  return is_of(object, "numpy", "ndarray") && dtype_text(object) == "bfloat16";
}

}  // namespace

std::string to_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}

Array::Array(std::string where, std::string name, nb::handle object)
    : where_(std::move(where)), name_(std::move(name)), object_(nb::borrow(object)) {
  if (!nb::hasattr(object, "__dlpack__") || !nb::hasattr(object, "dtype"))
    fail_in(where_, "{} is of type {}, expected an array or tensor", name_, type_name_of(object));
  if (nb::hasattr(object, "requires_grad") && nb::cast<bool>(object.attr("requires_grad")))
    fail_in(where_, "{} requires a gradient, which is not supported: pass {}.detach()", name_, name_);
  bool bits = false;  // bfloat16 as uint16
  if (!nb::try_cast(object, array_, false)) {
    bits = is_numpy_bfloat16(object);
    if (!bits || !nb::try_cast(nb::object(object.attr("view")("uint16")), array_, false))
      fail_in(where_, "{} ({} of {}) cannot be exported by DLPack", name_, type_name_of(object), dtype_text(object));
  }
  if (array_.device_type() != nb::device::cpu::value)
    fail_in(where_, "{} is in the memory of another device (DLPack's number {}), expected the CPU's", name_,
            array_.device_type());
  type_ = bits ? dtype_of<bfloat16>() : array_.dtype();
  shape_.assign(array_.shape_ptr(), array_.shape_ptr() + array_.ndim());
  strides_.assign(array_.stride_ptr(), array_.stride_ptr() + array_.ndim());
  data_ = array_.data();
  if (type_.bits >= 8 && reinterpret_cast<uintptr_t>(data_) % (type_.bits / 8))
    fail_in(where_, "{} is not aligned to its elements of {} bytes", name_, type_.bits / 8);
}

std::string Array::type_name() const { return dtype_text(object_); }

void Array::check_last_axis() const {
  const bool empty = std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
  if (!empty && size(-1) > 1 && stride(-1) != 1)
    fail_in(where_, "{} has stride {} in its last axis, expected 1: make a contiguous copy", name_, stride(-1));
}

std::vector<int64_t> read_integers(const std::string& where, const char* name, nb::handle object,
                                   const char* expected) {
  const bool list = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  const Array array(where, name, list ? nb::module_::import_("numpy").attr("asarray")(object) : nb::borrow(object));
  if (array.ndim() != 1 || array.size(0) < 1)
    fail_in(where, "{} has shape {}, expected {}", name, to_text(array.shape()), expected);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < array.size(0); i++) {
    const int64_t at = i * array.stride(0);
    values.push_back(array.holds<int64_t>() ? array.data<int64_t>()[at] : array.data<int32_t>()[at]);
  }
  return values;
}

void check_broadcast(const Array& mask, const Shape& full) {
  const size_t missing = full.size() - std::min(full.size(), mask.shape().size());
  bool fits = mask.shape().size() <= full.size();
  for (size_t i = missing; fits && i < full.size(); i++) {
    const int64_t n = mask.shape()[i - missing];
    fits = n == full[i] || n == 1;
  }
  if (!fits)
    fail_in(mask.where(), "{} has shape {}, expected one that broadcasts to {}", mask.name(), to_text(mask.shape()),
            to_text(full));
}

template <class T>
AttentionMask<T> broadcast(T* data, const Shape& shape, const Shape& strides) {
  int64_t full[4] = {};  // missing axes and those of size one repeat
  for (size_t i = shape.size(), axis = 4; i-- > 0;)
    if (axis--, shape[i] != 1) full[axis] = strides[i];
  return {data, full[0], full[1], full[2], full[3]};
}

template AttentionMask<float> broadcast(float*, const Shape&, const Shape&);
template AttentionMask<double> broadcast(double*, const Shape&, const Shape&);
template AttentionMask<const float> broadcast(const float*, const Shape&, const Shape&);
template AttentionMask<const double> broadcast(const double*, const Shape&, const Shape&);
template AttentionMask<const uint8_t> broadcast(const uint8_t*, const Shape&, const Shape&);

void FreeMemory::operator()(void* data) const { std::free(data); }

Memory allocate(size_t bytes) {
  const bool huge = bytes >= 2 * kHugePage;
  const size_t alignment = huge ? kHugePage : kCacheLine;
  Memory memory(std::aligned_alloc(alignment, (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment));
  if (!memory) throw std::bad_alloc();
  if (huge) madvise(memory.get(), bytes, MADV_HUGEPAGE);
  return memory;
}

Result::Result(const Shape& shape, nb::dlpack::dtype type)
    : shape_(shape), strides_(dense_strides(shape)), type_(type) {
  int64_t bytes = type.bits / 8;
  bool too_large = false;
  for (const int64_t n : shape) too_large |= __builtin_mul_overflow(bytes, n, &bytes);
  if (too_large || bytes > INT64_MAX / 2) throw std::bad_alloc();
  bytes_ = static_cast<size_t>(bytes);
  memory_ = allocate(bytes_);
}

nb::object Result::release(nb::handle like) {
  const std::vector<size_t> shape(shape_.begin(), shape_.end());
  void* data = memory_.get();
  const nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  memory_.release();
  const auto give = [&]<class Framework>(Framework, nb::dlpack::dtype type) {
    return nb::cast(nb::ndarray<Framework>(data, shape.size(), shape.data(), owner, strides_.data(), type));
  };
  if (is_of(like, "torch", "Tensor")) return give(nb::pytorch{}, type_);
  if (!is_of(like, "numpy", "ndarray") && nb::hasattr(like, "__array_namespace__"))
    return like.attr("__array_namespace__")().attr("from_dlpack")(give(nb::array_api{}, type_));
  if (type_ == dtype_of<bfloat16>())
    return give(nb::numpy{}, nb::dtype<uint16_t>()).attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  return give(nb::numpy{}, type_);
}

}  // namespace qkv::python
