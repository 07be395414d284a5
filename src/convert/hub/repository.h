// A repository of the Hugging Face hub: its name, the checks of names that come from outside, and its description,
// which the hub gives for GET /api/models/OWNER/NAME/revision/REVISION.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// hf:OWNER/NAME[/FILE][@REVISION]
struct HubName {
  std::string repository;         // "owner/name", or "name" for the few repositories without an owner
  std::string revision = "main";  // a branch, a tag or a commit
  std::string file;               // path in the repository; "" means a whole model
};

// Returns whether a source of import names a repository of the hub.
bool is_hub_name(std::string_view source);

// Throws Error, naming the source, if a part has characters that the hub does not allow or that could lead out of the
// cache's directory.
HubName parse_hub_name(std::string_view source);

// Returns whether a path stays below the directory that it is relative to, and has no control characters.
bool is_safe_path(std::string_view path);

bool is_commit(std::string_view text);  // 40 hexadecimal digits in lower case

// Returns a text as a part of a URL (RFC 3986). Letters, digits, `-._~` and the characters of `kept` stay as they are.
std::string percent_encode(std::string_view text, std::string_view kept = "");

struct HubRepository {
  std::string commit;
  std::vector<std::string> files;  // sorted, each a safe path (convert/hub/repository.h)
};

// Throws Error, beginning with `where`, if the text is not JSON with a commit in `sha` and files in `siblings`, or if
// the path of a file leads out of the repository or occurs twice.
HubRepository parse_repository(std::string_view text, const std::string& where);

}  // namespace qkv
