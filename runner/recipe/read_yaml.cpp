#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "runner/core/scalar.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/document.h"
#include "runner/recipe/source_text.h"
#include "runner/recipe/yaml_errors.h"

namespace runner::recipe {
namespace {

constexpr int kRepeatsTold = 100;  ///< keys that are given again; one error each, and a file may have millions

using core::Location;
using core::Node;

// Ends the reading; the reason is in the diagnostics already.
struct Stop {};

// Underlining more is of no use, and a file may be one line of megabytes.
constexpr std::size_t kWidthMax = 200;

// YAML 1.2, section 7.4.2: what stands before the colon on its line. yaml-cpp then sees no key at all.
constexpr std::size_t kKeyBytesMax = 1024;
constexpr const char* kKeyTooLong = "a key of more than 1024 characters";
constexpr const char* kLongKeyHint = "shorten it, or write \"? KEY\" on a line and \": VALUE\" below it";

std::size_t end_of_line(std::string_view text, std::size_t at) {
  const std::string_view line = text.substr(std::min(at, text.size()), kWidthMax);
  return std::min(at + std::min(line.find_first_of("\r\n"), line.size()), text.size());
}

/// What a plain scalar of YAML 1.1 has beside `true` and `false`.
std::optional<bool> boolean_1_1(std::string_view text) {
  constexpr std::string_view kYes[] = {"yes", "Yes", "YES", "on", "On", "ON"};
  constexpr std::string_view kNo[] = {"no", "No", "NO", "off", "Off", "OFF"};
  if (std::find(std::begin(kYes), std::end(kYes), text) != std::end(kYes)) return true;
  if (std::find(std::begin(kNo), std::end(kNo), text) != std::end(kNo)) return false;
  return std::nullopt;
}

// Builds a located tree from yaml-cpp's events. Its tree (YAML::Node) would lose what was quoted, duplicate keys and
// the marks of keys, and expands aliases without a limit.
class Builder final : public YAML::EventHandler {
 public:
  Builder(SourceText& text, const Limits& limits, core::Diagnostics& diagnostics)
      : text_(text), limits_(limits), diagnostics_(diagnostics) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    const std::size_t at = offset(mark);
    if (text_.text().substr(at, 3) == "---") {
      diagnostics_.error(place_at(at, 3), "a second document begins here, but a recipe is a single document",
                         "remove the line ---, or put the rest into another file");
    } else {
      diagnostics_.error(place_at(at, block_width(at)), "this line does not continue the text above it",
                         "a recipe is a mapping: every line at its margin is \"key: value\"");
    }
    throw Stop{};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::size_t at = skip_properties(offset(mark));
    const std::string_view rest = text_.text().substr(std::min(at, text_.text().size()));
    std::size_t width = 0;
    for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
      if (rest.starts_with(word)) width = word.size();
    }
    const bool is_value = !open_.empty() && open_.back().has_key;
    if (width == 0 && is_value && open_.back().key_plain && open_.back().key.find(':') != std::string::npos) {
      // `{lr:0.1}` is one key in YAML, but never meant so.
      const Open& top = open_.back();
      const std::string strange = strange_space(top.key, top.key.find(':') + 1);
      const bool is_strange = !strange.empty();
      diagnostics_.error(
          top.key_location,
          is_strange ? strange + ", where YAML needs a space" : "no space after \":\" in " + core::quote(top.key),
          is_strange ? std::string(kStrangeSpaceHint) : "write key: value");
      open_.back().drop_value = true;
    }
    // `key:` with nothing after it: yaml-cpp's mark is wherever the next token is, the key is what the user looks at.
    Node node =
        Node::null(width == 0 && is_value ? open_.back().key_location : place_at(at, std::max<std::size_t>(width, 1)));
    node.set_written(std::string(rest.substr(0, width)));
    if (!is_value && !open_.empty() && open_.back().node.is_mapping()) {
      const std::size_t colon = text_.text().find(':', at);
      if (colon != std::string_view::npos && colon > at + kKeyBytesMax) {
        diagnostics_.error(node.location(), kKeyTooLong, kLongKeyHint);
        throw Stop{};
      }
      diagnostics_.error(node.location(), "a key is missing before the colon",
                         "a key is text: put it in quotes if it is empty");
      throw Stop{};
    }
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::size_t at = offset(mark);
    const std::size_t end = text_.text().find_first_of(" \t\r\n,[]{}", at);
    const Location location = place_at(at, std::min(end, text_.text().size()) - at);
    if (expects_key()) {
      diagnostics_.error(location, "an alias cannot be a key", "write the key out");
      throw Stop{};
    }
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) {
      diagnostics_.error(location, "the value refers to itself", "the alias is inside of the value that it names");
      throw Stop{};
    }
    const Anchored& target = it->second;
    alias_nodes_ += target.nodes;
    if (alias_nodes_ > limits_.alias_nodes_max) {
      diagnostics_.error(
          location, "the aliases of this file repeat more than " + std::to_string(limits_.alias_nodes_max) + " values",
          "aliases of lists of aliases grow quickly: use fewer levels");
      throw Stop{};
    }
    if (static_cast<int>(open_.size()) + target.depth > limits_.nesting_depth_max) too_deep(location);
    add_copy(target, location);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const std::size_t start = offset(mark);
    const std::size_t at = refuse_tag(start, tag);
    const Location location = place_at(at, scalar_width(at, value));
    refuse_open_quote(at);
    if (tag == "?") refuse_strange_space(value, at, location);
    if (expects_key()) {
      if (anchor != YAML::NullAnchor) diagnostics_.error(location, "an anchor (&) on a key", "put it before the value");
      return take_key(value, location, tag);
    }
    Node node = Node::string(value, location);
    if (at != start && text_.text().substr(start, at - start).find('!') != std::string_view::npos) {
      node = Node::refused(location);
    } else if (const auto yes = limits_.yaml_1_1 && tag == "?" ? boolean_1_1(value) : std::nullopt) {
      node = Node::boolean(*yes, location);
    } else if (tag == "?") {
      auto read = core::resolve_scalar(value);
      if (read.ok()) {
        node = std::move(read).value();
        node.set_location(location);
      } else {
        diagnostics_.error(location, read.failure().message, read.failure().hint);
        node = Node::refused(location);
      }
    }
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(Node::sequence({}, collection_location(mark, tag, style)), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(Node::mapping(collection_location(mark, tag, style)), anchor);
  }
  void OnMapEnd() override { close(); }

