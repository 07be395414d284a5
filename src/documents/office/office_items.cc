#include "documents/office/office_items.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace qkv {
namespace {

using ItemKind = RunItem::Kind;
constexpr size_t kNoRunPlace = OfficeItem::kNone;
const std::string kRunElement = "run";

struct VisibleItem {
  OfficeItem item;
  VisibleText visible = {};
};

// Joins elements without visible text: to a single item, or to their white space if they have nothing else.
class EmptyElements {
 public:
  std::vector<VisibleItem> join(const SplitText& document, std::span<const OfficeItem> items) {
    for (const OfficeItem& item : items) {
      if (item.kind == ItemKind::close && !open_.empty())
        close(item);
      else
        add(document, item);
    }
    return std::move(kept_);
  }

 private:
  struct Element {
    size_t place;  // in kept_
    bool has_text = false, has_other = false;
    OfficeItem space = {};  // a text in it
  };

  void add(const SplitText& document, const OfficeItem& item) {
    VisibleItem& kept = kept_.emplace_back(VisibleItem{item});
    if (item.kind == ItemKind::text) {
      kept.visible = visible_text(document, item.text.begin, item.text.end);
      if (!open_.empty()) {
        open_.back().has_text |= !kept.visible.is_empty();
        if (item.text.size() > 0) open_.back().space = item;
      }
    } else if (item.kind == ItemKind::open) {
      open_.push_back({kept_.size() - 1});
    } else if (!open_.empty()) {
      open_.back().has_other = true;
    }
  }

  void close(const OfficeItem& item) {
    const Element element = open_.back();
    open_.pop_back();
    OfficeItem& opened = kept_[element.place].item;
    const bool is_space = !element.has_text && !element.has_other && element.space.text.size() > 0;
    if (element.has_text) {
      kept_.push_back({item});
    } else if (is_space) {
      opened.kind = ItemKind::text;  // without bytes
      opened.text = {opened.begin, opened.begin};
    } else {
      opened.kind = ItemKind::single;
      opened.end = item.end, opened.end_cut = item.end_cut;
      kept_.resize(element.place + 1);
      if (element.space.text.size() > 0) {
        VisibleItem& space = kept_.emplace_back(VisibleItem{element.space});
        space.item.begin = space.item.end = item.end;
      }
    }
    if (open_.empty()) return;
    open_.back().has_text |= element.has_text;
    open_.back().has_other |= !is_space;
    if (element.space.text.size() > 0) open_.back().space = element.space;
  }

  std::vector<VisibleItem> kept_;
  std::vector<Element> open_;
};

// The run with the most text of each element, not counting the elements in it.
class MainRuns {
 public:
  explicit MainRuns(std::span<const VisibleItem> items) : of_(items.size(), kNoRunPlace) {
    levels_.emplace_back();
    for (size_t i = 0; i < items.size(); i++) {
      if (items[i].item.kind == ItemKind::open) {
        levels_.push_back({i});
      } else if (items[i].item.kind == ItemKind::close && levels_.size() > 1) {
        end_level();
      } else if (!items[i].visible.is_empty()) {
        if (first_ == kNoRunPlace) first_ = items[i].item.run;
        levels_.back().add(items[i]);
      }
    }
    while (levels_.size() > 1) end_level();
    whole_ = levels_.back().most_run;
  }

  size_t of_element(size_t opened) const { return of_[opened]; }
  size_t of_items() const { return whole_; }  // outside of elements
  size_t of_part() const { return whole_ == kNoRunPlace ? first_ : whole_; }

 private:
  struct Level {
    size_t opened = kNoRunPlace, most = 0, most_run = kNoRunPlace;
    std::unordered_map<size_t, size_t> sizes = {};  // of the text in each run

    void add(const VisibleItem& text) {
      const size_t size = sizes[text.item.run] += text.visible.end - text.visible.begin;
      if (size > most) most = size, most_run = text.item.run;
    }
  };

  void end_level() {
    of_[levels_.back().opened] = levels_.back().most_run;
    levels_.pop_back();
  }

  std::vector<size_t> of_;
  std::vector<Level> levels_;
  size_t whole_ = kNoRunPlace, first_ = kNoRunPlace;
};

// Makes elements of the runs that are not the main one of the element around them.
class RunElements {
 public:
  RunElements(const SplitText& document, std::span<const VisibleItem> items, const MainRuns& mains)
      : document_(document), items_(items), mains_(mains) {}

  std::vector<RunItem> make() {
    levels_.push_back({mains_.of_items(), mains_.of_items()});
    for (size_t i = 0; i < items_.size(); i++) {
      const OfficeItem& item = items_[i].item;
      if (item.kind == ItemKind::text)
        add_text(items_[i]);
      else
        add_markup(item, i);
    }
    end_element();
    return std::move(made_);
  }

