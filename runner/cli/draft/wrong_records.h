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

}  // namespace runner::cli
