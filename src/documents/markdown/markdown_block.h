// The text and inline markup of a block of Markdown: a paragraph, a heading, a cell.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "documents/inline_run.h"
#include "documents/markdown/markdown_events.h"
#include "documents/markdown/markdown_mask.h"
#include "documents/split_text.h"

namespace qkv {

// A line end within a block.
struct MarkdownBreak {
  size_t begin = 0, end = 0;  // bytes of the line end
  size_t next = 0;            // where the content of the next line begins
  bool is_hard = false;
};

// The end of "[label]" or "[label][]", whose text is also the name of the link's definition.
struct MarkdownLabel {
  size_t at = 0, end = 0;  // bytes of the end
  ByteRange label = {};    // bytes of the name
};

struct MarkdownBlock {
  std::vector<std::vector<RunItem>> runs = {};  // texts of parts: markup of HTML's blocks separates them
  std::vector<MarkdownBreak> breaks = {};
  std::vector<MarkdownLabel> labels = {};
  size_t begin = 0;         // of the content
  bool has_hashes = false;  // "# heading"
};

// Reads the blocks of a document. The names of elements in the items live as long as the reader.
class MarkdownBlockReader {
 public:
  MarkdownBlockReader(const SplitText& document, const MaskedMarkdown& masked) : document_(document), masked_(masked) {}

  // Reads a block from its events between those that enter and leave blocks; is_cell: of a table. Returns a block
  // without texts if it has none, or the bytes between its texts are not the markup that md4c reports.
  MarkdownBlock read(std::span<const MarkdownEvent> events, bool is_cell);

 private:
  struct Span {
    enum class Form { marks, link, image, angle, bare };
    Form form = Form::marks;
    size_t begin = 0, end = 0;  // bytes of the opening markup
  };

  bool read_events(std::span<const MarkdownEvent> events, bool is_cell);
  bool read_text(const MarkdownEvent& event);
  size_t end_of_tag(std::span<const MarkdownEvent> events, size_t& event) const;
  size_t begin_of_content(size_t text, bool is_cell);
  size_t begin_of_line(size_t text) const;

  // Read the markup of events between two texts. limit: the byte where the next text begins.
  bool read_markup(const MarkdownEvent& event, size_t limit);
  bool enter_span(MD_SPANTYPE span, size_t limit);
  bool leave_span(MD_SPANTYPE span, size_t limit);
  bool leave_code(size_t limit);
  bool leave_link(size_t limit);
  bool read_break(bool is_hard, size_t limit);
  size_t end_of_link(size_t at, size_t limit) const;
  size_t end_of_destination(size_t at, size_t limit) const;
  size_t skip_space(size_t at, size_t limit) const;
  size_t run_length(size_t at, char c, size_t limit) const;

  void add(RunItem::Kind kind, size_t end, const std::string* name = nullptr);
  void add_text(size_t end);
  void add_html(size_t begin, size_t end);
  void collapse(size_t begin, size_t end);
  void end_run();

  const SplitText& document_;
  const MaskedMarkdown& masked_;
  std::set<std::string> names_ = {};  // of HTML elements
  size_t floor_ = 0;                  // where the texts of the blocks before end
  size_t next_kept_ = 0;              // of the masked marks

  MarkdownBlock block_ = {};
  std::vector<RunItem> run_ = {};
  std::vector<Span> spans_ = {};
  std::vector<RunItem> kept_elements_ = {};  // start tags of open HTML elements whose content stays
  size_t cursor_ = 0;                        // the markup and text before it have been read
  size_t code_begin_ = 0, code_ticks_ = 0, code_text_end_ = 0;
  bool is_in_code_ = false;
};

}  // namespace qkv
