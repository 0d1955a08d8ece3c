#include "runner/engine/memory/remedies.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "generated/section/activation_checkpointing.h"
#include "generated/section/init_from.h"
#include "generated/section/launch.h"
#include "generated/section/parallelism.h"
#include "generated/section/placement.h"
#include "generated/section/precision.h"
#include "generated/section/training.h"
#include "runner/registry/config_parse.h"
#include "runner/train/experiment/training_device.h"

namespace runner::engine {
namespace {

using PrecisionMode = sections::precision::Mode;
using Recomputing = sections::activation_checkpointing::Mode;

constexpr std::int64_t kProcessesMax = 8;  ///< that are tried for a training of one
/// Optimizers whose state has a form in 8 bits, with the same keys.
const std::map<std::string, std::string, std::less<>> kIn8Bits = {
    {"adam", "adamw_8bit"}, {"adamw", "adamw_8bit"}, {"lion", "lion_8bit"}};

Changes joined(const Changes& one, const Changes& other) {
  Changes both = one;
  both.insert(both.end(), other.begin(), other.end());
  return both;
}

/// Whether all changes of `part` are among those of `whole`.
bool is_part(const Changes& part, const Changes& whole) {
  return std::all_of(part.begin(), part.end(), [&whole](const std::string& one) {
    return std::find(whole.begin(), whole.end(), one) != whole.end();
  });
}

class Search {
 public:
  Search(const resolve::Recipe& recipe, bool spreads, const TryChanges& attempt)
      : recipe_(recipe), spreads_(spreads), attempt_(attempt) {
    micro_batches_ = smaller_batches();
    if (!micro_batches_.empty()) smallest_batch_ = micro_batches_.front();
    if (recipe.activation_checkpointing->mode == Recomputing::kNone) recompute_ = {"activation_checkpointing=full"};
    if (recipe.precision->mode != PrecisionMode::kBf16True) bf16_ = {"precision=bf16-true"};
    const auto in_8 = kIn8Bits.find(registry::type_of(recipe.optimizer));
    if (in_8 != kIn8Bits.end()) eight_bit_ = {"optimizer.type=" + in_8->second};
    const bool has_source = recipe.init_from->path.has_value();
    if (has_source && recipe.adapters.empty()) adapters_ = adapters_of_model();
    const core::Node* quantized = recipe.root.find("quantization");
    const bool may_quantize = has_source && (!recipe.adapters.empty() || !adapters_.empty()) &&
                              (quantized == nullptr || !quantized->is_mapping());
    if (may_quantize) in_8_ = joined(adapters_, {"quantization={load_in_8bit: true}"});
    if (may_quantize) in_4_ = joined(adapters_, {"quantization={load_in_4bit: true, bnb_4bit_quant_type: nf4}"});
    if (may_quantize && !recipe.placement && train::device_of(recipe).is_cpu() && recipe.launch->num_processes == 1) {
      on_disk_ = joined(adapters_, {"placement={}"});
    }
  }

  Remedies run() {
    try_batches();
    for (const Changes* one : {&recompute_, &bf16_, &eight_bit_, &adapters_, &in_8_, &in_4_, &on_disk_}) try_one(*one);
    if (recipe_.precision->mode == PrecisionMode::k32True) try_one({"precision=bf16-mixed"});
    try_shards({});
    if (tried_.fitting.empty()) try_together();
    if (!tried_.fitting.empty()) tried_.least.reset();
    return std::move(tried_);
  }

 private:
  /// Micro-batches that a step of as many samples may be made of, smallest first.
  std::vector<Changes> smaller_batches() const {
    std::vector<Changes> all;
    for (std::int64_t times = 2; micro() % times == 0; times *= 2) {
      all.push_back(batch_of(micro() / times, passes() * times));
    }
    std::reverse(all.begin(), all.end());
    return all;
  }
  std::int64_t micro() const { return recipe_.training->micro_batch_size.value_or(1); }
  std::int64_t passes() const { return recipe_.training->gradient_accumulation_steps.value_or(1); }
  static Changes batch_of(std::int64_t micro, std::int64_t passes) {
    return {"training.micro_batch_size=" + std::to_string(micro),
            "training.gradient_accumulation_steps=" + std::to_string(passes)};
  }

