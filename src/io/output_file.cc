#include "qkv/output_file.h"

#include "io/atomic_file.h"

namespace qkv {

OutputFile::OutputFile(const std::string& path) : file_(std::make_unique<AtomicFile>(path)) {}
OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view bytes) { file_->write(bytes); }
void OutputFile::overwrite(std::string_view bytes) { file_->overwrite(bytes); }
void OutputFile::commit() { file_->commit(); }

}  // namespace qkv
