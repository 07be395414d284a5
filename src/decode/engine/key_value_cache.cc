#include "decode/engine/key_value_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/to_size.h"

namespace qkv {

namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max() - 2 * RowBlocks::kRows;
constexpr int64_t kGap = 64;         // bytes between matrices, at most
constexpr int64_t kRowsAtOnce = 64;  // the memory of texts grows by whole cache lines, so that there is no gap

}  // namespace

int64_t cache_bytes(const Ensemble& models, const CacheRows& rows) {
  int64_t row_bytes = 0;
  for (size_t m = 0; m < models.size(); m++) row_bytes += models[m].row_bytes();
  return (rows.self + rows.cross) * row_bytes;
}

CacheRows cache_rows(const Ensemble& models, int64_t bytes) {
  const int64_t rows = std::min(bytes / cache_bytes(models, {1, 0}), kMostRows);
  return {rows, rows};
}

size_t reserved_for(const Ensemble& models, const CacheRows& rows) {
  int64_t matrices = 0;
  for (size_t m = 0; m < models.size(); m++) matrices += 1 + models[m].config().decoder_layers;
  return to_size(cache_bytes(models, rows * 2) + matrices * kGap);  // sizes may be rounded up
}

KeyValueCache::KeyValueCache(const Ensemble& models, const CacheRows& rows, Arena& memory)
    : models_(models), grows_(false), rows_(rows.self), cross_pool_(rows.cross) {
  for (size_t m = 0; m < models.size(); m++) layers_.push_back(models[m].make_rows(rows, memory));
}

KeyValueCache::KeyValueCache(const Ensemble& model, int64_t kept_bytes) : models_(model), grows_(true), cross_pool_(0) {
  layers_.push_back(models_.front().make_growing_rows());
  kept_rows_ = kept_bytes / row_bytes();
}

int64_t KeyValueCache::row_bytes() const { return cache_bytes(models_, {1, 0}); }
int64_t KeyValueCache::bytes() const { return rows_ * row_bytes(); }
int64_t KeyValueCache::room() const { return kept_rows_ / kRowsAtOnce * kRowsAtOnce; }

int32_t KeyValueCache::new_row() {
  while (self_pool_.used() == rows_ && !kept_.empty() && rows_ + kRowsAtOnce > kept_rows_) forget();
  if (self_pool_.used() == rows_ && grows_) grow();
  const int32_t row = self_pool_.take();
  if (self_pool_.rows() > std::ssize(users_)) {
    users_.resize(to_size(self_pool_.rows()));
    filled_.resize(users_.size());
  }
  users_[to_size(row)] = 1;
  filled_[to_size(row)] = false;
  return row;
}

// Adds memory for rows of texts. The pool takes a row that was never used only if every other one is in use, so the
// rows in use are the first ones.
void KeyValueCache::grow() {
  layers_.front()->grow(kRowsAtOnce);
  rows_ += kRowsAtOnce;
}

// ---- Sentences

std::vector<KeyValueCache::Sentence> KeyValueCache::open(const Packed& sources, std::span<const int64_t> beams,
                                                         Context& c) {
  std::vector<Sentence> sentences;
  std::vector<RowRange> rows;
  for (int64_t s = 0; s < sources.sequences(); s++) {
    rows.push_back(cross_pool_.take(std::ssize(sources.sequence(s))));
    sentences.push_back({rows.back(), std::vector<std::vector<int32_t>>(to_size(beams[to_size(s)]))});
  }
  for (size_t m = 0; m < models_.size(); m++) models_[m].encode(sources, rows, *layers_[m], c);
  return sentences;
}

void KeyValueCache::close(Sentence& sentence) {
  branch(sentence, {});
  self_pool_.give_back(sentence.given_up);
  cross_pool_.give_back(sentence.cross);
  sentence = {};
}

void KeyValueCache::branch(Sentence& sentence, std::span<const int32_t> parents) {
  std::vector<std::vector<int32_t>> next(sentence.slots.size());
  for (size_t i = 0; i < parents.size(); i++) {
    next[i] = sentence.slots[to_size(parents[i])];
    for (const int32_t row : next[i]) users_[to_size(row)]++;
  }
  for (const std::vector<int32_t>& rows : sentence.slots)
    for (const int32_t row : rows)
      if (--users_[to_size(row)] == 0) sentence.given_up.push_back(row);
  sentence.slots = std::move(next);
}

void KeyValueCache::fill(Sentence& sentence, int64_t tokens) {
  for (std::vector<int32_t>& rows : sentence.slots) {
    rows.resize(to_size(tokens));
    for (int32_t& row : rows) {
      row = new_row();
      for (const auto& layers : layers_) layers->set_to_zero({row, row + 1});
    }
  }
}

// ---- Texts

KeyValueCache::Alike KeyValueCache::most_alike(std::span<const int32_t> ids, const std::string& salt) const {
  Alike best;
  for (const std::list<Text>* texts : {&open_, &kept_})
    for (const Text& text : *texts) {
      if (text.salt != salt) continue;
      const auto tokens = to_size(std::ranges::mismatch(text.ids, ids).in1 - text.ids.begin());
      if (tokens > best.tokens) best = {&text, tokens};
    }
  return best;
}

size_t KeyValueCache::known(std::span<const int32_t> ids, const std::string& salt) const {
  return most_alike(ids, salt).tokens;
}

