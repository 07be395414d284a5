// Lines of text in, lines of text out: translation and generation.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "qkv/line_jobs.h"
#include "qkv/result_json.h"

namespace qkv {
namespace {

constexpr int64_t kNotes = 10;  // about single lines; further ones are counted

}  // namespace

void translate_lines(const Translator& translator, const LineSource& read, TranslateOptions options,
                     const TranslationForm& form, const LineOutput& output) {
  int64_t notes = 0;
  options.on_note = [&](const std::string& note) {
    if (++notes <= kNotes) output.note(note);
  };
  options.on_progress = output.progress;
  int64_t number = 0;
  translator.translate(
      read, [&](Translation&& t) { output.write(translation_lines(t, number++, form)); }, options);
  if (notes > kNotes) output.note(fmt::format("{} further lines were translated in parts", notes - kNotes));
}

void generate_lines(const Generator& generator, const std::vector<std::string>& prompts, GenerateOptions options,
                    bool json, const LineOutput& output) {
  options.on_text = [&](std::string_view) { output.progress(0); };
  generator.generate_all(prompts, options, [&](size_t i, const Generation& found) {
    // JSON has U+FFFD in place of incomplete UTF-8 characters.
    output.write((json ? generation_to_json(prompts[i], found) : prompts[i] + found.text) + "\n");
    if (options.alternatives > 0 && !json) output.write("\n" + tokens_to_text(found) + "\n");
    output.progress(1);
  });
}

}  // namespace qkv
