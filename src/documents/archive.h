// Zip archives in memory, such as the files of office programs. Archives are hostile until checked: members that are
// read have limits on their number, their size and their ratio of compression.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct ArchiveMember {
  std::string name, bytes;
};

// Returns the members whose names are wanted, decompressed, in their order. Throws Error for an archive that is damaged
// or encrypted, that has more than 65,536 members, and for members that have more than most_bytes together or are
// compressed to less than a thousandth.
std::vector<ArchiveMember> read_members(const std::string& archive,
                                        const std::function<bool(std::string_view name)>& is_wanted,
                                        uint64_t most_bytes);

// Returns the archive with the bytes of these members replaced. All other members keep their compressed bytes, and
// every member its place and its time. Replaced ones are compressed unless they were stored. If no member differs, the
// archive keeps its bytes.
std::string replace_members(const std::string& archive, std::span<const ArchiveMember> members);

}  // namespace qkv
