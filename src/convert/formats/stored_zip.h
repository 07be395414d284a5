// The members of a zip archive that are stored without compression, as parts of the archive's bytes.
//
//   archive = (local header, data)* entry* [end64 locator] end     all little-endian (PKWARE's APPNOTE.TXT)
//
// An entry has the name, sizes and place of a member. end64 and locator replace fields of 16 and 32 bits that are too
// narrow, in archives of more than 4 GB.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct ZipMember {
  std::string_view name;
  std::span<const std::byte> data;
};

// An untrusted archive. The caller keeps its bytes alive.
class StoredZip {
 public:
  // `path` names the archive in errors. Throws Error if a member lies outside the archive, is compressed or encrypted,
  // if its two headers disagree, or if two members have the same name. Checksums are not compared. Allocates less than
  // the size of the archive.
  StoredZip(std::span<const std::byte> bytes, const std::string& path);

  const std::vector<ZipMember>& members() const { return members_; }  // by name
  const ZipMember* find(std::string_view name) const;                 // null if missing

 private:
  std::vector<ZipMember> members_;
};

}  // namespace qkv
