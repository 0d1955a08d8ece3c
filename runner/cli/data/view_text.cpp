#include "runner/cli/data/view_text.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "runner/cli/data/fields_text.h"
#include "runner/core/node.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::Node;
using engine::SamplePart;
using engine::SampleView;

/// A token as it is shown.
struct Piece {
  std::string text;
  bool learnt = false, special = false, ends_line = false;
};

constexpr const char* kReset = "\x1b[0m";

std::string replaced(std::string_view text, char byte, std::string_view by) {
  std::string made;
  for (const char c : text) {
    if (c == byte) {
      made += by;
    } else {
      made += c;
    }
  }
  return made;
}

/// Safe for a terminal; line ends and tabs can be seen. Bytes that belong to a character in part stay as `\xNN`.
std::string shown(std::string_view text, const terminal::Terminal& terminal) {
  std::string lines;
  std::string_view rest = text;
  for (std::size_t end = 0; end != std::string_view::npos; rest.remove_prefix(end + 1)) {
    end = rest.find('\n');
    lines += core::escape_for_terminal(replaced(rest.substr(0, end), '\t', terminal.unicode ? "\u21e5" : "\\t"));
    if (end == std::string_view::npos) break;
    lines += terminal.unicode ? "\u21b5" : "\\n";
  }
  return lines;
}

/// Lays pieces out in lines.
class Lines {
 public:
  Lines(const ViewStyle& style, bool separated, bool marks)
      : style_(style),
        separator_(!separated || style.terminal.color ? "" : (style.terminal.unicode ? "\u2502" : "|")),
        marks_wanted_(marks && !style.terminal.color) {}

  void add(const Piece& piece) {
    const std::size_t columns = core::terminal_columns(piece.text);
    const std::size_t between = columns_ > 0 && !separator_.empty() ? 1 : 0;
    if (columns_ > 0 && columns_ + between + columns + kIndent > style_.width) flush();
    if (columns_ > 0 && !separator_.empty()) {
      line_ += separator_;
      marks_ += ' ';
      ++columns_;
    }
    line_ += style_.terminal.color ? painted(piece) : piece.text;
    marks_ += std::string(columns, piece.learnt ? '^' : ' ');
    columns_ += columns;
    ++count_;
    if (piece.ends_line) flush();
  }

  std::string take() {
    flush();
    return std::move(text_);
  }

 private:
  static constexpr std::size_t kIndent = 2;

  void flush() {
    if (line_.empty()) return;
    text_ += "  " + line_ + "\n";
    marks_.erase(marks_.find_last_not_of(' ') + 1);
    if (marks_wanted_ && !marks_.empty()) text_ += "  " + marks_ + "\n";
    line_.clear();
    marks_.clear();
    columns_ = 0;
  }

  std::string painted(const Piece& piece) const {
    std::string codes = count_ % 2 == 0 ? "48;5;236" : "48;5;240";
    codes += piece.learnt ? ";92" : ";37";
    if (piece.special) codes += ";1";
    return "\x1b[" + codes + "m" + piece.text + kReset;
  }

  const ViewStyle& style_;
  std::string separator_;
  bool marks_wanted_;
  std::string text_, line_, marks_;
  std::size_t columns_ = 0, count_ = 0;
};

/// Of positions [begin, end); of bytes one for each character.
std::vector<Piece> pieces_of(const SampleView& sample, const Learnt& learnt, std::size_t begin, std::size_t end,
                             const terminal::Terminal& terminal) {
  std::vector<Piece> pieces;
  if (sample.unit != SampleView::Unit::kBytes) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::string& text = sample.tokens[i];
      pieces.push_back({shown(text, terminal), learnt.tokens[i], sample.special[i], text.ends_with('\n')});
    }
    return pieces;
  }
  std::string bytes;
  for (std::size_t i = begin; i < end; ++i) bytes += static_cast<char>(sample.ids[i]);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = std::max<std::size_t>(1, core::utf8_length(bytes, at));
    const std::string_view character = std::string_view(bytes).substr(at, length);
    pieces.push_back({shown(character, terminal), learnt.tokens[begin + at + length - 1], false, character == "\n"});
    at += length;
  }
  return pieces;
}

const char* units_of(const SampleView& sample) {
  switch (sample.unit) {
    case SampleView::Unit::kBytes: return "bytes";
    case SampleView::Unit::kTokens: return "tokens";
    case SampleView::Unit::kIds: return "ids";
  }
  return "";
}

std::string last_target(const SampleView& sample, const Learnt& learnt, const ViewStyle& style) {
  if (!learnt.shifted || sample.last_target.empty()) return "";
  return "  then, to be predicted only: " + shown(sample.last_target, style.terminal) + "\n";
}

