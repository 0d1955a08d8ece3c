#include "runner/terminal/live_lines.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace runner::terminal {
namespace {

constexpr int kColumnsMin = 60, kRowsMin = 8;

// ECMA-48: erase to the end of the line, or of the screen.
constexpr std::string_view kEraseLine = "\x1b[K", kEraseBelow = "\x1b[J";

std::string up(std::size_t lines) { return lines == 0 ? "" : "\r\x1b[" + std::to_string(lines) + "A"; }

}  // namespace

std::optional<LiveLines::Size> LiveLines::size_of(int descriptor) {
  if (isatty(descriptor) == 0) return std::nullopt;
  const char* kind = std::getenv("TERM");
  if (kind == nullptr || std::string_view(kind).empty() || std::string_view(kind) == "dumb") return std::nullopt;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col < kColumnsMin || size.ws_row < kRowsMin)
    return std::nullopt;
  return Size{size.ws_col, size.ws_row};
}

void LiveLines::draw(const std::vector<std::string>& lines) {
  if (lines == drawn_) return;
  std::string text = up(drawn_.size());
  for (const std::string& line : lines) text.append(line).append(kEraseLine).append("\n");
  if (drawn_.size() > lines.size()) text += kEraseBelow;
  write(text);
  drawn_ = lines;
}

void LiveLines::clear() {
  if (drawn_.empty()) return;
  write(up(drawn_.size()).append(kEraseBelow));
  drawn_.clear();
}

void LiveLines::write(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(descriptor_, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return;  // a terminal that is gone takes nothing more
    if (count > 0) done += static_cast<std::size_t>(count);
  }
}

}  // namespace runner::terminal
