// Reads .npz files whose members are stored, not deflated: a zip archive of .npy arrays, as numpy.savez writes it.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv::testing {

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;  // row-major; float32, int64 and bool are all exact here up to 2^53

  template <class T>
  std::vector<T> as() const {
    return {values.begin(), values.end()};
  }
};

template <class T>
T read_little_endian(std::string_view bytes, size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) fail("npz: ends after {} bytes", bytes.size());
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class T>
void append(std::string_view data, int64_t count, std::vector<double>& values) {
  for (int64_t i = 0; i < count; i++)
    values.push_back(static_cast<double>(read_little_endian<T>(data, to_size(i) * sizeof(T))));
}

// '\x93NUMPY' major minor u16:length header data; header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
inline Array parse_npy(std::string_view npy, const std::string& name) {
  const size_t length = read_little_endian<uint16_t>(npy, 8);
  const std::string_view header = npy.substr(10, length), data = npy.substr(std::min(npy.size(), 10 + length));
  Array array;
  int64_t count = 1;
  for (size_t at = header.find('(') + 1; at < header.size() && header[at] != ')'; at++)
    if (std::isdigit(static_cast<unsigned char>(header[at]))) {
      size_t digits = 0;
      array.shape.push_back(std::stoll(std::string(header.substr(at)), &digits));
      count *= array.shape.back();
      at += digits - 1;
    }
  if (header.find("'<f4'") != header.npos) {
    append<float>(data, count, array.values);
  } else if (header.find("'<i8'") != header.npos) {
    append<int64_t>(data, count, array.values);
  } else if (header.find("'|b1'") != header.npos) {
    append<uint8_t>(data, count, array.values);
  } else {
    fail("npz: array {} is not of float32, int64 or bool: {}", name, header);
  }
  return array;
}

// The arrays by name, without those of text ("meta").
inline std::map<std::string, Array> read_npz(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read", path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::string_view all = bytes;
  std::map<std::string, Array> arrays;
  for (size_t at = 0; read_little_endian<uint32_t>(all, at) == 0x04034b50;) {  // local file headers
    uint64_t size = read_little_endian<uint32_t>(all, at + 18);
    const size_t name_length = read_little_endian<uint16_t>(all, at + 26);
    const size_t extra_length = read_little_endian<uint16_t>(all, at + 28);
    if (read_little_endian<uint16_t>(all, at + 8) != 0) fail("{}: compressed", path);
    if (size == 0xFFFFFFFF) size = read_little_endian<uint64_t>(all, at + 30 + name_length + 12);  // the zip64 field
    const std::string name(all.substr(at + 30, name_length - std::strlen(".npy")));
    const size_t begin = at + 30 + name_length + extra_length;
    if (begin > all.size() || all.size() - begin < size) fail("{}: ends within {}", path, name);
    if (name != "meta") arrays[name] = parse_npy(all.substr(begin, size), name);
    at = begin + size;
  }
  return arrays;
}

}  // namespace qkv::testing
