// Writing safetensors.
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "io/atomic_file.h"
#include "io/weights/safetensors.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr size_t kAlignment = 64;  // bytes, of the data in the file

std::string json_name(const std::string& path, const std::string& text) {
  if (find_invalid_utf8(text) != std::string::npos) fail("{}: {} is not UTF-8", path, excerpt(text));
  return json_string(text);
}

std::string header_text(const std::string& path, std::span<const TensorEntry> tensors, const Metadata& metadata) {
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [name, value] : metadata) pairs.push_back(json_name(path, name) + ":" + json_name(path, value));
    members.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(pairs, ",")));
  }
  std::set<std::string_view> names;
  uint64_t begin = 0;
  for (const auto& [name, dtype, shape] : tensors) {
    const auto bytes = byte_count(dtype, shape);
    if (!bytes) fail("{}: tensor {}: {} overflows", path, excerpt(name), describe(dtype, shape));
    if (name == "__metadata__" || !names.insert(name).second)
      fail("{}: tensor {}: the name is reserved or duplicate", path, excerpt(name));
    const uint64_t end = begin + *bytes;
    members.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                  json_name(path, name), dtype_name(dtype), fmt::join(shape, ","), begin, end));
    begin = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  const size_t used = (sizeof(uint64_t) + text.size()) % kAlignment;
  return text.append((kAlignment - used) % kAlignment, ' ');
}

}  // namespace

void write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                       const std::function<void(size_t, WriteBytes)>& data, const Metadata& metadata) {
  const std::string header = header_text(path, tensors, metadata);
  const uint64_t header_size = header.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header_size, 1)));
  file.write(header);
  for (size_t i = 0; i < tensors.size(); i++) {
    const auto& [name, dtype, shape] = tensors[i];
    uint64_t written = 0;
    data(i, [&](std::span<const std::byte> bytes) {
      file.write(bytes);
      written += bytes.size();
    });
    if (written != byte_count(dtype, shape))
      fail("{}: tensor {}: {} with {} bytes of data", path, excerpt(name), describe(dtype, shape), written);
  }
  file.commit();
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, tensor] : tensors) entries.push_back({name, tensor.dtype, tensor.shape});
  write_safetensors(
      path, entries, [&](size_t i, WriteBytes write) { write(tensors[i].tensor.data); }, metadata);
}

}  // namespace qkv
