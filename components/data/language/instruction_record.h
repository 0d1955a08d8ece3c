#pragma once

#include <string>

#include "components/data/language/jsonl_record.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::data {

/// What the fields of an instruction are called.
struct InstructionKeys {
  std::string instruction, input, output;

  /// Alpaca's names, or Dolly's {instruction, context, response}; those that `columns` names before them.
  static InstructionKeys of(const runner::core::Node& object, const RecordColumns& columns);
};

/// An instruction, with its input if there is any, and the output, in Alpaca's prompt. Failure: a field is missing or
/// no text.
runner::core::Result<TextRecord> read_instruction(const runner::core::Node& object, const InstructionKeys& keys);

/// The same as a user's message and its answer, behind those of `system` and of `history`, a list of
/// [question, answer].
runner::core::Result<TextRecord> read_instruction_as_chat(const runner::core::Node& object,
                                                          const InstructionKeys& keys);

}  // namespace components::data