  /// Where the innermost list or mapping begins that is not complete.
  Location open_location() const { return open_.empty() ? Location{} : open_.back().node.location(); }
  bool any_document() const { return documents_ > 0; }
  std::optional<Node> take() { return std::move(root_); }
  std::size_t last_offset() const { return last_offset_; }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::int64_t nodes_before = 0;
    int depth = 1;  // of what is below, itself included
    bool has_key = false;
    bool key_plain = false;
    bool drop_value = false;  // of a key that was refused
    std::string key;
    Location key_location;
    std::unordered_map<std::string, int> lines;  // of the keys so far
  };
  struct Anchored {
    Node node;
    std::int64_t nodes = 1;
    int depth = 0;
  };

  std::size_t offset(const YAML::Mark& mark) {
    last_offset_ = text_.begin() + static_cast<std::size_t>(std::max(mark.pos, 0));
    return last_offset_;
  }

  Location place_at(std::size_t at, std::size_t width) { return text_.location(at, at + width); }

  // An anchor or a tag stands before its value; the value is what messages point at.
  std::size_t skip_properties(std::size_t at) const {
    const std::string_view text = text_.text();
    while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
      at = std::min(text.find_first_of(" \t\r\n,[]{}", at), text.size());
      at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    }
    return at;
  }

  // Quoted scalars come with the tag "!", so the text tells whether the user has written one.
  std::size_t refuse_tag(std::size_t start, const std::string& tag) {
    const std::string_view text = text_.text();
    const std::size_t at = skip_properties(start);
    if (tag.empty() || tag == "?") return at;
    const std::size_t mark = text.substr(start, at - start).find('!');
    if (mark != std::string_view::npos) {
      const std::size_t end = std::min(text.find_first_of(" \t\r\n,[]{}", start + mark), text.size());
      diagnostics_.error(place_at(start + mark, end - start - mark),
                         "the tag " + core::quote(text.substr(start + mark, end - start - mark)) +
                             ": tags are not allowed in a recipe",
                         "remove it; put text that begins with ! in quotes");
    }
    return at;
  }

  // yaml-cpp takes a quoted text that the end of the file cuts off.
  void refuse_open_quote(std::size_t at) {
    const std::string_view text = text_.text();
    if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return;
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != text[at]) end += text[at] == '"' && text[end] == '\\' ? 2 : 1;
    if (end < text.size()) return;
    diagnostics_.error(place_at(at, 1), "the quote that opens here is never closed", "close the quote");
    throw Stop{};
  }

  Location collection_location(const YAML::Mark& mark, const std::string& tag, YAML::EmitterStyle::value style) {
    const std::size_t at = refuse_tag(offset(mark), tag);
    return place_at(at, style == YAML::EmitterStyle::Flow ? flow_width(at) : block_width(at));
  }

  // `[1, 2]` is underlined whole when it ends on its line.
  std::size_t flow_width(std::size_t at) const {
    const std::string_view text = text_.text();
    const std::size_t line_end = end_of_line(text, at);
    int depth = 0;
    for (std::size_t i = at; i < line_end; ++i) {
      if (text[i] == '[' || text[i] == '{') ++depth;
      if ((text[i] == ']' || text[i] == '}') && --depth == 0) return i + 1 - at;
    }
    return 1;
  }

  // Whether the bracket at `at` has its partner; without one, yaml-cpp takes the rest of the file for a key.
  bool is_closed(std::size_t at) const {
    int depth = 0;
    for (; at < text_.text().size(); ++at) {
      const char c = text_.text()[at];
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && --depth == 0) return true;
    }
    return false;
  }

  // A block mapping is shown by its first key, a block list by its first dash.
  std::size_t block_width(std::size_t at) const {
    const std::string_view text = text_.text();
    const std::size_t end = std::min(text.find_first_of(" :\r\n", at), end_of_line(text, at));
    return std::max<std::size_t>(end - std::min(at, end), 1);
  }

  std::size_t scalar_width(std::size_t at, const std::string& value) const {
    const std::string_view text = text_.text();
    if (at >= text.size()) return 1;
    const char first = text[at];
    const std::size_t line_end = end_of_line(text, at);
    if (first == '|' || first == '>') return line_end - at;
    if (first == '"' || first == '\'') {
      for (std::size_t i = at + 1; i < line_end; ++i) {
        if (first == '"' && text[i] == '\\') {
          ++i;
        } else if (text[i] == first) {
          if (first == '"' || i + 1 >= line_end || text[i + 1] != '\'') return i + 1 - at;
          ++i;
        }
      }
      return line_end - at;
    }
    if (text.substr(at, value.size()) == value) return value.size();
    return line_end - at;
  }

  bool expects_key() const { return !open_.empty() && open_.back().node.is_mapping() && !open_.back().has_key; }

  // Text without quotes does not begin or end with what looks like a space: it came with a copied text.
  void refuse_strange_space(const std::string& value, std::size_t at, const Location& location) {
    std::size_t last = value.size();
    while (last > 0 && (static_cast<unsigned char>(value[--last]) & 0xC0) == 0x80) {
    }
    for (const std::size_t place : {std::size_t{0}, last}) {
      const std::string name = strange_space(value, place);
      if (name.empty()) continue;
      const bool is_written_so = text_.text().substr(at + place).starts_with(std::string_view(value).substr(place));
      diagnostics_.error(is_written_so ? text_.location(at + place, at + place + 1) : location,
                         name + (place == 0 ? " before " : " after ") + "the text", std::string(kStrangeSpaceHint));
      return;
    }
  }

  void take_key(const std::string& key, const Location& location, const std::string& tag) {
    Open& top = open_.back();
    top.has_key = true;
    top.key = key;
    top.key_location = location;
    top.key_plain = tag == "?";
    if (top.key_plain && key.size() > 1 && key[0] == '-' && key[1] != '-') {
      Location dash = location;
      dash.width = 1;
      const bool is_number = key[1] >= '0' && key[1] <= '9';
      diagnostics_.error(dash, "no space after \"-\" in " + core::quote(key),
                         is_number ? "put text that begins with \"-\" in quotes, such as a slice: \"[" + key + ":]\""
                                   : "write - " + key.substr(1) + ": ...");
      top.drop_value = true;
      return;
    }
    if (tag == "?" && key == "<<" && !limits_.yaml_1_1) {
      diagnostics_.error(location, "the merge key << is not part of YAML 1.2",
                         "use extends, or put the alias under its own key");
      top.drop_value = true;
      return;
    }
    const auto [first, is_new] = top.lines.try_emplace(key, location.line);
    if (!is_new) {
      if (++repeats_ <= kRepeatsTold) {
        diagnostics_.error(location, "the key " + core::quote(key) + " appears twice in this mapping",
                           "the first one is at line " + std::to_string(first->second));
      }
      top.drop_value = true;
    }
  }

  void count(const Location& location, std::int64_t nodes) {
    nodes_ += nodes;
    if (nodes_ <= limits_.nodes_max) return;
    diagnostics_.error(location, "more than " + std::to_string(limits_.nodes_max) + " values in one file",
                       "put the data into a separate file and refer to it by path");
    throw Stop{};
  }

  [[noreturn]] void too_deep(const Location& location) {
    diagnostics_.error(location, "nested more than " + std::to_string(limits_.nesting_depth_max) + " levels deep");
    throw Stop{};
  }

  void add(Node node, YAML::anchor_t anchor) {
    count(node.location(), 1);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {node, 1, 0};
    attach(std::move(node));
  }

  void add_copy(const Anchored& target, const Location& location) {
    count(location, target.nodes);
    if (!open_.empty()) open_.back().depth = std::max(open_.back().depth, target.depth + 1);
    Node copy = target.node;
    copy.add_history("alias at " + location.text());
    attach(std::move(copy));
  }

  void attach(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = open_.back();
    if (top.node.is_sequence()) {
      top.node.items().push_back(std::move(node));
      return;
    }
    if (!top.drop_value) top.node.entries().push_back({std::move(top.key), top.key_location, std::move(node)});
    top.has_key = top.drop_value = false;
  }

  void open(Node node, YAML::anchor_t anchor) {
    if (expects_key()) {
      const char bracket = text_.text()[last_offset_];
      if ((bracket == '[' || bracket == '{') && !is_closed(last_offset_)) {
        Location location = node.location();
        location.width = 1;
        diagnostics_.error(location, std::string("this ") + bracket + " is never closed",
                           bracket == '[' ? "close it with ]" : "close it with }");
        throw Stop{};
      }
      diagnostics_.error(node.location(), node.is_mapping() ? "a mapping cannot be a key" : "a list cannot be a key",
                         "put text that begins with [ or { in quotes");
      throw Stop{};
    }
    if (static_cast<int>(open_.size()) >= limits_.nesting_depth_max) too_deep(node.location());
    count(node.location(), 1);
    Open next;
    next.node = std::move(node);
    next.anchor = anchor;
    next.nodes_before = nodes_ - 1;
    open_.push_back(std::move(next));
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.anchor != YAML::NullAnchor) anchors_[done.anchor] = {done.node, nodes_ - done.nodes_before, done.depth};
    if (!open_.empty()) open_.back().depth = std::max(open_.back().depth, done.depth + 1);
    attach(std::move(done.node));
  }

  SourceText& text_;
  const Limits& limits_;
  core::Diagnostics& diagnostics_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::int64_t nodes_ = 0;
  std::int64_t alias_nodes_ = 0;
  int repeats_ = 0;
  int documents_ = 0;
  std::size_t last_offset_ = 0;
  std::optional<Node> root_;
};

