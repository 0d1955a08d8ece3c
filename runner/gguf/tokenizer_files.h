#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/node.h"

namespace runner::gguf {

/// The tokenizer of a file as a folder of Transformers has it: tokenizer.json, tokenizer_config.json and, where there
/// is one, chat_template.jinja; content by name. `values`: of the file. `name`: of it, for messages. RunError (exit
/// status 2): no tokenizer, another kind than BPE, one that splits texts in a way that roux does not know.
std::vector<std::pair<std::string, std::string>> tokenizer_files(const core::Node& values, const std::string& name);

}  // namespace runner::gguf
