#include <memory>
#include <string>
#include <utility>

#include "components/data/data.h"
#include "components/data/selection.h"
#include "generated/data/concat.h"

namespace components::data::concat {

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  SelectionParts parts;
  bool good = true;
  for (std::size_t i = 0; i < config.sets.size(); ++i) {
    // Other sets say for themselves what they hold.
    const runner::core::Node* type = config.sets[i].find("type");
    const bool is_table = type != nullptr && type->is_string() && type->as_string() == "csv_table";
    const Dataset* const first = is_table && !parts.sets.empty() ? parts.sets.front().get() : nullptr;
    Inputs own{inputs.name + ".sets[" + std::to_string(i) + "]",
               config.sets[i],
               inputs.diagnostics,
               inputs.header_only,
               inputs.train != nullptr ? inputs.train : first,
               inputs.seed,
               inputs.new_rows,
               inputs.keep,
               inputs.tokenizer};
    std::shared_ptr<Dataset> set = build(config.sets[i], own);
    if (set != nullptr && !is_counted(*set, own)) set = nullptr;
    good = good && set != nullptr;
    if (set != nullptr) parts.sets.push_back(std::move(set));
  }
  return good ? make_selection(std::move(parts), inputs) : nullptr;
}

}  // namespace components::data::concat
