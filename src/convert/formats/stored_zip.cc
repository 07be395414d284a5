#include "convert/formats/stored_zip.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kEntry = 0x02014b50, kLocalHeader = 0x04034b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator = 0x07064b50;
constexpr uint64_t kEntrySize = 46, kLocalSize = 30, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20,
                   kLongestComment = 65535;
constexpr uint32_t kElsewhere = 0xFFFFFFFF;  // a 32-bit field whose value is in the zip64 field
constexpr uint16_t kEncrypted = 1, kSizesFollow = 8, kZip64 = 1;

// Returns a number inside `bytes`.
template <class T>
T at(Bytes bytes, uint64_t place) {
  T value;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

bool starts_at(Bytes bytes, uint64_t place, uint64_t size, uint32_t signature) {
  return place <= bytes.size() && size <= bytes.size() - place && at<uint32_t>(bytes, place) == signature;
}

struct Directory {
  uint64_t begin = 0, size = 0, count = 0;
};

Directory find_directory(Bytes bytes, const std::string& path) {
  const uint64_t least = bytes.size() > kEndSize + kLongestComment ? bytes.size() - kEndSize - kLongestComment : 0;
  uint64_t end = bytes.size() < kEndSize ? 0 : bytes.size() - kEndSize + 1;
  do {
    if (end <= least) fail("{}: not a complete zip archive: has no directory", path);
    end--;
  } while (!starts_at(bytes, end, kEndSize, kEnd) || at<uint16_t>(bytes, end + 20) != bytes.size() - end - kEndSize);

  Directory d{at<uint32_t>(bytes, end + 16), at<uint32_t>(bytes, end + 12), at<uint16_t>(bytes, end + 10)};
  if (end >= kLocatorSize && at<uint32_t>(bytes, end - kLocatorSize) == kLocator) {
    const uint64_t locator = end - kLocatorSize;
    end = at<uint64_t>(bytes, locator + 8);
    if (!starts_at(bytes.first(locator), end, kEnd64Size, kEnd64))
      fail("{}: not a complete zip archive: has no zip64 directory at byte {}", path, end);
    d = {at<uint64_t>(bytes, end + 48), at<uint64_t>(bytes, end + 40), at<uint64_t>(bytes, end + 32)};
  }
  if (d.begin > end || d.size > end - d.begin || d.count > d.size / kEntrySize)
    fail("{}: zip directory of {} entries in {} bytes at byte {} does not fit into the file", path, d.count, d.size,
         d.begin);
  return d;
}

// A header of a member, as the directory or the place before its data has it.
struct Header {
  uint64_t packed = 0, size = 0, place = 0;

  // Replaces values by those of the zip64 field among the extra fields; false if it lacks one.
  bool widen(Bytes extra) {
    Bytes wide;
    while (extra.size() >= 4) {
      const uint64_t length = std::min<uint64_t>(at<uint16_t>(extra, 2), extra.size() - 4);
      if (at<uint16_t>(extra, 0) == kZip64) wide = extra.subspan(4, length);
      extra = extra.subspan(4 + length);
    }
    for (uint64_t* value : {&size, &packed, &place}) {
      if (*value != kElsewhere) continue;
      if (wide.size() < sizeof *value) return false;
      *value = at<uint64_t>(wide, 0);
      wide = wide.subspan(sizeof *value);
    }
    return true;
  }
};

// Reads the entry at the beginning of `directory`, and removes it there.
ZipMember read_entry(Bytes bytes, const Directory& d, Bytes& directory, const std::string& path) {
  if (!starts_at(directory, 0, kEntrySize, kEntry)) fail("{}: an entry of the zip directory is damaged", path);
  const uint64_t name_size = at<uint16_t>(directory, 28), extra_size = at<uint16_t>(directory, 30),
                 entry_size = kEntrySize + name_size + extra_size + at<uint16_t>(directory, 32);
  if (entry_size > directory.size()) fail("{}: an entry of the zip directory is damaged", path);
  const std::string_view name(reinterpret_cast<const char*>(directory.data() + kEntrySize), name_size);
  const uint16_t flags = at<uint16_t>(directory, 8), method = at<uint16_t>(directory, 10);
  if (flags & kEncrypted) fail("{}: {} must not be encrypted", path, excerpt(name));
  if (method != 0) fail("{}: {} must be stored without compression (method is {})", path, excerpt(name), method);
  Header entry{at<uint32_t>(directory, 20), at<uint32_t>(directory, 24), at<uint32_t>(directory, 42)};
  if (!entry.widen(directory.subspan(kEntrySize + name_size, extra_size)))
    fail("{}: {} has no zip64 sizes", path, excerpt(name));
  directory = directory.subspan(entry_size);

  const Bytes local = bytes.first(d.begin);
  if (!starts_at(local, entry.place, kLocalSize, kLocalHeader))
    fail("{}: {} is not at byte {}", path, excerpt(name), entry.place);
  const uint64_t local_name = at<uint16_t>(local, entry.place + 26),
                 local_extra = at<uint16_t>(local, entry.place + 28), left = local.size() - entry.place - kLocalSize;
  if (local_name + local_extra > left || local_name != name.size() ||
      std::memcmp(local.data() + entry.place + kLocalSize, name.data(), name.size()) != 0)
    fail("{}: {} has another name before its data", path, excerpt(name));
  Header before{at<uint32_t>(local, entry.place + 18), at<uint32_t>(local, entry.place + 22)};
  const bool sizes_follow = at<uint16_t>(local, entry.place + 6) & kSizesFollow;
  const bool wide = before.widen(local.subspan(entry.place + kLocalSize + local_name, local_extra));
  if (entry.packed != entry.size ||
      (!sizes_follow && (!wide || before.size != entry.size || before.packed != entry.packed)))
    fail("{}: the headers of {} state different sizes", path, excerpt(name));
  if (entry.size > left - local_name - local_extra)
    fail("{}: {} of {} bytes does not fit into the file", path, excerpt(name), entry.size);
  return {name, local.subspan(entry.place + kLocalSize + local_name + local_extra, entry.size)};
}

}  // namespace

StoredZip::StoredZip(Bytes bytes, const std::string& path) {
  const Directory d = find_directory(bytes, path);
  Bytes directory = bytes.subspan(d.begin, d.size);
  members_.reserve(d.count);
  for (uint64_t i = 0; i < d.count; i++) members_.push_back(read_entry(bytes, d, directory, path));
  std::ranges::sort(members_, {}, &ZipMember::name);
  const auto twice = std::ranges::adjacent_find(members_, {}, &ZipMember::name);
  if (twice != members_.end()) fail("{}: two members are named {}", path, excerpt(twice->name));
}

const ZipMember* StoredZip::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(members_, name, {}, &ZipMember::name);
  return place != members_.end() && place->name == name ? &*place : nullptr;
}

}  // namespace qkv
