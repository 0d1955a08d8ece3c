#pragma once

#include <string>
#include <vector>

namespace runner::pretrained {

/// PEFT's `task_type` of a model with that head; "" where PEFT has none.
std::string task_of_head(const std::string& head);
/// The head of a `task_type`; "" for one that roux does not read.
std::string head_of_task(const std::string& task);
std::vector<std::string> task_names();

}  // namespace runner::pretrained