 private:
  struct Level {
    size_t main, current;           // runs
    size_t last = 0, last_end = 0;  // the item behind the last visible text, and the end of its bytes
  };

  void add_text(const VisibleItem& text) {
    Level& level = levels_.back();
    const bool is_visible = !text.visible.is_empty();
    if (is_visible && text.item.run != level.current) {
      end_element();
      if (text.item.run != level.main) add_element(ItemKind::open, made_.size(), text.item.begin, text.item.run);
      level.current = text.item.run;
    }
    made_.push_back({ItemKind::text, text.item.text.begin, text.item.text.end});
    if (is_visible) level.last = made_.size(), level.last_end = text.item.end;
  }

  // Places the tag next to the text, so that what follows stays outside.
  void end_element() {
    Level& level = levels_.back();
    if (level.current != level.main) add_element(ItemKind::close, level.last, level.last_end, kNoRunPlace);
    level.current = level.main;
  }

  void add_element(ItemKind kind, size_t place, size_t at, size_t run) {
    made_.insert(made_.begin() + static_cast<int64_t>(place),
                 RunItem{.kind = kind, .begin = at, .end = at, .name = &kRunElement, .run = run});
  }

  void add_markup(const OfficeItem& item, size_t i) {
    const bool opens = item.kind == ItemKind::open, closes = item.kind == ItemKind::close;
    if (opens || closes) end_element();
    RunItem made = {.kind = item.kind, .begin = item.begin, .end = item.end, .name = item.name};
    if (item.begin_cut != kNoRunPlace || item.end_cut != kNoRunPlace) {
      made.written = complete(item);
      written_bytes_ += made.written.size();
      check_written_bytes(document_, written_bytes_);
    }
    if (opens) {
      made.run = mains_.of_element(i);
      levels_.push_back({made.run, made.run});
    } else if (closes && levels_.size() > 1) {
      levels_.pop_back();
    }
    made_.push_back(std::move(made));
  }

  // Returns the bytes of the item with the tags of the runs that it cuts.
  std::string complete(const OfficeItem& item) const {
    std::string bytes = item.begin_cut == kNoRunPlace ? "" : document_.runs[item.begin_cut].opening;
    bytes += document_.slice(item.begin, item.end);
    if (item.end_cut != kNoRunPlace) bytes += document_.runs[item.end_cut].closing;
    return bytes;
  }

  const SplitText& document_;
  const std::span<const VisibleItem> items_;
  const MainRuns& mains_;
  size_t written_bytes_ = 0;
  std::vector<RunItem> made_ = {};
  std::vector<Level> levels_ = {};
};

std::string in_run(const SplitText& document, const OfficeItem& item, size_t begin, size_t end) {
  if (item.kind != ItemKind::text || begin == end) return "";
  const TextRun run = item.run == kNoRunPlace ? TextRun() : document.runs[item.run];
  return run.opening + std::string(document.slice(begin, end)) + run.closing;
}

// Extends the part to whole runs. White space at its ends stays.
void extend_to_runs(const SplitText& document, std::span<const VisibleItem> items, TextPart& part) {
  auto first = std::ranges::find_if(items, [&](const VisibleItem& i) { return i.item.end > part.begin; });
  auto last = std::find_if(items.rbegin(), items.rend(), [&](const auto& i) { return i.item.begin < part.end; });
  const size_t begin_cut = first->item.begin_cut, end_cut = last->item.end_cut;
  part.begin = first->item.begin;
  part.end = last->item.end;
  if (begin_cut != kNoRunPlace) part.opening = document.runs[begin_cut].closing;
  for (; first->visible.is_empty(); ++first)
    part.opening += in_run(document, first->item, first->item.text.begin, first->item.text.end);
  part.opening += in_run(document, first->item, first->item.text.begin, first->visible.begin);
  while (last->visible.is_empty()) ++last;
  part.closing = in_run(document, last->item, last->visible.end, last->item.text.end);
  for (auto next = last.base(); next != items.end() && next->item.begin < part.end; ++next)
    part.closing += in_run(document, next->item, next->item.text.begin, next->item.text.end);
  if (end_cut != kNoRunPlace) part.closing += document.runs[end_cut].opening;
}

}  // namespace

void add_office_part(SplitText& document, std::span<const OfficeItem> items) {
  const std::vector<VisibleItem> joined = EmptyElements().join(document, items);
  if (std::ranges::none_of(joined, [](const VisibleItem& i) { return i.visible.has_letter; })) return;
  const MainRuns mains(joined);
  add_part(document, RunElements(document, joined, mains).make());
  TextPart& part = document.parts.back();
  if (part.run == kNoRunPlace) part.run = mains.of_part();
  extend_to_runs(document, joined, part);
}

}  // namespace qkv
