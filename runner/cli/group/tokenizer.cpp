#include "runner/cli/group/tokenizer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

constexpr std::size_t kInputMax = 1 << 30;

}  // namespace

std::shared_ptr<const components::tokenizer::Tokenizer> tokenizer_or_fail(const std::string& path, Session& session) {
  const auto here = session.fetched_path(path, hub::Part::kTokenizer);
  if (!here) return nullptr;
  auto read = components::tokenizer::read_tokenizer(*here);
  if (read) return std::move(read).value();
  session.fail(read.failure().message, read.failure().hint);
  return nullptr;
}

std::string standard_input() {
  std::string text;
  char part[65536];
  for (std::size_t size = 0; (size = std::fread(part, 1, sizeof part, stdin)) > 0;) {
    if (text.size() + size > kInputMax) throw core::RunError("standard input holds more than 1 GiB");
    text.append(part, size);
  }
  if (std::ferror(stdin) != 0) throw core::RunError(std::string("cannot read standard input: ") + std::strerror(errno));
  return text;
}

std::string shown_token(const components::tokenizer::Tokenizer& tokenizer, std::int32_t id) {
  return core::quote(tokenizer.token_of(id).value_or(""));
}

}  // namespace runner::cli
