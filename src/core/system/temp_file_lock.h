// Marks of temporary files and directories, by which those of dead processes are found: flock(2), which the system
// releases when a process ends, however it ends.
#pragma once

#include <string>

#include "core/system/file_descriptor.h"

namespace qkv {

// Marks a new file or directory as in use while `file` is open. Returns false if it no longer exists under this path:
// another process may have taken it for one of a dead process before. Without locks of the file system, it cannot have
// done so.
bool lock_temp_file(const FileDescriptor& file, const std::string& path);

// Returns whether no living process has marked it, as far as is known: false on a file system without locks.
bool is_abandoned(const FileDescriptor& file);

}  // namespace qkv
