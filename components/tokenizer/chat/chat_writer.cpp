#include "components/tokenizer/chat/chat_writer.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

namespace fs = std::filesystem;

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr const char* kTemplateFile = "chat_template.jinja";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr std::int64_t kBytesMax = 64 << 20;  // a configuration may list every added token

class FormatWriter final : public ChatWriter {
 public:
  explicit FormatWriter(ChatFormat format) : format_(std::move(format)) {}

  Result<Conversation> render(const Chat& chat, bool answer) const override {
    return format_.render(chat.messages, answer);
  }
  Result<std::string> render_unfinished(const Chat& chat) const override {
    return format_.render_unfinished(chat.messages);
  }
  bool reads(std::string_view /*field*/) const override { return false; }
  std::string end_of_turn() const override { return format_.end_of_turn(); }

 private:
  ChatFormat format_;
};

std::string names_hint() {
  const std::string names =
      runner::core::joined(known_chat_formats(), ", ", [](const ChatFormat& format) { return format.name; });
  return "set chat_format to one of " + names + ", to {template: FILE}, or to a mapping of its texts";
}

/// Of several templates the one that is called `default`, as in Transformers.
Result<std::string> default_of(const Node& templates, const std::string& file) {
  std::vector<std::string> names;
  for (const Node& one : templates.items()) {
    const Node* name = one.is_mapping() ? one.find("name") : nullptr;
    const Node* text = one.is_mapping() ? one.find("template") : nullptr;
    if (name == nullptr || !name->is_string() || text == nullptr || !text->is_string()) continue;
    if (name->as_string() == "default") return text->as_string();
    names.push_back(name->as_string());
  }
  return Failure{"chat_template in " + file + " has no template called default" +
                     (names.empty() ? "" : ", but " + runner::core::joined(names)),
                 "write one of them into a file, and set chat_format to {template: FILE}"};
}

}  // namespace

Result<FoundTemplate> template_in(const std::string& folder) {
  std::error_code failed;
  if (const fs::path file = fs::path(folder) / kTemplateFile; fs::is_regular_file(file, failed)) {
    auto text = runner::core::read_file(file.string(), kBytesMax);
    if (!text) return text.failure();
    return FoundTemplate{std::move(text.value()), file.string()};
  }
  const Failure none{"there is no chat template in " + folder, names_hint()};
  const fs::path file = fs::path(folder) / kConfigFile;
  if (!fs::is_regular_file(file, failed)) return none;
  const auto text = runner::core::read_file(file.string(), kBytesMax);
  if (!text) return text.failure();
  const auto config = runner::core::parse_json(text.value());
  const Node* found = config && config.value().is_mapping() ? config.value().find("chat_template") : nullptr;
  if (found == nullptr || found->is_null()) return none;
  if (found->is_sequence()) {
    auto one = default_of(*found, file.string());
    if (!one) return one.failure();
    return FoundTemplate{std::move(one.value()), "chat_template in " + file.string()};
  }
  if (!found->is_string()) return Failure{"chat_template in " + file.string() + " is no text", names_hint()};
  return FoundTemplate{found->as_string(), "chat_template in " + file.string()};
}

Result<ChatWriterPtr> chat_writer(const ChatFormat& format, const Tokenizer& tokenizer) {
  auto with_tokens = format.with_tokens_of(tokenizer);
  if (!with_tokens) return with_tokens.failure();
  return ChatWriterPtr(std::make_shared<const FormatWriter>(std::move(with_tokens.value())));
}

Result<ChatWriterPtr> chat_writer_of(const Tokenizer& tokenizer, const Node& variables) {
  const std::string folder = fs::path(tokenizer.description().path).parent_path().string();
  const auto found = template_in(folder.empty() ? "." : folder);
  if (!found) return found.failure();
  return template_writer(found.value().text, found.value().name, tokenizer, variables);
}

}  // namespace components::tokenizer
