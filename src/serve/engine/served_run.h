// The runs that options name, each with what belongs to it, and the chains of them.
#pragma once

#include <string>
#include <vector>

#include "qkv/server.h"

namespace qkv {

// A translator of a chain.
struct ChainMember {
  std::string name;            // of its run
  std::string languages = {};  // such as "de-en", of a model with several; "" for others
};

struct ServedRun {
  std::string run;             // its directory
  std::string name;            // [A-Za-z0-9._-]{1,64}
  std::string languages = {};  // such as "en-de"; "" if not given
  std::string titles = {};     // a table of titles; "" for none
  std::string glossary = {};   // a file of terms; "" for none
  std::string chat_template = {};
  std::vector<ChainMember> chain = {};  // of a chain, which has no directory: its translators, in order
};

// Returns the runs, then the chains. Throws Error for a name that is not allowed or stands for two models, for an option
// that names a run that is not served, and for a chain that names such a run.
std::vector<ServedRun> served_runs(const ServerOptions& options);

}  // namespace qkv
