#include "decode/generation/text_cache.h"

#include <algorithm>
#include <utility>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kRowsAtOnce = 64;  // memory grows by whole cache lines, so that there is no gap

}  // namespace

TextCache::TextCache(const Transformer<float>& model, int64_t kept_bytes) : model_(model) {
  const auto& layers = model.decoder().layers();
  for (const auto& layer : layers) {
    Arena& memory = memory_.emplace_back(physical_memory() / layers.size());
    caches_.push_back({memory.matrix<float>(0, layer.self_attention().keys_values_width()), {}});
  }
  kept_rows_ = kept_bytes / row_bytes();
}

TextCache::Alike TextCache::most_alike(std::span<const int32_t> ids, const std::string& salt) const {
  Alike best;
  for (const std::list<Text>* texts : {&open_, &kept_})
    for (const Text& text : *texts) {
      if (text.salt != salt) continue;
      const auto tokens = to_size(std::ranges::mismatch(text.ids, ids).in1 - text.ids.begin());
      if (tokens > best.tokens) best = {&text, tokens};
    }
  return best;
}

size_t TextCache::known(std::span<const int32_t> ids, const std::string& salt) const {
  return most_alike(ids, salt).tokens;
}

int64_t TextCache::room() const { return kept_rows_ / kRowsAtOnce * kRowsAtOnce; }

int64_t TextCache::row_bytes() const {
  int64_t width = 0;
  for (const auto& cache : caches_) width += cache.self.cols;
  return width * static_cast<int64_t>(sizeof(float));
}

int64_t TextCache::bytes() const { return std::ssize(users_) * row_bytes(); }

int32_t TextCache::new_row() {
  while (free_.empty() && !kept_.empty() && std::ssize(users_) + kRowsAtOnce > kept_rows_) forget();
  if (free_.empty()) {
    const auto rows = static_cast<int32_t>(users_.size());
    for (size_t i = 0; i < caches_.size(); i++) {
      memory_[i].matrix<float>(kRowsAtOnce, caches_[i].self.cols);
      caches_[i].self.rows += kRowsAtOnce;
    }
    users_.resize(users_.size() + kRowsAtOnce);
    filled_.resize(users_.size());
    for (int32_t row = rows + kRowsAtOnce; row-- > rows;) free_.push_back(row);
  }
  const int32_t row = free_.back();
  free_.pop_back();
  users_[to_size(row)] = 1;
  filled_[to_size(row)] = false;
  return row;
}

TextCache::Text& TextCache::open(std::span<const int32_t> ids, const std::string& salt) {
  Text text;
  text.salt = salt;
  text.ids.assign(ids.begin(), ids.end());
  const Alike alike = most_alike(ids.first(ids.size() - 1), salt);  // the last token must be read to predict the next
  for (size_t i = 0; i < alike.tokens; i++) {
    text.rows.push_back(alike.text->rows[i]);
    users_[to_size(text.rows[i])]++;
  }
  text.shared = alike.tokens;
  while (text.rows.size() < ids.size()) text.rows.push_back(new_row());
  open_.push_back(std::move(text));
  return open_.back();
}

void TextCache::append(Text& text, int32_t id) {
  text.ids.push_back(id);
  text.rows.push_back(new_row());
}

void TextCache::give_up(const Text& text, size_t from) {
  for (size_t i = from; i < text.rows.size(); i++)
    if (--users_[to_size(text.rows[i])] == 0) free_.push_back(text.rows[i]);
}

void TextCache::close(Text& text) {
  give_up(text, text.read);
  text.ids.resize(text.read);
  text.rows.resize(text.read);
  const auto place = std::ranges::find_if(open_, [&](const Text& t) { return &t == &text; });
  kept_.splice(kept_.end(), open_, place);
  while (!kept_.empty() && std::ssize(users_) - std::ssize(free_) > kept_rows_) forget();
}

void TextCache::forget() {
  give_up(kept_.front(), 0);
  kept_.pop_front();
}

// Returns about how long a token takes: d for the layers' products, and 1 for each token before it, to which it
// attends.
int64_t TextCache::work_at(size_t place) const { return model_.config().d_model + static_cast<int64_t>(place); }

// Adds tokens of a text to the step while there is work left, and returns what is left without theirs. The last one is
// read even if another text that contains it has filled its row, since its hidden state is needed.
int64_t TextCache::read(Text& text, int64_t work) {
  const auto first = static_cast<int32_t>(rows_.size());
  for (; text.read < text.ids.size(); text.read++) {
    const int32_t row = text.rows[text.read];
    if (filled_[to_size(row)] && text.read + 1 < text.ids.size()) continue;
    if (work <= 0) break;
    work -= work_at(text.read);
    filled_[to_size(row)] = true;
    ids_.push_back(text.ids[text.read]);
    positions_.push_back(static_cast<int32_t>(text.read));
    new_rows_.push_back(row);
    begin_.push_back(first);
    end_.push_back(first + static_cast<int32_t>(text.read) + 1);
  }
  rows_.insert(rows_.end(), text.rows.begin(), text.rows.begin() + static_cast<int64_t>(text.read));
  text.last = std::ssize(ids_) - 1;
  return work;
}

Matrix<float> TextCache::step(std::vector<Text*>& ready, Context& c) {
  for (std::vector<int32_t>* list : {&ids_, &positions_, &new_rows_, &rows_, &begin_, &end_}) list->clear();
  ready.clear();
  std::vector<Text*> prompts;
  for (Text& text : open_) {
    if (text.paused) continue;
    if (text.read + 1 == text.ids.size())
      read(text, work_at(text.read));
    else
      prompts.push_back(&text);
  }
  int64_t work = kStepTokens * (work_at(0) + work_at(kStepTokens - 1)) / 2;
  for (Text* text : prompts) work = read(*text, work);
  for (Text& text : open_)
    if (!text.paused && text.read == text.ids.size()) ready.push_back(&text);
  const Matrix<float> h =
      model_.step({ids_, positions_, new_rows_, {rows_.data(), begin_.data(), end_.data()}, {}}, caches_, c);
  const Matrix<float> result = c.arena.matrix<float>(std::ssize(ready), h.cols);
  for (size_t i = 0; i < ready.size(); i++)
    std::copy_n(h.row(ready[i]->last), h.cols, result.row(static_cast<int64_t>(i)));
  return result;
}

std::unique_ptr<TextCache> Caches::take(const std::vector<std::vector<int32_t>>& texts) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return std::make_unique<TextCache>(model_, bytes_);
  const auto known = [&](const std::unique_ptr<TextCache>& cache) {
    size_t tokens = 0;
    for (const auto& text : texts) tokens += cache->known(text);
    return tokens;
  };
  const auto best = std::ranges::max_element(waiting_, {}, known);
  std::unique_ptr<TextCache> cache = std::move(*best);
  waiting_.erase(best);
  return cache;
}

void Caches::give_back(std::unique_ptr<TextCache> cache) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(cache));
  int64_t bytes = 0;
  for (const auto& one : waiting_) bytes += one->bytes();
  while (bytes > bytes_) {
    bytes -= waiting_.front()->bytes();
    waiting_.erase(waiting_.begin());
  }
}

}  // namespace qkv
