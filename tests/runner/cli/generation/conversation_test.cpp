#include "runner/cli/generation/conversation.h"

#include <catch2/catch.hpp>
#include <string>

namespace {

using runner::cli::Conversation;

std::string roles_and_texts(const runner::engine::Prompt& prompt) {
  std::string text;
  for (const auto& [role, content] : prompt.messages) text += role.substr(0, 1) + ":" + content + " ";
  return text;
}

}  // namespace

TEST_CASE("a conversation leaves out its oldest turns, and never the system message", "[cli][chat]") {
  Conversation conversation("brief");
  conversation.add({"a", "b"});
  conversation.add({"c", "d"});
  CHECK(roles_and_texts(conversation.prompt("e")) == "s:brief u:a a:b u:c a:d u:e ");
  CHECK(conversation.leave_out_oldest());
  CHECK(roles_and_texts(conversation.prompt("e")) == "s:brief u:c a:d u:e ");
  CHECK(conversation.leave_out_oldest());
  CHECK(roles_and_texts(conversation.prompt("e")) == "s:brief u:e ");
  CHECK_FALSE(conversation.leave_out_oldest());
  CHECK(roles_and_texts(conversation.prompt_alone("e")) == "s:brief u:e ");
  conversation.add({"e", "f"});
  CHECK(roles_and_texts(conversation.prompt("g")) == "s:brief u:e a:f u:g ");
  // The file has all of it.
  CHECK(conversation.message_count() == 7);
  CHECK(conversation.json() ==
        R"({"messages": [{"role": "system", "content": "brief"}, {"role": "user", "content": "a"}, )"
        R"({"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, )"
        R"({"role": "assistant", "content": "d"}, {"role": "user", "content": "e"}, )"
        R"({"role": "assistant", "content": "f"}]})");
}

TEST_CASE("the last turn can be taken back", "[cli][chat]") {
  Conversation conversation;
  CHECK_FALSE(conversation.take_last());
  conversation.add({"a", "b"});
  conversation.add({"c", "d"});
  conversation.leave_out_oldest();
  conversation.leave_out_oldest();
  const auto last = conversation.take_last();
  REQUIRE(last);
  CHECK(last->question == "c");
  CHECK(roles_and_texts(conversation.prompt("c")) == "u:c ");
  conversation.add({"c", "again"});
  CHECK(roles_and_texts(conversation.prompt("e")) == "u:c a:again u:e ");
}