std::string ids_text(const SampleView& sample, const Learnt& learnt, const ViewStyle& style) {
  std::vector<std::vector<terminal::Cell>> rows;
  const std::size_t count = std::max(sample.ids.size(), sample.targets.size());
  for (std::size_t i = 0; i < count; ++i) {
    const bool has_target = i < sample.targets.size() && sample.targets[i] != SampleView::kNoTarget;
    std::string target;
    if (has_target && (sample.in_place || sample.is_written)) {
      target = sample.answers[i];
    } else if (has_target && learnt.shifted) {
      target = i + 1 < sample.tokens.size() ? sample.tokens[i + 1] : sample.last_target;
    }
    const bool has_id = i < sample.ids.size();
    rows.push_back({{"  " + std::to_string(i)},
                    {has_id ? std::to_string(sample.ids[i]) : ""},
                    {has_id ? shown(sample.tokens[i], style.terminal) : ""},
                    {has_target ? std::to_string(sample.targets[i]) : "-"},
                    {shown(target, style.terminal)}});
  }
  return terminal::table_text(
      {{"  position", true}, {"id", true}, {"token", false, true}, {"target", true}, {"its token", false, true}}, rows,
      style.terminal);
}

/// `  tags: O, B-PER, O`; "" where there are none.
std::string tags_text(const SampleView& sample) {
  std::vector<std::string> tags;
  for (const std::string& tag : sample.tags) {
    if (!tag.empty()) tags.push_back(core::escape_for_terminal(tag));
  }
  return tags.empty() ? "" : "  tags: " + core::joined(tags) + "\n";
}

/// `  to be told: fox│the`, what stood where something was masked, or `  to be written: ...` of a decoder; "" where
/// nothing was.
std::string answers_text(const SampleView& sample, const ViewStyle& style) {
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < sample.answers.size(); ++i) {
    if (sample.targets[i] != SampleView::kNoTarget) answers.push_back(shown(sample.answers[i], style.terminal));
  }
  return answers.empty() ? ""
                         : (sample.is_written ? "  to be written: " : "  to be told: ") +
                               core::joined(answers, style.terminal.unicode ? "\u2502" : "|") + "\n";
}

std::string sequence_text(const SampleView& sample, const ViewStyle& style) {
  const Learnt learnt = learnt_of(sample);
  const auto count = static_cast<std::int64_t>(sample.ids.size());
  const bool several = sample.parts.size() > 1;
  std::string text = "sample " + std::to_string(sample.index) + ": ";
  const std::string source = sample.parts.empty() ? "" : source_text(sample.parts.front());
  if (several) {
    text += std::to_string(sample.parts.size()) + " documents, ";
  } else if (!source.empty()) {
    text += source + ", ";
  }
  text += core::with_commas(count) + " " + units_of(sample) + ", ";
  text += !sample.label.empty()  ? "label " + core::escape_for_terminal(sample.label)
          : !sample.tags.empty() ? core::with_commas(learnt.targets) + " with a tag"
                                 : core::with_commas(learnt.targets) + " with loss";
  if (!several && !sample.parts.empty() && sample.parts.front().cut) text += ", cut";
  text += "\n";
  if (style.ids) return text + ids_text(sample, learnt, style);
  const auto marked = std::count(learnt.tokens.begin(), learnt.tokens.end(), true);
  const bool all = marked + static_cast<std::int64_t>(std::max<std::size_t>(1, sample.parts.size())) >= count;
  std::vector<SamplePart> parts = sample.parts;
  if (parts.empty()) parts.push_back({.begin = 0, .length = count});
  for (const SamplePart& part : parts) {
    if (several) {
      text += "  " + std::to_string(part.begin) + ": " + source_text(part) + ", " + core::with_commas(part.length) +
              " " + units_of(sample) + (part.cut ? ", cut" : "") + "\n";
    }
    Lines lines(style, sample.unit == SampleView::Unit::kTokens || sample.unit == SampleView::Unit::kIds, !all);
    const auto end = std::min(count, part.begin + part.length);
    for (const Piece& piece : pieces_of(sample, learnt, static_cast<std::size_t>(part.begin),
                                        static_cast<std::size_t>(end), style.terminal)) {
      lines.add(piece);
    }
    text += lines.take();
  }
  return text + tags_text(sample) + answers_text(sample, style) + last_target(sample, learnt, style);
}

std::string fields_text(const SampleView& sample) {
  std::string text = "sample " + std::to_string(sample.index);
  if (!sample.parts.empty()) text += ": " + source_text(sample.parts.front());
  text += "\n";
  std::size_t width = 0;
  for (const auto& [name, value] : sample.columns) width = std::max(width, core::terminal_columns(name));
  for (const auto& [name, value] : sample.tensors) width = std::max(width, core::terminal_columns(name));
  const auto line = [&](const std::string& name, const std::string& value) {
    text += "  " + core::escape_for_terminal(name) + std::string(width - core::terminal_columns(name) + 2, ' ') +
            core::escape_for_terminal(value) + "\n";
  };
  for (const auto& [name, value] : sample.columns) line(name, value.is_null() ? "" : value.scalar_text());
  for (const auto& [name, value] : sample.tensors) line(name, value);
  return text;
}

