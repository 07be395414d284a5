#include <vector>

#include "core/device.h"
#include "device/accelerator.h"

namespace qkv {

template <class T>
class Uploaded<Device<T>>::Copies : public Accelerator::Upload {
  using Accelerator::Upload::Upload;
};

template <class T>
Uploaded<Device<T>>::Uploaded(std::initializer_list<std::span<const int32_t>> numbers) {
  std::vector<std::span<const std::byte>> bytes;
  for (const std::span<const int32_t> n : numbers) bytes.push_back(std::as_bytes(n));
  copies_ = std::make_unique<Copies>(bytes);
}

template <class T>
Uploaded<Device<T>>::~Uploaded() = default;

template class Uploaded<Device<float>>;
template class Uploaded<Device<bfloat16>>;

}  // namespace qkv
