// Writes .npz archives (convert/formats/npz.h), valid or not.
#pragma once

#include <cstring>
#include <string>

namespace qkv::testing {

// Returns the bytes of a little-endian number.
template <class T>
std::string number_bytes(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Returns an array; `shape` is "2, 3" or "5,".
inline std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                       bool fortran = false) {
  const std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (" + shape + "), }\n";
  return std::string("\x93NUMPY\1\0", 8) + number_bytes(static_cast<uint16_t>(header.size())) + header + data;
}

// A zip archive whose members are stored. Checksums are 0.
class NpzWriter {
 public:
  void add(const std::string& name, const std::string& data) {
    const auto size = number_bytes(static_cast<uint32_t>(data.size())),
               name_size = number_bytes(static_cast<uint16_t>(name.size()));
    const std::string common = std::string(12, '\0') + size + size + name_size + std::string(2, '\0');  // from flags on
    directory_ += "PK\1\2" + std::string("\x14\0\x14\0", 4) + common + std::string(10, '\0') +
                  number_bytes(static_cast<uint32_t>(members_.size())) + name;
    members_ += "PK\3\4" + std::string("\x14\0", 2) + common + name + data;
    count_++;
  }

  std::string bytes() const {
    const std::string count = number_bytes(count_);
    return members_ + directory_ + "PK\5\6" + std::string(4, '\0') + count + count +
           number_bytes(static_cast<uint32_t>(directory_.size())) +
           number_bytes(static_cast<uint32_t>(members_.size())) + std::string(2, '\0');
  }

 private:
  std::string members_, directory_;
  uint16_t count_ = 0;
};

}  // namespace qkv::testing
