#pragma once

#include "components/model/model.h"
#include "components/part/linear.h"

namespace runner::train {

/// The model without its adapters while this lives.
class WithoutAdapters {
 public:
  explicit WithoutAdapters(const components::model::Model& model) : model_(model) { leave_out(true); }
  ~WithoutAdapters() { leave_out(false); }
  WithoutAdapters(const WithoutAdapters&) = delete;
  WithoutAdapters& operator=(const WithoutAdapters&) = delete;

 private:
  void leave_out(bool leave_out) const {
    for (const auto& block : model_.blocks()) {
      for (const components::part::NamedLinear& named : block->linears()) named.linear->leave_out_terms(leave_out);
    }
  }

  const components::model::Model& model_;
};

}  // namespace runner::train
