#include "components/tokenizer/chat/chat_format.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"

namespace components::tokenizer {
namespace {

namespace fs = std::filesystem;

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr const char* kTemplateFile = "chat_template.jinja";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr std::int64_t kBytesMax = 64 << 20;  // a configuration may list every added token

const std::vector<ChatFormat>& formats() {
  static const std::vector<ChatFormat> all = {
      {"chatml", "", "<|im_start|>", "\n", "<|im_end|>", "\n", "f0a6a8278439fdb056191e205a440263"},
      {"smollm2", "You are a helpful AI assistant named SmolLM, trained by Hugging Face", "<|im_start|>", "\n",
       "<|im_end|>", "\n", "98f63cc3d421d28f99ab995e9629dacd"},
  };
  return all;
}

std::string names() {
  return runner::core::joined(formats(), ", ", [](const ChatFormat& format) { return format.name; });
}

std::string hash_of(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return digits;
}

/// A file of its own goes before the field of the configuration, as in Transformers.
std::optional<std::string> template_of(const std::string& folder) {
  std::error_code failed;
  if (const fs::path file = fs::path(folder) / kTemplateFile; fs::is_regular_file(file, failed)) {
    const auto text = runner::core::read_file(file.string(), kBytesMax);
    return text ? std::make_optional(text.value()) : std::nullopt;
  }
  const fs::path file = fs::path(folder) / kConfigFile;
  if (!fs::is_regular_file(file, failed)) return std::nullopt;
  const auto text = runner::core::read_file(file.string(), kBytesMax);
  if (!text) return std::nullopt;
  const auto config = runner::core::parse_json(text.value());
  const Node* found = config && config.value().is_mapping() ? config.value().find("chat_template") : nullptr;
  return found != nullptr && found->is_string() ? std::make_optional(found->as_string()) : std::nullopt;
}

}  // namespace

Result<Conversation> ChatFormat::render(const std::vector<Message>& messages) const {
  if (messages.empty()) return Failure{"a conversation has no message", ""};
  Conversation whole;
  const auto turn = [&](const std::string& role, const std::string& content) {
    whole.text += before_role + role + before_content;
    const std::size_t begin = whole.text.size();
    whole.text += content + end_token;
    if (role == "assistant") whole.answers.emplace_back(begin, whole.text.size());
    whole.text += after_turn;
  };
  if (!default_system.empty() && messages.front().role != "system") turn("system", default_system);
  for (const Message& message : messages) turn(message.role, message.content);
  return whole;
}

const ChatFormat* find_chat_format(std::string_view name) {
  const auto at =
      std::find_if(formats().begin(), formats().end(), [&](const ChatFormat& format) { return format.name == name; });
  return at != formats().end() ? &*at : nullptr;
}

Result<const ChatFormat*> chat_format_of(const std::string& folder) {
  const std::optional<std::string> text = template_of(folder);
  if (!text) return Failure{"there is no chat template in " + folder, "set chat_format to one of " + names()};
  const std::string hash = hash_of(*text);
  for (const ChatFormat& format : formats()) {
    if (format.template_hash == hash) return &format;
  }
  return Failure{"the chat template in " + folder + " is not one that roux knows",
                 "set chat_format to one of " + names()};
}

}  // namespace components::tokenizer
