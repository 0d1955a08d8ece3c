#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/cli/draft/field_facts.h"
#include "runner/cli/draft/task.h"
#include "runner/core/result.h"

namespace runner::cli {

/// What well-known records lack that roux does not read, with what makes others of them; nothing of other records.
std::optional<core::Failure> why_unread(const std::vector<FieldFacts>& fields, TaskRequest::Model model);

/// Why this field does not tell classes or values; nothing where it may.
std::optional<core::Failure> why_no_label(const FieldFacts& label);

/// Why a table has no names of its columns: the first row, which is to have them, has a text and a number.
std::optional<core::Failure> why_no_names(const std::string& path, const std::vector<FieldFacts>& fields);

}  // namespace runner::cli
