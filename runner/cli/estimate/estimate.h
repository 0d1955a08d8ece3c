#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/estimate/sized_model.h"
#include "runner/engine/engine.h"
#include "runner/pretrained/module_sizes.h"

namespace runner::cli {

struct EstimateFlags {
  RecipeFlags recipe;  ///< its path is the word for what is estimated
  std::vector<std::string> dtypes;
  std::string optimizer = "adamw", precision = "32-true", format = "text";
  std::int64_t tokens = 0;                  ///< of the cache
  std::optional<std::int64_t> max_seq_len;  ///< nothing: the model's positions, at most kLengthMax
  std::int64_t micro_batch_size = 1, num_processes = 1, lora_r = 16;
};

/// In one of pretrained::kSizedTypes.
struct TypeRow {
  std::string type;
  pretrained::TypeSizes sizes;
  std::optional<std::int64_t> loaded;  ///< weights for inference; nothing where it is not known
  std::optional<std::int64_t> cache;   ///< keys and values of EstimateFlags::tokens positions
};

/// One way to train.
struct WayRow {
  std::string name;
  std::int64_t trained = 0;                      ///< parameters
  std::optional<engine::MemoryPlan> plain = {};  ///< nothing: `why_not`
  std::optional<engine::MemoryPlan> recomputed = {};
  std::string why_not = {};
};

struct MemoryReport {
  std::string title, model_type, architecture, source;  ///< source: `config`, `headers` or `recipe`
  std::string told = {};
  pretrained::ModuleSizes sizes = {};
  std::vector<TypeRow> types = {};
  std::vector<WayRow> ways = {};
  std::string training = {};              ///< how those train: `adamw, 32-true, micro-batches of 1 x 2048 tokens`
  std::optional<engine::Plan> plan = {};  ///< of a recipe
};

/// Nothing when the session failed.
std::optional<MemoryReport> estimate_model(Session& session, const SizedModel& model, const EstimateFlags& flags);

/// Of a recipe, whose training is that of `plan`.
MemoryReport report_of_plan(const std::string& title, const engine::Plan& plan, const EstimateFlags& flags);

}  // namespace runner::cli
