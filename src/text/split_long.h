// Cuts a text that is too long for the model into parts that are not.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Parts of line, in order, whose concatenation is line; fits says of each that it is short enough. A line that fits is
// its own only part. Otherwise each part is the longest that fits and ends after a sentence (. ! ? … 。 ！ ？, then a
// space where the script has spaces); where there is none, after a clause (, ; : — ， 、 ； ：), after spaces, or
// between any two characters. Spaces at a cut stay with the part before it. A text is taken not to fit if a shorter one
// does not, so fits is asked some twenty times for a part, of texts up to twice as long as what fits. line is valid
// UTF-8. Throws Error if a single character does not fit.
std::vector<std::string> split_long(std::string_view line, const std::function<bool(std::string_view)>& fits);

}  // namespace qkv