void complain(SourceText& text, const Builder& builder, const YAML::Exception& error, core::Diagnostics& diagnostics) {
  const std::string_view bytes = text.text();
  const std::string_view message = error.msg;
  const std::size_t at = std::min(text.begin() + static_cast<std::size_t>(std::max(error.mark.pos, 0)), bytes.size());
  const auto point_at = [&](std::size_t from, std::string what, std::string hint) {
    diagnostics.error(text.location(from, from + 1), std::move(what), std::move(hint));
  };
  const std::size_t tab = find_indenting_tab(bytes, at);
  if (tab != std::string_view::npos) return point_at(tab, "a tab in the indentation", "indent with spaces");
  const std::string_view around = line_around(bytes, at);
  const std::size_t strange = find_strange_space(around);
  if (strange != std::string_view::npos) {
    return point_at(static_cast<std::size_t>(around.data() - bytes.data()) + strange,
                    strange_space(around, strange) + ", where YAML needs a space", std::string(kStrangeSpaceHint));
  }
  if (message.starts_with("illegal EOF")) {
    const std::size_t quote = find_open_quote(bytes, builder.last_offset());
    if (quote != std::string_view::npos)
      return point_at(quote, "the quote that opens here is never closed", "close the quote");
  }
  if (message.starts_with("illegal map value")) {
    const auto begin = static_cast<std::size_t>(around.data() - bytes.data());
    if (at > begin + kKeyBytesMax) {
      return point_at(begin + around.find_first_not_of(" -"), kKeyTooLong, kLongKeyHint);
    }
  }
  if (message.starts_with("illegal map value") || message.starts_with("end of map not found")) {
    const std::size_t space = find_missing_space(bytes, at);
    if (space != std::string_view::npos) {
      const std::string mark(1, bytes[space]);
      return point_at(space, "no space after \"" + mark + "\"", mark == ":" ? "write key: value" : "write - entry");
    }
  }
  YamlError complaint = explain_yaml_error(message, around, bytes.substr(at));
  if (complaint.is_bare_reference) {
    return point_at(static_cast<std::size_t>(around.data() - bytes.data()) + around.find("${"), complaint.message,
                    complaint.hint);
  }
  const core::Location open = builder.open_location();
  if (message.find("flow not found") != std::string_view::npos && open.known()) {
    const int line = text.location(at, at).line;
    core::Location bracket = open;
    bracket.width = 1;
    if (line > open.line) complaint.hint += "; reading stopped at line " + std::to_string(line);
    diagnostics.error(bracket, std::move(complaint.message), std::move(complaint.hint));
    return;
  }
  // At the end of a file there is nothing to point at: step back to the last character that was written.
  std::size_t from = at;
  if (from >= bytes.size() && !bytes.empty()) from = std::min(bytes.find_last_not_of(" \t\r\n"), bytes.size() - 1);
  point_at(from, std::move(complaint.message), std::move(complaint.hint));
}

