#include "convert/formats/npz.h"

#include <string_view>

#include "convert/formats/stored_zip.h"
#include "core/fail.h"
#include "core/json.h"
#include "io/weights/npy.h"

namespace qkv {

std::map<std::string, TensorView> parse_npz(std::span<const std::byte> bytes, const std::string& path) {
  constexpr std::string_view kEnding = ".npy";
  std::map<std::string, TensorView> arrays;
  const StoredZip archive(bytes, path);
  for (const ZipMember& member : archive.members()) {
    const std::string where = fmt::format("{}: {}", path, excerpt(member.name));
    if (!member.name.ends_with(kEnding)) fail("{}: not an array, whose name ends with .npy", where);
    const std::string_view name = member.name.substr(0, member.name.size() - kEnding.size());
    arrays.emplace(name, parse_npy(member.data, where));
  }
  return arrays;
}

}  // namespace qkv
