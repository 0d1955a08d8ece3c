#pragma once

#include <set>
#include <string>
#include <vector>

#include "components/tokenizer/chat/chat_format.h"
#include "runner/core/result.h"

namespace components::data {

/// Roles of a conversation that are none of the usual ones: a chat format writes them as another speaker, and what
/// they say is no answer. Each at its first message.
std::vector<std::string> odd_roles(const std::vector<tokenizer::Message>& messages);

/// What is said of such roles, of each once.
class ToldRoles {
 public:
  /// Whether this role was not told of yet.
  bool add(const std::string& role) { return told_.size() < kToldMax && told_.insert(role).second; }
  /// `place`: file and line.
  static runner::core::Failure warning(const std::string& place, const std::string& role);

 private:
  static constexpr std::size_t kToldMax = 20;
  std::set<std::string> told_;
};

}  // namespace components::data
