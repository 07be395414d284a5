// When a file is read, the header is checked against the bytes there are before any view is given out.
#include "io/weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "io/atomic_file.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // bytes, the limit of the format's own implementation

// Returns a member of a tensor's header that is an array of non-negative integers.
std::vector<int64_t> sizes(const json& tensor, const char* member, const std::string& where) {
  const auto place = tensor.find(member);
  if (place == tensor.end() || !place->is_array()) fail("{}: {} must be an array", where, member);
  std::vector<int64_t> values;
  values.reserve(place->size());
  for (const json& value : *place) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
      fail("{}: {} must contain integers between 0 and 2^63 - 1", where, member);
    values.push_back(value.get<int64_t>());
  }
  return values;
}

TensorView tensor_from_json(const json& tensor, std::span<const std::byte> data, const std::string& where) {
  if (!tensor.is_object()) fail("{}: must be a JSON object", where);
  for (const auto& [member, value] : tensor.items())
    if (member != "dtype" && member != "shape" && member != "data_offsets")
      fail("{}: unknown name {} (must be dtype, shape or data_offsets)", where, excerpt(member));
  const auto dtype_text = tensor.find("dtype");
  if (dtype_text == tensor.end() || !dtype_text->is_string()) fail("{}: dtype must be a string", where);
  const auto dtype = dtype_from_name(dtype_text->get_ref<const std::string&>());
  if (!dtype) fail("{}: unknown dtype {}", where, excerpt(dtype_text->get_ref<const std::string&>()));

  std::vector<int64_t> shape = sizes(tensor, "shape", where);
  const std::vector<int64_t> offsets = sizes(tensor, "data_offsets", where);
  if (offsets.size() != 2) fail("{}: data_offsets must have 2 elements (has {})", where, offsets.size());
  const auto begin = static_cast<uint64_t>(offsets[0]), end = static_cast<uint64_t>(offsets[1]);
  if (begin > end || end > data.size())
    fail("{}: data_offsets {} to {} are outside the {} bytes of data", where, begin, end, data.size());
  const auto bytes = byte_count(*dtype, shape);
  if (!bytes) fail("{}: {} overflows", where, describe(*dtype, shape));
  if (*bytes != end - begin)
    fail("{}: {} takes {} bytes, but data_offsets span {}", where, describe(*dtype, shape), *bytes, end - begin);
  return {*dtype, std::move(shape), data.subspan(begin, end - begin)};
}

Metadata metadata_from_json(const json& object, const std::string& path) {
  if (!object.is_object()) fail("{}: __metadata__ is not a JSON object", path);
  Metadata metadata;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) fail("{}: __metadata__ {} is not a string", path, excerpt(name));
    metadata.emplace(name, value.get<std::string>());
  }
  return metadata;
}

std::string in_file(const std::string& path, const std::string& name) {
  return fmt::format("{}: tensor {}", path, excerpt(name));
}

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

Safetensors Safetensors::open(const std::string& path) {
  Safetensors result(path, MappedFile(path));
  const std::span<const std::byte> bytes = result.file_.bytes();
  uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size) fail("{}: not a safetensors file: has only {} bytes", path, bytes.size());
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const std::span<const std::byte> rest = bytes.subspan(sizeof header_size);
  if (header_size > rest.size() || header_size > kMaxHeader)
    fail("{}: not a safetensors file, or truncated: header of {} bytes in a file of {}", path, header_size,
         bytes.size());
  const std::span<const std::byte> data = rest.subspan(header_size);
  const std::string_view header_text(reinterpret_cast<const char*>(rest.data()), header_size);
  if (!header_text.starts_with('{')) fail("{}: not a safetensors file: the header does not begin with {{", path);

  const json header = parse_json(header_text, path);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__")
      result.metadata_ = metadata_from_json(value, path);
    else
      result.tensors_.emplace(name, tensor_from_json(value, data, in_file(path, name)));
  }

  // In the order of their data, each tensor begins where the previous one ends; an empty one precedes its neighbour.
  std::vector<const std::pair<const std::string, TensorView>*> order;
  for (const auto& entry : result.tensors_) order.push_back(&entry);
  const auto place = [](const auto* entry) { return std::pair(entry->second.data.data(), entry->second.data.size()); };
  std::ranges::stable_sort(order, {}, place);
  const std::byte* expected = data.data();
  for (const auto* entry : order) {
    const std::span<const std::byte> tensor = entry->second.data;
    if (tensor.data() != expected)
      fail("{}: data must begin at byte {} (begin at {}): tensors {}", in_file(path, entry->first),
           expected - data.data(), tensor.data() - data.data(), tensor.data() < expected ? "overlap" : "leave a gap");
    expected += tensor.size();
    result.names_.push_back(entry->first);
  }
  if (expected != data.data() + data.size())
    fail("{}: {} bytes at the end belong to no tensor", path, data.data() + data.size() - expected);
  return result;
}

const TensorView* Safetensors::find(const std::string& name) const {
  const auto place = tensors_.find(name);
  return place == tensors_.end() ? nullptr : &place->second;
}

void Safetensors::read(const std::string& name, const std::vector<int64_t>& shape, std::span<float> to) const {
  read(name, DType::f32, shape, std::as_writable_bytes(to));
}

void Safetensors::read(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                       std::span<std::byte> to) const {
  const TensorView* tensor = find(name);
  if (!tensor) fail("{}: is missing (expected {})", in_file(path_, name), describe(dtype, shape));
  if (tensor->dtype != dtype || tensor->shape != shape || tensor->data.size() != to.size())
    fail("{}: must be {} (is {})", in_file(path_, name), describe(dtype, shape),
         describe(tensor->dtype, tensor->shape));
  if (!to.empty()) std::memcpy(to.data(), tensor->data.data(), to.size());
}

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
