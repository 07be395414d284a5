// Decompression of files in gzip (RFC 1952) and Zstandard (RFC 8878).
#pragma once

#include <string>
#include <string_view>

#include "core/system/file_descriptor.h"

namespace qkv {

enum class Compression { none, gzip, zstd };

// Returns how a regular file is compressed, by its first bytes. Throws Error, naming the path, if it cannot be read.
Compression compression_of(const FileDescriptor& file, const std::string& path);

// Returns the program that unpacks such files: "gunzip" or "unzstd".
std::string_view unpacker_of(Compression compression);

// Writes the text of a regular file to another one. The file has one or several members of gzip or frames of zstd, and
// `compression` is not none. A text that is larger than 1 MiB and 256 times the compressed bytes is refused, because it
// would fill the disk on purpose. So is a frame of zstd with a window of more than 8 MiB that is larger than any such
// text, or of more than 128 MiB, because it would take that much memory. Throws Error, naming the path, for these, for
// damaged, truncated or further bytes, and if the text cannot be written.
void decompress(const FileDescriptor& from, const FileDescriptor& to, Compression compression, const std::string& path);

}  // namespace qkv
