#include "components/data/language/jsonl_keys.h"

#include <string>
#include <string_view>

#include "components/data/block_location.h"

namespace components::data::jsonl {

bool fits_labels(const Config& config, const Inputs& inputs) {
  bool fits = true;
  const auto refuse = [&](const std::string& key, std::string_view value, const std::string& why) {
    fits = false;
    inputs.diagnostics.error(location_of(inputs.block, key),
                             "data." + inputs.name + "." + key + " is " + std::string(value) +
                                 ", but the loss is of labelled records, " + why,
                             "remove " + key);
  };
  if (config.loss_on == LossOn::kAll || config.loss_on == LossOn::kLast) {
    refuse("loss_on", to_text(config.loss_on), "of which it learns the completions");
  }
  if (config.train_on_eos != TrainOnEos::kTurn) {
    refuse("train_on_eos", to_text(config.train_on_eos), "of which it learns the completions with their ends");
  }
  if (!config.train_on_thinking) {
    refuse("train_on_thinking", "false", "of which it learns the completions with their thoughts");
  }
  if (config.streaming) refuse("streaming", "true", "each of which is compared with another one of the set");
  if (config.packing) refuse("packing", "true", "each of which is a row of its own");
  return fits;
}

bool fits_source(const Config& config, const Inputs& inputs) {
  bool fits = true;
  const auto refuse = [&](const std::string& key, const std::string& why) {
    fits = false;
    inputs.diagnostics.error(
        location_of(inputs.block, key),
        "data." + inputs.name + "." + key + " is set, but the model writes a text of another one" + why,
        "remove " + key);
  };
  if (config.loss_on != LossOn::kCompletion) refuse("loss_on", ", of which all is learnt");
  if (config.train_on_eos != TrainOnEos::kTurn) refuse("train_on_eos", ", of which all is learnt");
  if (!config.train_on_thinking) refuse("train_on_thinking", ", of which all is learnt");
  if (config.chat_format && !config.chat_format->is_null()) refuse("chat_format", ", and no conversation");
  if (config.roles) refuse("roles", ", and no conversation");
  if (config.streaming && !inputs.new_rows) refuse("streaming", ", which is read into memory");
  if (config.packing) refuse("packing", ": a pair of them is a row of its own");
  return fits;
}

bool name_one_form(const Columns& columns, const Inputs& inputs) {
  const bool names_instruction = columns.instruction || columns.input || columns.output;
  const bool names_others =
      columns.prompt || columns.completion || columns.messages || columns.chosen || columns.rejected;
  const auto refuse = [&](const char* key, const std::string& form, const std::string& hint) {
    inputs.diagnostics.error(location_of(*inputs.block.find("columns"), key),
                             "data." + inputs.name + ".columns names " + form + ", and parts of another record", hint);
    return false;
  };
  if (columns.text && (names_others || names_instruction)) {
    return refuse("text", "a whole text", "remove text, or the others");
  }
  const bool is_pair = columns.chosen && columns.rejected && !columns.prompt && !columns.completion &&
                       !columns.messages && !columns.output;  // two answers to an instruction
  if (!names_instruction || !names_others || is_pair) return true;
  const char* const key = columns.instruction ? "instruction" : columns.input ? "input" : "output";
  return refuse(key, "an instruction", "remove instruction, input and output, or the others");
}

}  // namespace components::data::jsonl
