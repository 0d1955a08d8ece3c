#include <charconv>
#include <cstdio>
#include <memory>
#include <vector>

#include "runner/cli/flags.h"
#include "runner/cli/group/tokenizer.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

struct DecodeRequest {
  std::string path, format = "text";
  std::vector<std::string> ids;
  bool skip = false;
};

/// The words of standard input; brackets and commas, as of a list in JSON, are between them, too.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  constexpr const char* kBetween = " \t\r\n,[]";
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBetween, end);
  }
  return words;
}

void decode_ids(DecodeRequest request, Session& session) {
  const auto tokenizer = tokenizer_or_fail(request.path, session);
  if (!tokenizer) return;
  if (request.ids.empty()) request.ids = words_of(standard_input());
  std::vector<std::int32_t> ids;
  for (const std::string& word : request.ids) {
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      return session.fail(core::quote(word) + " is not an id", "ids are integers, with spaces or commas between them");
    }
    if (!tokenizer->token_of(id)) {
      return session.fail("no token has the id " + word,
                          "this tokenizer has ids from 0 to " + std::to_string(tokenizer->id_limit() - 1));
    }
    ids.push_back(id);
  }
  const auto decoded = tokenizer->decode(ids, request.skip);
  if (!decoded) return session.fail(decoded.failure().message, decoded.failure().hint);
  const std::string& text = decoded.value();
  const std::string shown = (request.format == "json" ? "{\"text\": " + core::json_quote(text) + "}" : text) + "\n";
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace

void add_tokenizer_decode(Command group, Session& session) {
  const auto request = std::make_shared<DecodeRequest>();
  Command command = group.add_subcommand("decode", "Print the text of ids");
  command.add_option("PATH", request->path, "Folder or file of the tokenizer").required();
  command.add_option("ID", request->ids, "Ids; without one, those of standard input");
  command.add_flag("--skip-special-tokens", request->skip, "Leave out special tokens");
  add_format(command, request->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux tokenizer decode models/smollm2 19556 905\n"
      "  roux tokenizer encode models/smollm2 \"Hello world\" | roux tokenizer decode models/smollm2\n");
  command.callback([request, &session] { session.command = [request, &session] { decode_ids(*request, session); }; });
}

}  // namespace runner::cli
