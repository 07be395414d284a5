// Decompression of gzip files.
#pragma once

#include <string>

#include "core/system/file_descriptor.h"

namespace qkv {

// Returns whether a regular file begins as gzip. Throws Error, naming the path, if it cannot be read.
bool is_gzip(const FileDescriptor& file, const std::string& path);

// Writes the text of a regular gzip file of one or several members to another file. A text that is larger than 1 MiB
// and 256 times the compressed bytes is refused, because it would fill the disk on purpose. Throws Error, naming the
// path, for such a text, for damaged, truncated or further bytes, and if the text cannot be written.
void gunzip(const FileDescriptor& from, const FileDescriptor& to, const std::string& path);

}  // namespace qkv
