// Checkpoints of PyTorch in both containers, made by hand: the opcodes of pickles, and stored zip archives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/weights/safetensors.h"
#include "io/weights/tensor_view.h"

namespace qkv::testing::pickled {

template <class T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline const std::string kProto("\x80\2", 2), kStop = ".", kMark = "(", kReduce = "R", kNone = "N", kNo = "\x89";

inline std::string text(std::string_view value) {
  return "X" + number(static_cast<uint32_t>(value.size())) + std::string(value);
}
inline std::string integer(int64_t value) {
  if (value >= 0 && value < 256) return "K" + number(static_cast<uint8_t>(value));
  return "\x8a\x08" + number(value);
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string tuple(const std::vector<std::string>& items) {
  std::string bytes = kMark;
  for (const std::string& item : items) bytes += item;
  return bytes + "t";
}
inline std::string integers(const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}
inline std::string call(const std::string& function, const std::vector<std::string>& arguments) {
  return function + tuple(arguments) + kReduce;
}
inline std::string ordered() { return call(global("collections", "OrderedDict"), {}); }
// A dictionary of these keys and values.
inline std::string dictionary(const std::vector<std::pair<std::string, std::string>>& members,
                              const std::string& empty = "}") {
  std::string bytes = empty + kMark;
  for (const auto& [key, value] : members) bytes += text(key) + value;
  return bytes + "u";
}
inline std::string file(const std::string& value) { return kProto + value + kStop; }

inline const char* storage_class(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "FloatStorage";
    case DType::f64:
      return "DoubleStorage";
    case DType::f16:
      return "HalfStorage";
    case DType::bf16:
      return "BFloat16Storage";
    case DType::i64:
      return "LongStorage";
    case DType::i32:
      return "IntStorage";
    case DType::i16:
      return "ShortStorage";
    case DType::i8:
      return "CharStorage";
    case DType::u8:
      return "ByteStorage";
    default:
      return "BoolStorage";
  }
}
inline std::string storage(std::string_view key, int64_t elements, const std::string& type = "FloatStorage",
                           const std::string& more = "") {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), integer(elements) + more}) + "Q";
}
inline std::string tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& sizes,
                          const std::vector<int64_t>& strides) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {storage, integer(offset), integers(sizes), integers(strides), kNo, ordered()});
}

inline std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}
inline int64_t elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// The state dictionary of these tensors, with the attribute that torch gives it.
inline std::string state(const std::vector<NamedTensor>& tensors, const std::string& more = "") {
  std::vector<std::pair<std::string, std::string>> members;
  for (const NamedTensor& t : tensors) {
    const int64_t count = elements(t.tensor.shape);
    members.emplace_back(t.name,
                         tensor(storage(std::to_string(members.size()), count, storage_class(t.tensor.dtype), more), 0,
                                t.tensor.shape, row_major(t.tensor.shape)));
  }
  return file(dictionary(members, ordered()) + dictionary({{"_metadata", ordered()}}) + "b");
}

inline std::string bytes_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

// A member of an archive. Sizes and method are as they should be, unless a test changes them.
struct Member {
  std::string name, data;
  uint32_t size = static_cast<uint32_t>(data.size()), local_size = size;
  uint16_t method = 0, flags = 0;
  std::string local_name = name;
};

inline std::string zip(const std::vector<Member>& members) {
  std::string bytes, directory;
  const auto header = [](const Member& m, uint32_t size, const std::string& name) {
    return number(m.flags) + number(m.method) + number(uint32_t{0}) + number(uint32_t{0}) + number(size) +
           number(size) + number(static_cast<uint16_t>(name.size())) + number(uint16_t{0});
  };
  for (const Member& m : members) {
    directory += "PK\1\2" + number(uint32_t{20}) + header(m, m.size, m.name) + number(uint32_t{0}) +
                 number(uint16_t{0}) + number(uint32_t{0}) + number(static_cast<uint32_t>(bytes.size())) + m.name;
    bytes += "PK\3\4" + number(uint16_t{20}) + header(m, m.local_size, m.local_name) + m.local_name + m.data;
  }
  const auto count = static_cast<uint16_t>(members.size());
  return bytes + directory + "PK\5\6" + number(uint32_t{0}) + number(count) + number(count) +
         number(static_cast<uint32_t>(directory.size())) + number(static_cast<uint32_t>(bytes.size())) +
         number(uint16_t{0});
}

// The same with the fields of zip64, as archives beyond 4 GiB need them: sizes and places are in extra fields, and a
// second end record has those of the directory.
inline std::string zip64(const std::vector<Member>& members) {
  const std::string elsewhere(4, '\xff');
  std::string bytes, directory;
  const auto header = [&](const Member& m, uint16_t extra) {
    return number(m.flags) + number(m.method) + number(uint32_t{0}) + number(uint32_t{0}) + elsewhere + elsewhere +
           number(static_cast<uint16_t>(m.name.size())) + number(extra);
  };
  const auto wide = [](const Member& m, uint16_t size) {
    return number(uint16_t{1}) + number(size) + number(uint64_t{m.size}) + number(uint64_t{m.size});
  };
  for (const Member& m : members) {
    directory += "PK\1\2" + number(uint32_t{45}) + header(m, 28) + number(uint32_t{0}) + number(uint16_t{0}) +
                 number(uint32_t{0}) + elsewhere + m.name + wide(m, 24) + number(uint64_t{bytes.size()});
    bytes += "PK\3\4" + number(uint16_t{45}) + header(m, 20) + m.name + wide(m, 16) + m.data;
  }
  const uint64_t begin = bytes.size(), end = begin + directory.size(), count = members.size();
  return bytes + directory + "PK\6\6" + number(uint64_t{44}) + number(uint32_t{45 | 45 << 16}) + number(uint64_t{0}) +
         number(count) + number(count) + number(uint64_t{directory.size()}) + number(begin) + "PK\6\7" +
         number(uint32_t{0}) + number(end) + number(uint32_t{1}) + "PK\5\6" + number(uint32_t{0}) + elsewhere +
         elsewhere + elsewhere + number(uint16_t{0});
}

inline std::string zip_checkpoint(const std::vector<NamedTensor>& tensors,
                                  std::string (*archive)(const std::vector<Member>&) = zip) {
  std::vector<Member> members = {{"model/data.pkl", state(tensors)}, {"model/byteorder", "little"}};
  for (const NamedTensor& t : tensors)
    members.push_back({"model/data/" + std::to_string(members.size() - 2), bytes_of(t.tensor)});
  return archive(members);
}

// The pickles before that of the objects.
inline std::string old_header() {
  return kProto + std::string("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13) + file(integer(1001)) +
         file(dictionary({{"protocol_version", integer(1001)}, {"little_endian", "\x88"}}));
}
inline std::string old_checkpoint(const std::vector<NamedTensor>& tensors) {
  std::string keys = "](", data;
  for (const NamedTensor& t : tensors) {
    keys += text(std::to_string(&t - tensors.data()));
    data += number(elements(t.tensor.shape)) + bytes_of(t.tensor);
  }
  return old_header() + state(tensors, kNone) + file(keys + "e") + data;
}

// All tensors of a file. They are valid as long as it.
inline std::vector<NamedTensor> tensors_of(const Safetensors& file) {
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file.names()) tensors.push_back({name, *file.find(name)});
  return tensors;
}

}  // namespace qkv::testing::pickled
