#include "serve/engine/default_models.h"

#include <algorithm>

#include "serve/engine/served_model.h"

namespace qkv {

void DefaultModels::set(const std::vector<std::shared_ptr<ServedModel>>& models) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kModelUses.size(); i++) {
    const auto serves = [use = kModelUses[i]](const auto& model) { return model->serves(use); };
    models_[i] = std::ranges::count_if(models, serves) == 1 ? *std::ranges::find_if(models, serves) : nullptr;
  }
}

std::shared_ptr<ServedModel> DefaultModels::find(ModelUse use) const {
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find(kModelUses, use);
  return place == kModelUses.end() ? nullptr : models_[static_cast<size_t>(place - kModelUses.begin())];
}

}  // namespace qkv
