#include "tests/fuzz/answer_files.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <vector>

#include "runner/hub/answers.h"
#include "runner/hub/model_files.h"
#include "runner/hub/name.h"
#include "runner/hub/web_file.h"

namespace tests {
namespace {

using namespace runner;

constexpr std::string_view kStatuses[] = {"200", "206", "302", "307", "404", "416", "429", "503", "0", "-1"};
constexpr std::string_view kHeaders[] = {
    "ETag: \"0123456789012345678901234567890123456789\"",
    "ETag: W/\"abc\"",
    "X-Linked-Etag: \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
    "X-Linked-Size: 300000",
    "X-Repo-Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "Content-Length: 9223372036854775807",
    "Content-Range: bytes 100-199/300",
    "Content-Range: bytes */300",
    "Retry-After: 7",
    "Location: https://storage/a/b?c=d#sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "Location: //storage/a",
    "Location: ../a",
    "Location: http://localhost/a",
    "Location: file:///etc/passwd",
    "Location: hf://datasets/ada/words@main/a/b.jsonl",
    "X-Error-Code: GatedRepo"};
constexpr std::string_view kPieces[] = {"/",       "..",       "://",    "?",       "#", "@", "%2F",
                                        "%",       "[",        "]",      "\"",      "-", "*", "99999999999",
                                        "http://", "https://", "bytes ", "\x1b[2J", ":", " ", "\\"};

net::HttpAnswer parsed(const std::string& text) {
  net::HttpAnswer answer;
  std::size_t at = std::min(text.find('\n'), text.size());
  answer.status = std::strtol(text.substr(0, at).c_str(), nullptr, 10);
  while (at < text.size()) {
    const std::size_t begin = at + 1, end = std::min(text.find('\n', begin), text.size());
    at = end;
    if (begin >= end) break;
    const std::string line = text.substr(begin, end - begin);
    const std::size_t colon = std::min(line.find(": "), line.size());
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    answer.headers[name] = colon < line.size() ? line.substr(colon + 2) : "";
  }
  answer.body = at < text.size() ? text.substr(at + 1) : "";
  return answer;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void read_body(const std::string& body) {
  if (const auto listing = hub::parse_listing(body)) {
    require(hub::is_commit(listing->commit));
    for (const std::string& file : listing->files) require(hub::is_safe_path(file));
    for (const auto part : {hub::Part::kTokenizer, hub::Part::kSettings, hub::Part::kAll}) {
      hub::files_of(part, listing->files);
    }
  }
  for (const std::string& shard :
       hub::shards_of("a/model.safetensors.index.json", body).value_or(std::vector<std::string>())) {
    require(hub::is_safe_path(shard) && shard.starts_with("a/"));
  }
}

void read_location(const std::string& location) {
  for (const char* from : {"https://hub/a/b?c=/d", "http://hub", "https://hub"}) {
    const auto target = hub::redirect_target(from, location);
    if (!target) continue;
    const bool is_plain = target.value().starts_with("http://");
    require(is_plain ? !std::string_view(from).starts_with("https") : target.value().starts_with("https://"));
    hub::origin_of(target.value());
  }
  if (const auto file = hub::parse_web_file(location)) {
    const std::string name = file.value().file();
    require(hub::is_safe_path(name) && name.find('/') == std::string::npos && file.value().sha256.size() == 64);
    const auto again = hub::parse_web_file(file.value().text());
    require(again.ok() && again.value().text() == file.value().text());
  }
  if (const auto name = hub::parse_name(location)) {
    require(name.value().file.empty() || hub::is_safe_path(name.value().file));
    const auto again = hub::parse_name(name.value().text());
    require(again.ok() && again.value().text() == name.value().text());
  }
}

}  // namespace

void AnswerFiles::damage(std::string& text) {
  const std::size_t at = below(text.size() + 1);
  switch (below(5)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      break;
    case 1: text.erase(at, 1 + below(12)); break;
    case 2: text.resize(at); break;
    case 3: text.insert(at, text.substr(below(text.size() + 1), 1 + below(40))); break;
    default: text.insert(at, kPieces[below(std::size(kPieces))]);
  }
}

std::string AnswerFiles::next() {
  std::string text(kStatuses[below(std::size(kStatuses))]);
  for (std::size_t headers = below(7); headers > 0; --headers) {
    std::string line(kHeaders[below(std::size(kHeaders))]);
    for (std::size_t rounds = below(4); rounds > 0; --rounds) damage(line);
    text += "\n" + line;
  }
  return text + "\n\n" + bodies_.next();
}

void AnswerFiles::read(const std::string& text) {
  const net::HttpAnswer answer = parsed(text);
  if (const auto info = hub::parse_file_info(answer, std::string(40, 'a'))) {
    require(hub::is_safe_path(info->etag) && info->etag.find('/') == std::string::npos && info->bytes >= -1);
  }
  const hub::ContentRange range = hub::content_range(answer);
  require(range.begin >= -1 && range.total >= -1 && hub::whole_bytes(answer) >= -1);
  for (const int attempt : {0, 4, 40}) {
    const auto pause = hub::pause_before(attempt, &answer);
    require(!pause || (*pause >= 0 && *pause <= 300));
  }
  hub::try_again(answer);
  hub::is_redirect(answer);
  read_location(answer.header("location"));
  read_body(answer.body);
}

}  // namespace tests
