#include "io/runs/saved_interactions.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"
#include "core/to_size.h"
#include "io/atomic_file.h"
#include "io/weights/safetensors.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

constexpr const char* kFormat = "qkv interactions 1";
constexpr size_t kMaxNamesBytes = size_t{1} << 32;

template <class T>
TensorView tensor(DType dtype, const std::vector<T>& values) {
  return {dtype, {std::ssize(values)}, std::as_bytes(std::span(values))};
}

// Reads the one-dimensional tensor of this name, which has at most the bytes of the file.
template <class T>
std::vector<T> read_vector(const Safetensors& file, const std::string& path, const std::string& name, DType dtype) {
  const TensorView* found = file.find(name);
  if (!found || found->dtype != dtype || found->shape.size() != 1)
    fail("{}: tensor {} must be {} with one dimension (is {})", path, name, dtype_name(dtype),
         found ? describe(found->dtype, found->shape) : "missing");
  std::vector<T> values(found->data.size() / sizeof(T));
  file.read(name, dtype, found->shape, std::as_writable_bytes(std::span(values)));
  return values;
}

void check_offsets(const std::string& path, const Interactions& data) {
  const std::vector<int64_t>& offsets = data.offsets;
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != std::ssize(data.events) ||
      !std::ranges::is_sorted(offsets))
    fail("{}: tensor offsets must increase from 0 to {}, the number of events (is {})", path, data.events.size(),
         offsets.empty() ? "empty"
                         : fmt::format("{} numbers from {} to {}", offsets.size(), offsets.front(), offsets.back()));
}

void check_times(const std::string& path, const Interactions& data) {
  if (data.times.size() != data.events.size())
    fail("{}: tensor times must have {} elements, one per event (has {})", path, data.events.size(), data.times.size());
  for (int64_t user = 0; user < data.user_count(); user++)
    if (!std::ranges::is_sorted(data.times_of(user))) fail("{}: tensor times decreases within user {}", path, user);
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

std::vector<std::string> read_names(const std::string& path, const char* what) {
  std::vector<std::string> names = parse_json_strings(read_file(path, kMaxNamesBytes), path);
  if (names.size() > size_t{INT32_MAX}) fail("{}: must have at most {} names (has {})", path, INT32_MAX, names.size());
  std::vector<int32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  const auto name = [&](int32_t i) -> std::string_view { return names[to_size(i)]; };
  std::ranges::sort(order, {}, [&](int32_t i) { return std::pair(name(i), i); });
  if (!order.empty() && name(order[0]).empty()) fail("{}: {} {} has an empty name", path, what, order[0]);
  const auto twice = std::ranges::adjacent_find(order, {}, name);
  if (twice != order.end())
    fail("{}: {}s {} and {} are both {}", path, what, twice[0], twice[1], excerpt(name(twice[0])));
  return names;
}

void write_log(const RunDirectory& run, const SavedInteractions& log) {
  const Interactions& data = log.data;
  std::vector<NamedTensor> tensors = {{"events", tensor(DType::i32, data.events)},
                                      {"offsets", tensor(DType::i64, data.offsets)}};
  if (!data.times.empty()) tensors.push_back({"times", tensor(DType::i64, data.times)});
  write_safetensors(run.interactions(), tensors, {{"format", kFormat}, {"sha256", log.sha256}});
  write_file_atomic(run.users(), pieces_to_json(data.users));
  write_file_atomic(run.items(), pieces_to_json(data.items));
}

SavedInteractions read_log(const RunDirectory& run) {
  const std::string path = run.interactions();
  const Safetensors file = Safetensors::open(path);
  const Metadata& metadata = file.metadata();
  const auto format = metadata.find("format"), sha256 = metadata.find("sha256");
  if (metadata.size() != 2 || format == metadata.end() || format->second != kFormat || sha256 == metadata.end() ||
      !is_sha256(sha256->second))
    fail("{}: metadata must be format {} and a sha256", path, kFormat);
  const bool has_times = file.find("times") != nullptr;
  if (file.names().size() != (has_times ? 3 : 2))
    fail("{}: must have the tensors events, offsets and optionally times (has {} tensors)", path, file.names().size());
  SavedInteractions saved{{}, sha256->second};
  Interactions& data = saved.data;
  data.events = read_vector<int32_t>(file, path, "events", DType::i32);
  data.offsets = read_vector<int64_t>(file, path, "offsets", DType::i64);
  if (has_times) data.times = read_vector<int64_t>(file, path, "times", DType::i64);
  check_offsets(path, data);

  data.users = read_names(run.users(), "user");
  data.items = read_names(run.items(), "item");
  if (data.users.size() + 1 != data.offsets.size())
    fail("{}: must have {} users, as in {} (has {})", run.users(), data.offsets.size() - 1, path, data.users.size());
  for (const int32_t item : data.events)
    if (item < 0 || item >= data.item_count())
      fail("{}: item ids must be between 0 and {}, as in {} (is {})", path, data.item_count() - 1, run.items(), item);
  if (has_times) check_times(path, data);
  return saved;
}

}  // namespace qkv
