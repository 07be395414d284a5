// The hub's description of a repository: GET /api/models/OWNER/NAME/revision/REVISION.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct HubRepository {
  std::string commit;
  std::vector<std::string> files;  // sorted, each a safe path (convert/hub/name.h)
};

// Throws Error, beginning with `where`, if the text is not JSON with a commit in `sha` and files in `siblings`, or if
// the path of a file leads out of the repository or occurs twice.
HubRepository parse_repository(std::string_view text, const std::string& where);

}  // namespace qkv
