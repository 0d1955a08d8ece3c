#pragma once

#include <optional>
#include <string>
#include <vector>

namespace runner::terminal {

/// Lines at the bottom of a terminal that are drawn anew in their place. One write draws all of them, over what was
/// there, so that nothing flickers.
class LiveLines {
 public:
  struct Size {
    int columns, rows;
  };
  /// Nothing where lines cannot be drawn in place: no terminal, a dumb one, or one that is too small.
  static std::optional<Size> size_of(int descriptor);

  /// `descriptor`: of the terminal. The lines must fit into it.
  explicit LiveLines(int descriptor) : descriptor_(descriptor) {}

  /// Puts the lines where those before them stood; nothing is written when they are the same.
  void draw(const std::vector<std::string>& lines);
  /// Takes them away: what is printed next stands in their place, and they come back below it with the next draw().
  void clear();
  /// Leaves them as they are, as lines like any other.
  void leave() { drawn_.clear(); }

 private:
  void write(const std::string& text) const;

  int descriptor_;
  std::vector<std::string> drawn_;
};

}  // namespace runner::terminal
