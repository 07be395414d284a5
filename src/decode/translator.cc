#include "qkv/translator.h"

#include "core/fail.h"
#include "decode/attend.h"
#include "decode/batched.h"
#include "io/run_directory.h"
#include "text/split.h"
#include "text/unicode.h"

namespace qkv {

struct Translator::State {
  LoadedRun run;
  mutable Arena arena;

  explicit State(const std::string& directory) : run(load_run(directory)) {}

  const Tokenizer& source() const { return run.tokenizers.source; }
  const Tokenizer& target() const { return run.tokenizers.target; }
  int64_t max_length() const { return run.model->config().max_length; }

  std::string prepare(const std::string& line, const std::string& where) const {
    const size_t bad = find_invalid_utf8(line);
    if (bad != std::string::npos) fail("{}: byte {} is not valid UTF-8", where, bad + 1);
    return run.translation.lowercase ? lowercase(line) : line;
  }
  std::vector<int32_t> source_ids(std::string_view text) const {
    std::vector<int32_t> ids = source().encode(text);
    if (ids.empty()) return ids;
    const auto &before = run.translation.source_before, &after = run.translation.source_after;
    ids.insert(ids.begin(), before.begin(), before.end());
    ids.insert(ids.end(), after.begin(), after.end());
    return ids;
  }
  SearchOptions search(const TranslateOptions& options) const {
    return {options.beam, options.length_penalty, run.translation.start, run.translation.end};
  }
};

Translator::Translator(const std::string& run_directory) : state_(std::make_unique<State>(run_directory)) {}
Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;

std::vector<std::string> Translator::translate(const std::vector<std::string>& lines,
                                               const TranslateOptions& options) const {
  const State& s = *state_;
  const auto fits = [&](std::string_view part) {
    return static_cast<int64_t>(s.source_ids(part).size()) <= s.max_length();
  };
  std::vector<std::vector<int32_t>> parts;  // of all lines, one after the other; none is empty
  std::vector<size_t> line_of_part;
  for (size_t i = 0; i < lines.size(); i++) {
    const std::string line = s.prepare(lines[i], fmt::format("line {}", i + 1));
    const std::vector<std::string> cut = fits(line) ? std::vector{line} : split_long(line, fits);
    if (cut.size() > 1 && options.on_note)
      options.on_note(fmt::format("line {}: longer than the model's {} tokens, translated in {} parts", i + 1,
                                  s.max_length(), cut.size()));
    for (const std::string& part : cut) {
      std::vector<int32_t> ids = s.source_ids(part);
      if (ids.empty()) continue;
      parts.push_back(std::move(ids));
      line_of_part.push_back(i);
    }
  }

  const auto found =
      translate_ids(*s.run.model, parts, s.search(options), s.arena, options.batch_tokens, options.on_progress);
  std::vector<std::string> translations(lines.size());
  for (size_t p = 0; p < parts.size(); p++) {
    if (found[p].empty()) fail("line {}: the model gives no finite score", line_of_part[p] + 1);
    std::string& translation = translations[line_of_part[p]];
    if (!translation.empty()) translation += ' ';
    translation += s.target().decode(found[p].front().ids);
  }
  return translations;
}

AttentionMap Translator::attend(const std::string& source, const std::string& target) const {
  const State& s = *state_;
  const std::string said = target.empty() ? translate({source}).front() : s.prepare(target, "target sentence");
  AttendRequest request;
  request.source_ids = s.source_ids(s.prepare(source, "source sentence"));
  if (request.source_ids.empty()) fail("attend: the source sentence is empty");
  request.target_ids = s.target().encode(said);
  request.start = s.run.translation.start;
  request.end = s.run.translation.end;
  for (const auto& [side, length] :
       {std::pair{"source", request.source_ids.size()}, {"target", request.target_ids.size() + 1}})
    if (static_cast<int64_t>(length) > s.max_length())
      fail("attend: the {} sentence has {} tokens, the model takes {}", side, length, s.max_length());

  AttentionMap map = attention_map(*s.run.model, request, s.arena, [&](std::span<const int32_t> ids, bool of_source) {
    return of_source ? s.source().pieces(ids) : s.target().pieces(ids);
  });
  map.source = source;
  map.target = said;
  return map;
}

}  // namespace qkv
