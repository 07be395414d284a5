// Kinds of HTML elements, and the elements that are open at a place of a document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace qkv {

// All names are in lower case.
bool is_void_element(std::string_view name);   // has no content and no end tag, such as <br>
bool is_block_element(std::string_view name);  // ends the sentence before it; unknown elements do not
// The content stays as it is: code, scripts, graphics, media, what is written in a form, and the elements that
// LibreTranslate leaves untranslated.
bool is_kept_element(std::string_view name);

// A stack, not the standard's tree: elements are closed by their end tags, by those of elements around them, and where
// a start tag implies it (<li>a<li>b).
class OpenElements {
 public:
  using Name = const std::string*;  // the same pointer for the same name

  Name intern(const std::string& name) { return &places_.try_emplace(name).first->first; }
  size_t size() const { return open_.size(); }
  bool holds(const std::string& name) const;
  void push(const std::string& name);
  // Closes elements until `count` are open.
  void close_down_to(size_t count);
  // Returns the number of elements that stay open after an end tag. It closes no block around its element.
  std::optional<size_t> count_after_end(const std::string& name) const;
  // Returns the number of elements that stay open before a start tag.
  size_t count_before_start(std::string_view name) const;

 private:
  struct Element {
    Name name;
    size_t blocks;  // open ones, itself included
  };
  std::unordered_map<std::string, std::vector<size_t>> places_;  // of each name in open_
  std::vector<Element> open_;
};

}  // namespace qkv