template <typename Numbers>
Node numbers(const Numbers& values) {
  std::vector<Node> items;
  for (const auto value : values) items.push_back(Node::integer(static_cast<std::int64_t>(value)));
  return Node::sequence(std::move(items));
}

Node sources(const std::vector<SamplePart>& parts) {
  std::vector<Node> items;
  for (const SamplePart& part : parts) {
    Node item = Node::mapping();
    item.set("file", part.file.empty() ? Node::null() : Node::string(part.file));
    if (!part.unit.empty()) item.set(part.unit, Node::integer(part.number));
    item.set("begin", Node::integer(part.begin));
    item.set("length", Node::integer(part.length));
    item.set("cut", Node::boolean(part.cut));
    items.push_back(std::move(item));
  }
  return Node::sequence(std::move(items));
}

Node sample_node(const SampleView& sample) {
  Node node = Node::mapping();
  node.set("index", Node::integer(sample.index));
  if (sample.ids.empty()) {
    Node columns = Node::mapping(), tensors = Node::mapping();
    for (const auto& [name, value] : sample.columns) columns.set(name, value);
    for (const auto& [name, value] : sample.tensors) tensors.set(name, Node::string(value));
    if (!sample.columns.empty()) node.set("columns", std::move(columns));
    node.set("tensors", std::move(tensors));
  } else {
    std::vector<Node> tokens;
    for (const std::string& token : sample.tokens) tokens.push_back(Node::string(token));
    node.set("ids", numbers(sample.ids));
    if (!sample.label.empty()) {
      node.set("label", Node::string(sample.label));
    } else if (!sample.tags.empty()) {
      std::vector<Node> tags;
      for (const std::string& tag : sample.tags) tags.push_back(tag.empty() ? Node::null() : Node::string(tag));
      node.set("tags", Node::sequence(std::move(tags)));
    } else {
      node.set("targets", numbers(sample.targets));
      if (sample.in_place) node.set("in_place", Node::boolean(true));
    }
    node.set("mask", sample.mask.empty() ? Node::null() : numbers(sample.mask));
    node.set("tokens", Node::sequence(std::move(tokens)));
  }
  node.set("source", sources(sample.parts));
  return node;
}

}  // namespace

Learnt learnt_of(const SampleView& sample) {
  Learnt learnt;
  const std::size_t count = sample.ids.size();
  learnt.tokens.resize(count);
  learnt.shifted = sample.targets.size() == count && sample.label.empty() && !sample.in_place && !sample.is_written;
  for (std::size_t i = 0; i < sample.tags.size(); ++i) {
    if (sample.tags[i].empty()) continue;
    learnt.tokens[i] = true;
    ++learnt.targets;
  }
  for (std::size_t i = 0; i < sample.targets.size(); ++i) {
    if (sample.targets[i] == SampleView::kNoTarget) continue;
    ++learnt.targets;
    if (i + 1 < count && sample.targets[i] != sample.ids[i + 1]) learnt.shifted = false;
  }
  for (std::size_t i = 0; i < std::min(count, sample.targets.size()); ++i) {
    if (sample.targets[i] == SampleView::kNoTarget || sample.is_written) continue;
    if (!learnt.shifted) {
      learnt.tokens[i] = true;
    } else if (i + 1 < count) {
      learnt.tokens[i + 1] = true;
    }
  }
  return learnt;
}

std::string source_text(const SamplePart& part) {
  std::string text = core::escape_for_terminal(part.file);
  if (!part.unit.empty()) text += (text.empty() ? "" : ", ") + part.unit + " " + core::with_commas(part.number);
  return text;
}

std::string view_text(const engine::DataView& view, const ViewStyle& style) {
  std::string text = "data." + view.set + ": " + view.type + ", " + core::escape_for_terminal(view.description) + "\n";
  if (!view.fields.empty()) {
    text += "fields read: " + fields_text(view.fields, true) + "\nfields not read: " + fields_text(view.fields, false) +
            "\n";
  }
  for (const SampleView& sample : view.samples) {
    text += "\n" + (sample.ids.empty() ? fields_text(sample) : sequence_text(sample, style));
  }
  return text;
}

std::string view_json(const engine::DataView& view) {
  std::string samples;
  for (const SampleView& sample : view.samples) {
    samples += (samples.empty() ? "\n" : ",\n") + core::to_json(sample_node(sample), -1);
  }
  const std::string fields = view.fields.empty() ? "" : ", \"fields\": " + core::to_json(fields_node(view.fields), -1);
  return "{\"set\": " + core::json_quote(view.set) + ", \"type\": " + core::json_quote(view.type) +
         ", \"size\": " + (view.size > 0 ? std::to_string(view.size) : "null") + fields + ", \"samples\": [" + samples +
         "\n]}\n";
}

}  // namespace runner::cli
