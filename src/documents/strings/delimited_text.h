// Text of rows and cells, such as CSV files (RFC 4180).
#pragma once

#include <string>

#include "documents/split_text.h"
#include "qkv/documents.h"

namespace qkv {

// The text in cells is translated, in all columns or in those of the options, if it is prose and no formula ("=A1").
// The first row stays if a column is given by its name. Line ends, separators and quotes stay; a translation that needs
// quotes gets them. Throws Error for a column that is not there.

// The separator is what stands most often in the first row: a comma, a semicolon or a tab. A row "sep=;" before it says
// which. Throws Error for a quoted cell that is not closed or continues behind its quotes.
SplitText split_csv(std::string text, const DocumentOptions& options);

// Cells between tabs. If a quote at the beginning of a cell is not closed at an end of a cell, quotes are ordinary
// characters, and tabs and line ends in translations become spaces.
SplitText split_tsv(std::string text, const DocumentOptions& options);

}  // namespace qkv
