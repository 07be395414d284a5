// qkv::best_heads: for each role and relation the head that lies farthest above its baseline.
#include <algorithm>
#include <utility>

#include "analysis/heads/head_scores.h"
#include "qkv/heads.h"

namespace qkv {
namespace {

std::string attention_of(const std::string& kind) {
  return kind == "cross" ? "decoder cross-attention" : kind + " self-attention";
}

// Returns the change of the loss without a head, if it was removed.
std::optional<Change> loss_without(const HeadsReport& report, const BestHead& head) {
  for (const AblationReport& ablation : report.ablations)
    if (ablation.head == head.head && ablation.layer == head.layer && ablation.part == attention_of(head.kind))
      return ablation.loss;
  return std::nullopt;
}

// Returns what candidates are compared by; the score decides where the baseline is 1, which leaves nothing above it.
std::pair<double, double> rank_of(const BestHead& head) { return {strength_of(head.value, head.baseline), head.value}; }

// Collects candidates, of which it keeps the best of each relation, direction and group.
class BestOfEach {
 public:
  // group: candidates of the same relation compete if it is the same.
  void offer(BestHead head, const std::string& group) {
    const auto found = std::ranges::find_if(best_, [&](const Entry& entry) {
      return entry.group == group && entry.head.relation == head.relation && entry.head.direction == head.direction;
    });
    if (found == best_.end())
      best_.push_back({std::move(head), group});
    else if (rank_of(head) > rank_of(found->head))
      found->head = std::move(head);
  }

  std::vector<BestHead> take() {
    std::vector<BestHead> heads;
    for (Entry& entry : best_) heads.push_back(std::move(entry.head));
    return heads;
  }

 private:
  struct Entry {
    BestHead head;
    std::string group;
  };
  std::vector<Entry> best_ = {};
};

BestHead candidate(const HeadReport& head, std::string relation, int64_t count, double value, double baseline) {
  BestHead best;
  best.relation = std::move(relation), best.kind = head.kind, best.layer = head.layer, best.head = head.head;
  best.count = count, best.value = value, best.baseline = baseline;
  return best;
}

std::vector<BestHead> best_of_roles(const HeadsReport& report) {
  BestOfEach best;
  for (const TokenScore& score : token_scores())
    for (const HeadReport& head : report.heads)
      if (const HeadScore* found = find_role_score(head, score))
        best.offer(candidate(head, std::string(score.role), found->rows, found->value, *found->uniform), "");
  return best.take();
}

std::vector<BestHead> best_of_relations(const HeadsReport& report) {
  BestOfEach best;
  for (const HeadReport& head : report.heads)
    for (const WordAgreement& agreement : head.agreements) {
      const bool aligned = agreement.relation == "alignment";
      BestHead offered = candidate(head, aligned ? std::string(kAlignedWord) : agreement.relation, agreement.pairs,
                                   agreement.share, agreement.baseline);
      offered.direction = agreement.direction, offered.offset = agreement.offset;
      best.offer(std::move(offered), head.kind);
    }
  std::vector<BestHead> heads = best.take();
  std::ranges::stable_sort(heads, std::ranges::greater(), &BestHead::count);
  return heads;
}

}  // namespace

std::vector<BestHead> best_heads(const HeadsReport& report) {
  std::vector<BestHead> heads = best_of_roles(report);
  for (BestHead& head : best_of_relations(report)) heads.push_back(std::move(head));
  for (BestHead& head : heads) head.loss = loss_without(report, head);
  return heads;
}

}  // namespace qkv