KeyValueCache::Text& KeyValueCache::open(std::span<const int32_t> ids, const std::string& salt) {
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

void KeyValueCache::append(Text& text, int32_t id) {
  text.ids.push_back(id);
  text.rows.push_back(new_row());
}

void KeyValueCache::give_up(const Text& text, size_t from) {
  for (size_t i = from; i < text.rows.size(); i++)
    if (--users_[to_size(text.rows[i])] == 0) self_pool_.give_back({&text.rows[i], 1});
}

void KeyValueCache::close(Text& text) {
  give_up(text, text.read);
  text.ids.resize(text.read);
  text.rows.resize(text.read);
  const auto place = std::ranges::find_if(open_, [&](const Text& t) { return &t == &text; });
  kept_.splice(kept_.end(), open_, place);
  while (!kept_.empty() && self_pool_.used() > kept_rows_) forget();
}

void KeyValueCache::forget() {
  give_up(kept_.front(), 0);
  kept_.pop_front();
}

// ---- Steps

void KeyValueCache::begin_step() {
  for (std::vector<int32_t>* list :
       {&ids_, &positions_, &new_rows_, &self_rows_, &self_begin_, &self_end_, &cross_begin_, &cross_end_})
    list->clear();
  texts_.clear();
}

// Adds a token that attends to the rows of self_rows_ from first_key on, of which its own is the last.
void KeyValueCache::add_token(int32_t id, size_t position, int32_t row, int64_t first_key, RowRange cross) {
  ids_.push_back(id);
  positions_.push_back(static_cast<int32_t>(position));
  new_rows_.push_back(row);
  self_begin_.push_back(static_cast<int32_t>(first_key));
  self_end_.push_back(static_cast<int32_t>(first_key) + static_cast<int32_t>(position) + 1);
  cross_begin_.push_back(static_cast<int32_t>(cross.begin));
  cross_end_.push_back(static_cast<int32_t>(cross.end));
}

void KeyValueCache::add(Sentence& sentence, int32_t slot, int32_t id) {
  self_pool_.give_back(sentence.given_up);
  sentence.given_up.clear();
  std::vector<int32_t>& rows = sentence.slots[to_size(slot)];
  rows.push_back(new_row());
  add_token(id, rows.size() - 1, rows.back(), std::ssize(self_rows_), sentence.cross);
  self_rows_.insert(self_rows_.end(), rows.begin(), rows.end());
}

// Returns about how long a token takes: d for the layers' products, and 1 for each token before it, to which it
// attends.
int64_t KeyValueCache::work_at(size_t place) const { return models_.config().d_model + static_cast<int64_t>(place); }

// Adds tokens of a text while there is work left, and returns what is left without theirs. The last one is read even if
// another text that contains it has filled its row, since its hidden state is needed.
int64_t KeyValueCache::read(Text& text, int64_t work) {
  const int64_t first_key = std::ssize(self_rows_);
  for (; text.read < text.ids.size(); text.read++) {
    const int32_t row = text.rows[text.read];
    if (filled_[to_size(row)] && text.read + 1 < text.ids.size()) continue;
    if (work <= 0) break;
    work -= work_at(text.read);
    filled_[to_size(row)] = true;
    add_token(text.ids[text.read], text.read, row, first_key, {});
  }
  self_rows_.insert(self_rows_.end(), text.rows.begin(), text.rows.begin() + static_cast<int64_t>(text.read));
  if (text.read == text.ids.size()) text.last = step_tokens() - 1;
  return work;
}

void KeyValueCache::add(Text& text) {
  text.last = -1;
  texts_.push_back(&text);
}

void KeyValueCache::end_step() {
  std::vector<Text*> prompts;
  for (Text* text : texts_) {
    if (text->read + 1 == text->ids.size())
      read(*text, work_at(text->read));
    else
      prompts.push_back(text);
  }
  int64_t work = kStepTokens * (work_at(0) + work_at(kStepTokens - 1)) / 2;
  for (Text* text : prompts) work = read(*text, work);
}

DecodingStep KeyValueCache::step() const {
  return {ids_,
          positions_,
          new_rows_,
          {self_rows_.data(), self_begin_.data(), self_end_.data()},
          {nullptr, cross_begin_.data(), cross_end_.data()}};
}

void KeyValueCache::trim(Clock::time_point now) {
  for (const RowRange& rows : self_pool_.unused(now))
    for (const auto& layers : layers_) layers->forget_self(rows);
  for (const RowRange& rows : cross_pool_.unused(now))
    for (const auto& layers : layers_) layers->forget_cross(rows);
}

// ---- Pool

std::unique_ptr<KeyValueCache> CachePool::take(const std::vector<std::vector<int32_t>>& texts) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return std::make_unique<KeyValueCache>(model_, bytes_);
  const auto known = [&](const std::unique_ptr<KeyValueCache>& cache) {
    size_t tokens = 0;
    for (const auto& text : texts) tokens += cache->known(text);
    return tokens;
  };
  const auto best = std::ranges::max_element(waiting_, {}, known);
  std::unique_ptr<KeyValueCache> cache = std::move(*best);
  waiting_.erase(best);
  return cache;
}

void CachePool::give_back(std::unique_ptr<KeyValueCache> cache) {
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
