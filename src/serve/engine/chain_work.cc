// The texts of a call on their way through a chain of translators: when one has translated all of them, the next one
// starts. Each step waits in the queue of its model.
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "decode/pivot/pivot_steps.h"
#include "serve/engine/text_work.h"

namespace qkv {
namespace {

class ChainWork : public std::enable_shared_from_this<ChainWork> {
 public:
  ChainWork(const CallPtr& call, ModelPtr chain, std::vector<TextToTranslate> texts, TranslationHandlers handlers)
      : call_(call),
        chain_(std::move(chain)),
        texts_(std::move(texts)),
        handlers_(std::move(handlers)),
        so_far_(texts_.size()) {
    for (const TextToTranslate& text : texts_)
      if (!steps_.contains(text.options.get())) steps_.emplace(text.options.get(), steps_of(text));
  }

  // Starts a step, and returns the tokens of each text.
  std::vector<int64_t> start(const CallPtr& call, size_t step) {
    std::vector<TextToTranslate> texts;
    for (size_t i = 0; i < texts_.size(); i++) {
      const auto steps = steps_.at(texts_[i].options.get());
      const Translation* before = so_far_[i] ? &*so_far_[i] : nullptr;
      texts.push_back({steps->line(step, texts_[i].line, before), {steps, &steps->options(step)}});
    }
    return translate_by(call, chain_->chain[step], std::move(texts), handlers_of(step), {chain_, step});
  }

 private:
  std::shared_ptr<const PivotSteps> steps_of(const TextToTranslate& text) const {
    std::vector<const Translator*> translators;
    std::vector<TranslateOptions> options;
    for (const ModelPtr& model : chain_->chain) translators.push_back(&*model->translator);
    for (const auto& of_step : text.options_before) options.push_back(*of_step);
    options.push_back(*text.options);
    return std::make_shared<const PivotSteps>(std::move(translators), std::move(options));
  }

  TranslationHandlers handlers_of(size_t step) {
    TranslationHandlers handlers;
    const bool is_last = step + 1 == chain_->chain.size();
    if (is_last && handlers_.on_text)
      handlers.on_text = [self = shared_from_this()](size_t i, const Translation& translation) {
        self->handlers_.on_text(i, joined_steps(*self->so_far_[i], translation));
      };
    handlers.on_done = [self = shared_from_this(), step, is_last](std::vector<Translation>&& translations) {
      for (size_t i = 0; i < translations.size(); i++) self->add(i, std::move(translations[i]));
      if (is_last) return self->answer();
      if (const CallPtr call = self->call_.lock()) self->start(call, step + 1);
    };
    return handlers;
  }

  void add(size_t i, Translation translation) {
    std::optional<Translation>& so_far = so_far_[i];
    so_far = so_far ? joined_steps(std::move(*so_far), std::move(translation)) : std::move(translation);
  }

  void answer() {
    std::vector<Translation> all;
    for (std::optional<Translation>& one : so_far_) all.push_back(std::move(*one));
    handlers_.on_done(std::move(all));
  }

  const std::weak_ptr<Call> call_;
  const ModelPtr chain_;
  const std::vector<TextToTranslate> texts_;
  const TranslationHandlers handlers_;
  std::map<const TranslateOptions*, std::shared_ptr<const PivotSteps>> steps_;  // by the options of texts
  std::vector<std::optional<Translation>> so_far_;                              // of each text
};

}  // namespace

std::vector<int64_t> translate(const CallPtr& call, const ModelPtr& model, std::vector<TextToTranslate> texts,
                               TranslationHandlers handlers) {
  if (model->chain.empty()) return translate_by(call, model, std::move(texts), std::move(handlers));
  return std::make_shared<ChainWork>(call, model, std::move(texts), std::move(handlers))->start(call, 0);
}

}  // namespace qkv
