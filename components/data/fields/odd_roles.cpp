#include "components/data/fields/odd_roles.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "runner/core/text/suggest.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

/// Of the speakers that templates know; the latter ones answer for a tool.
constexpr std::array<std::string_view, 9> kUsual = {"system",   "user",    "assistant",   "developer",  "tool",
                                                    "function", "ipython", "environment", "observation"};

}  // namespace

std::vector<std::string> odd_roles(const std::vector<tokenizer::Message>& messages) {
  std::vector<std::string> odd;
  for (const tokenizer::Message& message : messages) {
    const bool is_usual = std::find(kUsual.begin(), kUsual.end(), message.role) != kUsual.end();
    if (!is_usual && std::find(odd.begin(), odd.end(), message.role) == odd.end()) odd.push_back(message.role);
  }
  return odd;
}

runner::core::Failure ToldRoles::warning(const std::string& place, const std::string& role) {
  std::string lower = role;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string near = runner::core::closest(lower, {"system", "user", "assistant", "tool"});
  const std::string meant = near.empty() ? "assistant" : near;
  return {place + " has the role " + runner::core::quote(role) +
              ", which is none of a chat: it is written as another speaker, and is no answer",
          (near.empty() ? "" : "did you mean " + near + "? ") + "set roles: {" + meant + ": [" +
              runner::core::quote(role) + "]} in the set" +
              (near.empty() ? " if it answers, or name it under system, user or tool" : "")};
}

}  // namespace components::data
