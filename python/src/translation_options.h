// Options of documents from Python.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qkv/documents.h"

namespace qkv::python {

DocumentOptions document_options_of(const std::string& format, const std::vector<std::string>& columns,
                                    const std::pair<std::string, std::string>& languages);

}  // namespace qkv::python
