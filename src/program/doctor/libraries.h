// The versions of the libraries that qkv runs with.
#pragma once

#include <vector>

#include "qkv/doctor.h"

namespace qkv {

// Returns the libraries of this process, with their versions at run time where they have a function for it. libcurl is
// loaded for the question; its version is "" if it is not installed.
std::vector<LibraryVersion> library_versions();

}  // namespace qkv
