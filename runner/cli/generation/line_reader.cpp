#include "runner/cli/generation/line_reader.h"

#include <cstdio>

namespace runner::cli {
namespace {

class PlainLines final : public LineReader {
 public:
  Got read(const char*, std::string& line) override {
    line.clear();
    bool too_long = false;
    for (int c = 0; (c = std::getc(stdin)) != '\n';) {
      if (c == EOF) {
        if (line.empty() && !too_long) return Got::kEnd;
        break;
      }
      too_long = too_long || line.size() == kMessageBytesMax;
      if (!too_long) line += static_cast<char>(c);
    }
    return too_long ? Got::kTooLong : Got::kLine;
  }
  void remember(const std::string&) override {}
};

}  // namespace

std::unique_ptr<LineReader> plain_lines() { return std::make_unique<PlainLines>(); }

LineReader::Got read_message(LineReader& lines, std::string& message) {
  message.clear();
  bool too_long = false;
  std::string line;
  for (const char* prompt = "> ";; prompt = ". ") {
    const LineReader::Got got = lines.read(prompt, line);
    if (got == LineReader::Got::kInterrupt) return got;
    if (got == LineReader::Got::kEnd) {
      if (message.empty() && !too_long) return got;
      break;
    }
    too_long = too_long || got == LineReader::Got::kTooLong || message.size() + line.size() > kMessageBytesMax;
    const bool continues = line.ends_with('\\');
    if (continues) line.back() = '\n';
    if (!too_long) message += line;
    if (!continues) break;
  }
  return too_long ? LineReader::Got::kTooLong : LineReader::Got::kLine;
}

}  // namespace runner::cli
