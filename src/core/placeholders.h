// Texts with placeholders, such as pages made of a template, a style and a script.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace qkv {

// Returns the template with each placeholder replaced by its text. The placeholders are listed in the order of the
// template, which contains each of them. They are searched in the template alone, so the texts may contain them.
std::string fill_in(std::string_view page, std::initializer_list<std::pair<std::string_view, std::string_view>> texts);

// Returns JSON that is safe inside <script>: without "<", no text can close the element or open a comment.
std::string inside_script(std::string_view json);

}  // namespace qkv
