#include <cstdio>
#include <memory>
#include <vector>

#include "runner/cli/flags.h"
#include "runner/cli/group/tokenizer.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using components::tokenizer::Encoding;
using components::tokenizer::Tokenizer;

struct EncodeRequest {
  std::string path, format = "text";
  std::vector<std::string> texts;
  bool tokens = false, bare = false;
};

std::string encoding_text(const Tokenizer& tokenizer, const Encoding& encoding, bool tokens) {
  if (!tokens) return core::joined(encoding.ids, " ") + "\n";
  std::string text;
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "%8d %6u %6u  ", encoding.ids[i], encoding.offsets[i].begin,
                  encoding.offsets[i].end);
    text += line + shown_token(tokenizer, encoding.ids[i]) + "\n";
  }
  return text;
}

std::string encoding_json(const Tokenizer& tokenizer, const Encoding& encoding, bool tokens) {
  std::string text = "{\"ids\": [" + core::joined(encoding.ids) + "]";
  if (tokens) {
    text += ", \"tokens\": [" +
            core::joined(encoding.ids, ", ",
                         [&](std::int32_t id) { return core::json_quote(tokenizer.token_of(id).value_or("")); }) +
            "], \"offsets\": [" +
            core::joined(encoding.offsets, ", ",
                         [](const auto& offsets) {
                           return "[" + std::to_string(offsets.begin) + ", " + std::to_string(offsets.end) + "]";
                         }) +
            "]";
  }
  return text + "}\n";
}

void encode_texts(EncodeRequest request, Session& session) {
  const auto tokenizer = tokenizer_or_fail(request.path, session);
  if (!tokenizer) return;
  if (request.texts.empty()) request.texts.push_back(standard_input());
  const components::tokenizer::EncodeOptions options{.add_special_tokens = !request.bare,
                                                     .with_offsets = request.tokens};
  for (const std::string& text : request.texts) {
    const auto encoding = tokenizer->encode(text, options);
    if (!encoding) return session.fail(encoding.failure().message, encoding.failure().hint);
    const std::string shown = request.format == "json" ? encoding_json(*tokenizer, encoding.value(), request.tokens)
                                                       : encoding_text(*tokenizer, encoding.value(), request.tokens);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
  }
}

}  // namespace

void add_tokenizer_encode(Command group, Session& session) {
  const auto request = std::make_shared<EncodeRequest>();
  Command command = group.add_subcommand("encode", "Print the ids of texts, one line each");
  command.add_option("PATH", request->path, "Folder or file of the tokenizer").required();
  command.add_option("TEXT", request->texts, "Text; without one, all of standard input is one text");
  command.add_flag("--tokens", request->tokens, "Show each token with its id and the characters of the text it covers");
  command.add_flag("--no-special-tokens", request->bare, "Leave out the tokens that the model expects around a text");
  add_format(command, request->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux tokenizer encode models/smollm2 \"Hello world\"\n"
      "  roux tokenizer encode models/smollm2 --tokens <letter.txt\n");
  command.callback([request, &session] { session.command = [request, &session] { encode_texts(*request, session); }; });
}

}  // namespace runner::cli