/// yaml-cpp would take all of it for one line, so that a comment at the beginning hides the rest.
bool check_line_ends(SourceText& text, core::Diagnostics& diagnostics) {
  const std::size_t end = text.text().find('\r');
  if (end == std::string_view::npos || text.text().find('\n') != std::string_view::npos) return true;
  diagnostics.error(text.location(end, end + 1), "the lines end with CR alone",
                    "save the file with line ends LF or CR LF");
  return false;
}

}  // namespace

std::optional<Node> read_yaml_leniently(std::shared_ptr<const core::Source> source, const Limits& limits,
                                        core::Diagnostics& diagnostics) {
  SourceText text(source);
  if (!check_text(text, limits, diagnostics) || !check_line_ends(text, diagnostics)) return std::nullopt;
  Builder builder(text, limits, diagnostics);
  try {
    std::istringstream stream(source->text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    complain(text, builder, error, diagnostics);
    return std::nullopt;
  }
  if (!builder.any_document()) {
    diagnostics.error(Location{source, 0, 0, 1}, "the file is empty", "a recipe begins with recipe_version: 1");
    return std::nullopt;
  }
  return builder.take();
}

namespace {

/// Puts the keys of `<<`, a mapping or a list of them, into the mapping that has it; its own keys and those of an
/// earlier one go before.
void take_merge_keys(Node& node, core::Diagnostics& diagnostics) {
  for (Node& item : node.items()) take_merge_keys(item, diagnostics);
  if (!node.is_mapping()) return;
  for (Node::Entry& entry : node.entries()) take_merge_keys(entry.value, diagnostics);
  const Node::Entry* written = node.find_entry("<<");
  if (written == nullptr) return;
  const Node::Entry merge = *written;
  node.erase("<<");
  const std::vector<Node> sources = merge.value.is_sequence() ? merge.value.items() : std::vector<Node>{merge.value};
  for (const Node& source : sources) {
    if (!source.is_mapping()) {
      return diagnostics.error(merge.key_location, "the merge key << takes a mapping, or a list of mappings",
                               "write <<: *NAME, where &NAME stands before a mapping");
    }
    for (const Node::Entry& entry : source.entries()) {
      if (node.find(entry.key) == nullptr) node.set(entry.key, entry.value, entry.key_location);
    }
  }
}

}  // namespace

std::optional<Node> read_yaml(std::shared_ptr<const core::Source> source, const Limits& limits,
                              core::Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  auto node = read_yaml_leniently(std::move(source), limits, diagnostics);
  if (node && limits.yaml_1_1) take_merge_keys(*node, diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return node;
}

std::optional<Node> read_value(std::shared_ptr<const core::Source> source, const std::string& text,
                               core::Diagnostics& diagnostics) {
  const Location location{source, 0, 0, 1};
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Node::null(location);
  // `run_name=83e2010`: the shell takes the quotes that would make it text. Where a number is wanted, this is refused.
  if (!core::resolve_scalar(text).ok()) return Node::string(text, location);
  // Read behind a key, where a bracket cannot be taken for the beginning of a key of its own.
  const auto value_source =
      std::make_shared<const core::Source>(core::Source{source->name, "value: " + text, source->kind});
  core::Diagnostics own;
  auto mapping = read_yaml(value_source, Limits{}, own);
  for (const auto& item : own.all()) {
    diagnostics.error(location, "the value " + core::quote(text) + " cannot be read: " + item.message, item.hint);
  }
  if (!mapping) return std::nullopt;
  if (!mapping->is_mapping() || mapping->entries().size() != 1) {
    diagnostics.error(location, "the value " + core::quote(text) + " is more than one value",
                      "write {key: value} or [a, b]");
    return std::nullopt;
  }
  std::optional<Node> node = std::move(mapping->entries().front().value);
  // A flag has no lines of its own: every value in it stands at the flag.
  const auto relocate = [&](const auto& self, Node& value) -> void {
    value.set_location(location);
    for (Node& item : value.items()) self(self, item);
    for (auto& entry : value.entries()) {
      entry.key_location = location;
      self(self, entry.value);
    }
  };
  relocate(relocate, *node);
  return node;
}

}  // namespace runner::recipe
