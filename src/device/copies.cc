#include "device/copies.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "device/ops/command.h"

namespace qkv {
namespace {

constexpr size_t kAtOnce = size_t{1} << 20;  // numbers that are converted

}  // namespace

template <class T>
void upload(std::span<const float> from, Device<T>* to) {
  Command c("upload");
  if constexpr (std::is_same_v<T, float>) {
    c(c->upload(raw(to), from.data(), from.size_bytes()));
  } else {
    std::vector<T> part;
    for (size_t begin = 0; begin < from.size(); begin += kAtOnce) {
      const auto numbers = from.subspan(begin, std::min(kAtOnce, from.size() - begin));
      part.clear();
      for (const float x : numbers) part.push_back(T(x));
      c(c->upload(raw(to + begin), part.data(), part.size() * sizeof(T)));
    }
  }
}

template <class T>
void download(const Device<T>* from, std::span<float> to) {
  Command c("download");
  if constexpr (std::is_same_v<T, float>) {
    c(c->download(to.data(), raw(from), to.size_bytes()));
  } else {
    std::vector<T> part(std::min(kAtOnce, to.size()));
    for (size_t begin = 0; begin < to.size(); begin += kAtOnce) {
      const auto numbers = to.subspan(begin, std::min(kAtOnce, to.size() - begin));
      c(c->download(part.data(), raw(from + begin), numbers.size() * sizeof(T)));
      std::copy_n(part.begin(), numbers.size(), numbers.begin());
    }
  }
}

template void upload(std::span<const float>, Device<float>*);
template void upload(std::span<const float>, Device<bfloat16>*);
template void download(const Device<float>*, std::span<float>);
template void download(const Device<bfloat16>*, std::span<float>);

}  // namespace qkv