  /// The changes for that many processes in place of one, which share a step's samples as far as they can be divided.
  Changes spread(const Changes& with, std::int64_t count) const {
    const bool has_smallest = !smallest_batch_.empty() && is_part(smallest_batch_, with);
    const std::int64_t smallest = has_smallest ? micro() >> micro_batches_.size() : micro();
    const std::int64_t of_each = smallest * (has_smallest ? passes() << micro_batches_.size() : passes()) / count;
    const bool divides = micro() * passes() % count == 0 && of_each > 0;
    Changes changes = {"launch.num_processes=" + std::to_string(count), "parallelism.shard=parameters"};
    for (const std::string& one : with) {
      if (!divides || !has_smallest || !is_part({one}, smallest_batch_)) changes.push_back(one);
    }
    if (!divides) return changes;
    const std::int64_t samples = of_each % smallest == 0 ? smallest : std::gcd(of_each, smallest);
    return joined(changes, batch_of(samples, of_each / samples));
  }

  /// On all linear layers, or where these cannot be adapted, such as those of experts, on those of attention. Empty: on
  /// none.
  Changes adapters_of_model() const {
    for (const char* adapters : {"adapters=[{type: lora, r: 16, target_modules: all-linear}]",
                                 "adapters=[{type: lora, r: 16, target_modules: [q_proj, k_proj, v_proj, o_proj]}]"}) {
      if (attempt_({adapters})) return {adapters};
    }
    return {};
  }

  /// Whether it fits.
  bool try_one(const Changes& changes) {
    if (changes.empty()) return false;
    const bool is_more = std::any_of(tried_.fitting.begin(), tried_.fitting.end(),
                                     [&changes](const Remedy& one) { return is_part(one.changes, changes); });
    if (is_more) return true;
    const auto tried = attempt_(changes);
    if (!tried) return false;
    if (tried->fits) tried_.fitting.push_back(*tried);
    if (!tried_.least || tried->needed < tried_.least->needed) tried_.least = tried;
    return tried->fits;
  }

  /// The largest that fits.
  void try_batches() {
    if (!try_one(smallest_batch_)) return;
    for (auto next = std::next(micro_batches_.begin()); next != micro_batches_.end(); ++next) {
      if (!try_one(*next)) return;
      tried_.fitting.erase(std::prev(tried_.fitting.end(), 2));
    }
  }

  /// The least sharding that fits, of the processes that there are; of one process, the fewest that do.
  bool try_shards(const Changes& with) {
    if (!spreads_ || recipe_.parallelism->shard) return false;
    const std::int64_t processes = recipe_.launch->num_processes;
    if (processes > 1) {
      for (const char* what : {"optimizer", "gradients", "parameters"}) {
        if (try_one(joined(with, {std::string("parallelism.shard=") + what}))) return true;
      }
      return false;
    }
    for (std::int64_t count = 2; count <= kProcessesMax; count *= 2) {
      if (try_one(spread(with, count))) return true;
    }
    return false;
  }

  /// From what changes the results least to what changes them most; of each the first that fits.
  void try_together() {
    const Changes small = joined(smallest_batch_, recompute_);
    try_one(small);
    try_one(joined(small, eight_bit_)) || try_one(joined(small, bf16_)) ||
        try_one(joined(joined(small, bf16_), eight_bit_));
    if (!adapters_.empty()) {
      try_one(joined(recompute_, adapters_)) || try_one(joined(small, adapters_)) ||
          try_one(joined(joined(small, bf16_), adapters_));
    }
    for (const Changes* frozen : {&in_8_, &in_4_, &on_disk_}) {
      if (frozen->empty()) continue;
      try_one(joined(recompute_, *frozen)) || try_one(joined(small, *frozen)) ||
          try_one(joined(joined(small, bf16_), *frozen));
    }
    if (tried_.fitting.empty()) try_shards(small) || try_shards(joined(joined(small, bf16_), eight_bit_));
  }

  const resolve::Recipe& recipe_;
  const bool spreads_;
  const TryChanges& attempt_;
  std::vector<Changes> micro_batches_;
  Changes smallest_batch_, recompute_, bf16_, eight_bit_, adapters_, in_8_, in_4_,
      on_disk_;  // empty: the recipe has it already
  Remedies tried_;
};

}  // namespace

Remedies find_remedies(const resolve::Recipe& recipe, bool spreads, const TryChanges& attempt) {
  return Search(recipe, spreads, attempt).run();
}

}  // namespace runner::engine
