#include "fuzz/seeds.h"

namespace qkv::fuzz {
namespace {

// Writes a description of structs that fuzz/arrow_structs.h reads.
class Described {
 public:
  Described& byte(int value) {
    bytes_ += static_cast<char>(value);
    return *this;
  }
  Described& bytes(std::initializer_list<int> values) {
    for (const int value : values) byte(value);
    return *this;
  }
  Described& number(int64_t value) {
    byte(-128);
    return little(value, 8);
  }
  Described& text(const std::string& value) {
    byte(static_cast<int>(value.size()));
    bytes_ += value;
    return *this;
  }
  // A buffer of integers of this width.
  Described& integers(int width, std::initializer_list<int64_t> values) {
    byte(width * static_cast<int>(values.size()));
    for (const int64_t value : values) little(value, width);
    return *this;
  }

  // A schema without flags, whose children follow; dictionary: its values follow those.
  Described& schema(const std::string& format, const std::string& name, int children = 0, bool dictionary = false) {
    return byte(dictionary).text(format).text(name).byte(children);
  }
  // An array without flags, whose buffers follow. nulls: bits of the buffers that are null.
  Described& array(int nulls, int length, int offset = 0, int null_count = 0) {
    return bytes({0, nulls, length, offset, null_count});
  }
  const std::string& done() const { return bytes_; }

 private:
  Described& little(int64_t value, int width) {
    for (int i = 0; i < width; i++) byte(static_cast<int>(value >> (8 * i) & 0xFF));
    return *this;
  }

  std::string bytes_;
};

// A stream without flags, which succeeds.
Described stream() { return Described().bytes({0, 0, 0}).text(""); }

// A single array.
Described single() { return Described().bytes({1, 0, 0}).text(""); }

}  // namespace

void arrow_seeds(const std::filesystem::path& directory) {
  Seeds seeds(directory, "arrow");
  // A log in two chunks, the first one sliced: user, item and time.
  Described log =
      stream().schema("+s", "", 3).schema("u", "user").schema("l", "item").schema("tsu:UTC", "time").byte(1);
  log.array(1, 2, 1).text("");
  log.array(1, 3).text("").integers(4, {0, 1, 3, 6}).text("abbcéc");
  log.array(1, 3).text("").integers(8, {7, -8, 9});
  log.array(1, 3).text("").integers(8, {1, -1'500'000, 1'700'000'000'000'001});
  log.array(1, 1).text("");
  log.array(0, 1, 0, -1).text("\1").integers(4, {0, 2}).text("\xFF\n");
  log.array(0, 1, 0, 1).text("").integers(8, {3});
  log.array(1, 1).text("").integers(8, {INT64_MIN});
  seeds.add(log.done());
  // Columns of texts: 64-bit offsets with nulls, views, and a dictionary.
  seeds.add(
      single().schema("U", "").byte(0).array(0, 3, 1, 1).text("\x0B").integers(8, {0, 1, 3, 3, 4}).text("abcd").done());
  seeds.add(single()
                .schema("vu", "")
                .byte(0)
                .array(1, 2)
                .text("")
                .text(std::string("\5\0\0\0short\0\0\0\0\0\0\0\x0E\0\0\0long\1\0\0\0\2\0\0\0", 32))
                .byte(2)
                .text("x")
                .text("--longer than 12")
                .done());
  Described categories = stream().schema("C", "", 0, true).schema("u", "").byte(0).array(1, 3, 1).text("");
  categories.integers(1, {9, 1, 0, 1}).array(1, 2).text("").integers(4, {0, 1, 2}).text("xy");
  seeds.add(categories.done());
  // Numbers, and a stream that fails after them.
  Described times = Described().bytes({0, 0, 5}).text("no more\nrows").schema("+s", "", 5).schema("f", "a");
  times.schema("g", "b").schema("tdD", "c").schema("L", "d").schema("s", "e").byte(0).array(1, 2).text("");
  times.array(1, 2).text("").integers(4, {0x3FC00000, 0x7F800000}).array(1, 2).text("");
  times.integers(8, {0x41D9'5555'5550'0000, -1}).array(1, 2).text("").integers(4, {-1, 19'000});
  times.array(1, 2).text("").integers(8, {5, -5}).array(1, 2).text("").integers(2, {-1, 300});
  seeds.add(times.done());
  // A slice whose offsets lie beyond the last one, and rows whose number is near 2⁶³.
  Described slice = stream().schema("+s", "", 1).schema("u", "a").byte(0).array(1, 1).text("");
  seeds.add(slice.array(1, 2).text("").integers(4, {0, 100, 2}).text("ab").done());
  Described far = stream().schema("+s", "", 1).schema("n", "a\nb").byte(0).bytes({0, 1}).number(1).number(INT64_MAX);
  seeds.add(far.byte(0).text("").bytes({0, 0}).number(INT64_MAX).number(INT64_MAX).done());
}

}  // namespace qkv::fuzz
