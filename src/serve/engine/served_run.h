// The runs that options name, each with what belongs to it.
#pragma once

#include <string>
#include <vector>

#include "qkv/server.h"

namespace qkv {

struct ServedRun {
  std::string run;             // its directory
  std::string name;            // [A-Za-z0-9._-]{1,64}
  std::string languages = {};  // such as "en-de"; "" if not given
  std::string titles = {};     // a table of titles; "" for none
  std::string glossary = {};   // a file of terms; "" for none
  std::string chat_template = {};
};

// Throws Error for a name that is not allowed or stands for two runs, and for a value of a run that is not served.
std::vector<ServedRun> served_runs(const ServerOptions& options);

}  // namespace qkv
