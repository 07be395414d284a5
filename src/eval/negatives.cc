#include "eval/negatives.h"

#include <algorithm>

#include "core/fail.h"
#include "core/random.h"
#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "io/weights/safetensors.h"

namespace qkv {
namespace {

constexpr const char* kFormat = "qkv negatives 1";

}  // namespace

Negatives draw_negatives(const Interactions& data, const Split& split, int64_t each, uint64_t seed, bool repeats) {
  Negatives negatives{each, std::vector<int32_t>(to_size(data.user_count() * each))};
  parallel_for(data.user_count(), [&](int64_t user) {
    const auto known = to_size(split.known(data, user, HeldOut::validation));
    const std::span<const int32_t> train = data.of(user).first(known);
    const std::vector<int32_t> rejected = sorted_unique(std::vector<int32_t>(train.begin(), train.end()));
    const bool reject = !repeats && std::ssize(rejected) < data.item_count();
    Random random(seed, Stream::negatives, static_cast<uint64_t>(user));
    for (int64_t i = 0; i < each;) {
      const auto item = static_cast<int32_t>(random.below(static_cast<uint64_t>(data.item_count())));
      if (reject && std::ranges::binary_search(rejected, item)) continue;
      negatives.items[to_size(user * each + i++)] = item;
    }
  });
  return negatives;
}

void save_negatives(const std::string& path, const Negatives& negatives, const std::string& sha256) {
  const auto users = std::ssize(negatives.items) / negatives.each;
  const NamedTensor tensors[] = {
      {"items", {DType::i32, {users, negatives.each}, std::as_bytes(std::span(negatives.items))}}};
  write_safetensors(path, tensors, {{"format", kFormat}, {"sha256", sha256}});
}

Negatives load_negatives(const std::string& path, const Interactions& data, int64_t each, const std::string& sha256) {
  const Safetensors file = Safetensors::open(path);
  if (file.metadata() != Metadata{{"format", kFormat}, {"sha256", sha256}})
    fail("{}: not the negatives of this log: expected metadata format {} and sha256 {}", path, kFormat, sha256);
  if (file.names().size() != 1) fail("{}: expected one tensor, items (found {})", path, file.names().size());
  const std::vector<int64_t> shape = {data.user_count(), each};
  Negatives negatives{each, {}};
  if (const TensorView* found = file.find("items"); found && found->dtype == DType::i32 && found->shape == shape)
    negatives.items.resize(to_size(data.user_count() * each));
  file.read("items", DType::i32, shape, std::as_writable_bytes(std::span(negatives.items)));
  for (const int32_t item : negatives.items)
    if (item < 0 || item >= data.item_count())
      fail("{}: item must be between 0 and {} (is {})", path, data.item_count() - 1, item);
  return negatives;
}

}  // namespace qkv
