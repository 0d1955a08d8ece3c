#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "runner/cli/flags.h"
#include "runner/cli/group/tokenizer.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using components::tokenizer::Side;
using components::tokenizer::Tokenizer;

struct InfoRequest {
  std::string path, format = "text";
};

const char* side_word(Side side) { return side == Side::kLeft ? "left" : "right"; }

std::vector<std::pair<const char*, std::optional<std::int32_t>>> special_tokens_of(const Tokenizer& tokenizer) {
  const auto& special = tokenizer.special();
  return {{"bos_token", special.bos},
          {"eos_token", special.eos},
          {"pad_token", special.pad},
          {"unk_token", special.unk},
          {"mask_token", special.mask}};
}

std::string info_text(const Tokenizer& tokenizer) {
  std::string text;
  const auto row = [&](const std::string& name, const std::string& value) {
    text += name + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') + core::escape_for_terminal(value) + "\n";
  };
  const auto& about = tokenizer.description();
  const auto& settings = tokenizer.settings();
  row("file", about.path);
  row("format", about.format);
  row("model", about.model);
  for (const auto& [name, types] : about.parts) row(name, types);
  row("vocabulary", core::counted_large(tokenizer.vocab_size(), "token", "tokens"));
  if (tokenizer.id_limit() != tokenizer.vocab_size()) row("largest id", std::to_string(tokenizer.id_limit() - 1));
  row("added tokens", core::with_commas(static_cast<std::int64_t>(tokenizer.added_tokens().size())));
  for (const auto& [name, id] : special_tokens_of(tokenizer)) {
    if (id) row(name, std::to_string(*id) + "  " + shown_token(tokenizer, *id));
  }
  if (!tokenizer.special().pad && tokenizer.special().eos)
    row("pad_token", "none; a batch is filled up with eos_token");
  if (settings.add_bos_token) row("add_bos_token", *settings.add_bos_token ? "true" : "false");
  if (settings.add_eos_token) row("add_eos_token", *settings.add_eos_token ? "true" : "false");
  row("padding_side", side_word(settings.padding_side));
  row("truncation_side", side_word(settings.truncation_side));
  if (settings.model_max_length) row("model_max_length", core::with_commas(*settings.model_max_length) + " tokens");
  return text;
}

std::string info_json(const Tokenizer& tokenizer) {
  const auto& about = tokenizer.description();
  const auto& settings = tokenizer.settings();
  core::Node node = core::Node::mapping();
  node.set("path", core::Node::string(about.path));
  node.set("format", core::Node::string(about.format));
  node.set("model", core::Node::string(about.model));
  for (const auto& [name, types] : about.parts) node.set(name, core::Node::string(types));
  node.set("vocab_size", core::Node::integer(tokenizer.vocab_size()));
  node.set("id_limit", core::Node::integer(tokenizer.id_limit()));
  node.set("added_tokens", core::Node::integer(static_cast<std::int64_t>(tokenizer.added_tokens().size())));
  for (const auto& [name, id] : special_tokens_of(tokenizer)) {
    core::Node token = core::Node::null();
    if (id) {
      token = core::Node::mapping();
      token.set("id", core::Node::integer(*id));
      token.set("token", core::Node::string(tokenizer.token_of(*id).value_or("")));
    }
    node.set(name, std::move(token));
  }
  const auto flag = [](const std::optional<bool>& value) {
    return value ? core::Node::boolean(*value) : core::Node::null();
  };
  node.set("add_bos_token", flag(settings.add_bos_token));
  node.set("add_eos_token", flag(settings.add_eos_token));
  node.set("padding_side", core::Node::string(side_word(settings.padding_side)));
  node.set("truncation_side", core::Node::string(side_word(settings.truncation_side)));
  node.set("model_max_length",
           settings.model_max_length ? core::Node::integer(*settings.model_max_length) : core::Node::null());
  return core::to_json(node) + "\n";
}

void show_info(const InfoRequest& request, Session& session) {
  const auto tokenizer = tokenizer_or_fail(request.path, session);
  if (!tokenizer) return;
  const std::string shown = request.format == "json" ? info_json(*tokenizer) : info_text(*tokenizer);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace

void add_tokenizer_info(Command group, Session& session) {
  const auto request = std::make_shared<InfoRequest>();
  Command command = group.add_subcommand("info", "Show vocabulary, special tokens and parts of a tokenizer");
  command.add_option("PATH", request->path, "Folder or file of the tokenizer").required();
  add_format(command, request->format, {"text", "json"});
  command.footer("\nExample:\n  roux tokenizer info models/smollm2\n");
  command.callback([request, &session] { session.command = [request, &session] { show_info(*request, session); }; });
}

}  // namespace runner::cli
