#pragma once

#include <optional>
#include <string>
#include <vector>

namespace runner::terminal {

/// Lines at the bottom of a terminal that are updated in place, with one write each time, so that nothing flickers.
class LiveLines {
 public:
  struct Size {
    int columns, rows;
  };
  /// The size of the terminal; nothing if it cannot update lines: not a terminal, a dumb one, or too small.
  static std::optional<Size> size_of(int descriptor);

  /// `descriptor`: the terminal. The lines must fit into it.
  explicit LiveLines(int descriptor) : descriptor_(descriptor) {}

  /// Replaces the lines; writes nothing when they are the same.
  void draw(const std::vector<std::string>& lines);
  /// Erases the lines, so that other output can be printed; the next draw() puts them below it.
  void clear();
  /// Leaves the lines on the terminal for good.
  void leave() { drawn_.clear(); }

 private:
  void write(const std::string& text) const;

  int descriptor_;
  std::vector<std::string> drawn_;
};

}  // namespace runner::terminal
