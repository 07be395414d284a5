// Tables and columns of the Arrow C data interface, as the Python module reads them. A value that is read is the one at
// its place in the buffers.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "fuzz/arrow_producer.h"
#include "fuzz/reader.h"
#include "python/src/arrow_chunks.h"

namespace qkv::fuzz {
namespace {

constexpr int64_t kMostRows = 100;  // read of a chunk: arrays without buffers may have any length

// An element of an array: `at` counts from the beginning of its buffers.
struct ArrowElement {
  const ArrowSchemaNode& schema;
  const ArrowArrayNode& array;
  int64_t at;

  std::string_view bytes(size_t buffer, int64_t begin, int64_t size) const {
    const std::string_view all = array.buffer(buffer);
    require(begin >= 0 && size >= 0 && size <= std::ssize(all) && begin <= std::ssize(all) - size,
            "a value is within its buffer");
    return all.substr(static_cast<size_t>(begin), static_cast<size_t>(size));
  }

  template <class T>
  T number(size_t buffer, int64_t index) const {
    T found;
    std::memcpy(&found, bytes(buffer, index * static_cast<int64_t>(sizeof(T)), sizeof(T)).data(), sizeof(T));
    return found;
  }

  // Returns the element that has the value: this one, or the one of the dictionary.
  ArrowElement plain() const {
    require(schema.format != "n", "a value is not null");
    if (array.value.buffers[0]) require(number<uint8_t>(0, at / 8) >> (at % 8) & 1, "a value is not null");
    if (!schema.dictionary) return *this;
    const int64_t index = integer();
    require(index >= 0 && index < array.dictionary->value.length, "an index is within the dictionary");
    return ArrowElement{*schema.dictionary, *array.dictionary, array.dictionary->value.offset + index}.plain();
  }

  int64_t integer() const {
    require(schema.format.size() == 1, "integers have this type");
    switch (schema.format[0]) {
      case 'c':
        return number<int8_t>(1, at);
      case 'C':
        return number<uint8_t>(1, at);
      case 's':
        return number<int16_t>(1, at);
      case 'S':
        return number<uint16_t>(1, at);
      case 'i':
        return number<int32_t>(1, at);
      case 'I':
        return number<uint32_t>(1, at);
      case 'L':
        require(number<int64_t>(1, at) >= 0, "integers fit into 64 bits with a sign");
        [[fallthrough]];
      default:
        return number<int64_t>(1, at);
    }
  }

  std::string_view text() const {
    if (schema.format == "vu") {
      const auto length = number<int32_t>(1, 4 * at), buffer = number<int32_t>(1, 4 * at + 2);
      if (length <= 12) return bytes(1, 16 * at + 4, length);
      require(buffer >= 0 && buffer < array.value.n_buffers - 3, "a view is of a buffer of texts");
      return bytes(2 + static_cast<size_t>(buffer), number<int32_t>(1, 4 * at + 3), length);
    }
    const bool wide = schema.format == "U";
    require(wide || schema.format == "u", "texts have this type");
    const auto offset = [&](int64_t i) { return wide ? number<int64_t>(1, i) : int64_t{number<int32_t>(1, i)}; };
    const int64_t first = offset(at), end = offset(at + 1);
    return first == end ? std::string_view() : bytes(2, first, end - first);
  }

  // Whether this is the time, rounded down to millionths.
  bool is_time(const python::ArrowTime& time) const {
    if (schema.format == "f" || schema.format == "g") {
      const double value = schema.format == "f" ? static_cast<double>(number<float>(1, at)) : number<double>(1, at);
      const double found = static_cast<double>(time.whole) + time.millionths / 1e6;
      return std::abs(found - value) <= 1e-6 + std::abs(value) * 0x1p-52;
    }
    if (!schema.format.starts_with("t")) return time.whole == integer() && time.millionths == 0;
    if (schema.format == "tdD") return time.whole == int64_t{number<int32_t>(1, at)} * 86400 && time.millionths == 0;
    const char unit = schema.format[2];
    const int64_t ticks = unit == 's' ? 1 : unit == 'm' ? 1000 : unit == 'u' ? 1'000'000 : 1'000'000'000;
    const __int128 found = static_cast<__int128>(time.whole) * 1'000'000 + time.millionths;
    const __int128 exact = static_cast<__int128>(number<int64_t>(1, at)) * 1'000'000;
    return found * ticks <= exact && exact < (found + 1) * ticks;
  }
};

void check_column(const python::ArrowColumn& column, const ArrowSchemaNode& schema, const ArrowArrayNode& array,
                  int64_t begin, int64_t rows) {
  for (int64_t i = 0; i < std::min(rows, kMostRows); i++) {
    const ArrowElement element{schema, array, array.value.offset + begin + i};
    attempt([&] {
      const std::string_view text = column.text(i);
      require(text == element.plain().text(), "a text is the one in the buffers");
    });
    attempt([&] {
      const int64_t found = column.integer(i);
      require(found == element.plain().integer(), "an integer is the one in the buffers");
    });
    attempt([&] {
      const python::ArrowTime found = column.time(i);
      require(found.millionths >= 0 && found.millionths < 1'000'000, "a fraction is below 1");
      require(element.plain().is_time(found), "a time is the one in the buffers");
    });
  }
}

void read_all(python::ArrowChunks& chunks, const ArrowProducer& producer) {
  const ArrowSchemaNode& schema = producer.schema();
  const size_t columns = chunks.is_table() ? chunks.columns().size() : 0;
  require(columns == (chunks.is_table() ? schema.children.size() : 0), "a table has the columns of its schema");
  while (chunks.next()) {
    const ArrowArrayNode& chunk = producer.chunk();
    if (!chunks.is_table()) attempt([&] { check_column(chunks.column(), schema, chunk, 0, chunks.rows()); });
    for (size_t i = 0; i < columns; i++)
      attempt([&] {
        check_column(chunks.column(i), *schema.children[i], *chunk.children[i], chunk.value.offset, chunks.rows());
      });
  }
}

}  // namespace

void fuzz_arrow(std::string_view bytes) {
  ArrowProducer producer{ArrowDescription(bytes)};
  attempt([&] {
    if (producer.is_stream()) {
      python::ArrowChunks chunks("table", producer.stream(), [] {});
      read_all(chunks, producer);
    } else {
      python::ArrowSchema& schema = producer.deliver_schema();
      python::ArrowChunks chunks("table", schema, producer.deliver_chunk());
      read_all(chunks, producer);
    }
  });
  producer.check_released();
}

}  // namespace qkv::fuzz
