#pragma once

#include <string>

#include "components/data/language/jsonl_record.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::data {

/// What the fields of an instruction are called.
struct InstructionKeys {
  std::string instruction, input, output;

  /// Alpaca's names, or Dolly's {instruction, context, response}; those that `columns` names before them. The input has
  /// none, "", where the field of its usual name is named as another one.
  static InstructionKeys of(const runner::core::Node& object, const RecordColumns& columns);
};

/// An instruction, with its input if there is any, and the output, in Alpaca's prompt; `as_chat` as a user's message
/// and its answer, behind those of `system` and of `history`, a list of [question, answer]. Failure: a field is missing
/// or no text.
runner::core::Result<TextRecord> read_instruction(const runner::core::Node& object, const InstructionKeys& keys,
                                                  bool as_chat);

/// The same with two answers.
runner::core::Result<TextRecord> read_instruction_pair(const runner::core::Node& object, const InstructionKeys& keys,
                                                       const std::string& chosen_key, const std::string& rejected_key,
                                                       bool as_chat);

}  // namespace components::data
