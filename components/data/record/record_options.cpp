#include "components/data/record/record_options.h"

#include <utility>

namespace components::data {

void RecordSetOptions::use(std::shared_ptr<const tokenizer::Tokenizer> its) {
  fill.id = its->fill_id().value_or(0);
  fill.left = its->settings().padding_side == tokenizer::Side::kLeft;
  cut_left = its->settings().truncation_side == tokenizer::Side::kLeft;
  vocab_size = its->id_limit();
  units = "tokens";
  tokenizer = std::move(its);
}

}  // namespace components::data
