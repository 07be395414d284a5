// The models that answer a request for sure, because no other one is served for its use.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "serve/engine/route.h"

namespace qkv {

class ServedModel;

// Thread-safe.
class DefaultModels {
 public:
  void set(const std::vector<std::shared_ptr<ServedModel>>& models);
  // Returns the only model for a use; null if there is none or more than one.
  std::shared_ptr<ServedModel> find(ModelUse use) const;

 private:
  mutable std::mutex mutex_;
  std::array<std::shared_ptr<ServedModel>, kModelUses.size()> models_;
};

}  // namespace qkv
