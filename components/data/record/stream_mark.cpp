#include "components/data/record/stream_mark.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "components/data/text_utils.h"
#include "runner/core/error.h"

namespace components::data {
namespace {

using runner::core::Node;
using runner::core::RunError;

constexpr const char* kHint = "restore the files, or start a new run with --new";

/// `FILE LINE OFFSET CHECKSUM` of each, in one text: a buffer may have many.
std::string text_of(const std::vector<RecordPlace>& places) {
  std::string text;
  for (const RecordPlace& place : places) {
    if (!text.empty()) text += ' ';
    text += std::to_string(place.file) + ' ' + std::to_string(place.number) + ' ' + std::to_string(place.offset) + ' ' +
            std::to_string(place.checksum);
  }
  return text;
}

[[noreturn]] void throw_damaged(const std::string& key) {
  throw RunError("the checkpoint's trainer.json has no valid \"data_stream." + key + "\"");
}

/// Of text_of(); RunError for another text, and for a file that the set does not have.
std::vector<RecordPlace> places_of(const Node& node, std::size_t files, const char* key) {
  if (!node.is_string()) throw_damaged(key);
  const std::string_view text = node.as_string();
  std::vector<std::int64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) throw_damaged(key);
    numbers.push_back(number);
    at = behind == end ? end : behind + 1;
  }
  if (numbers.size() % 4 != 0) throw_damaged(key);
  std::vector<RecordPlace> places;
  for (std::size_t i = 0; i < numbers.size(); i += 4) {
    places.push_back({static_cast<std::size_t>(numbers[i]), numbers[i + 1], numbers[i + 2],
                      static_cast<std::uint32_t>(numbers[i + 3])});
    if (places.back().file >= files) throw_damaged(key);
  }
  return places;
}

std::int64_t integer(const Node& node, const char* key) {
  const Node* value = node.find(key);
  if (value == nullptr || !value->is_integer() || value->as_integer() < 0) throw_damaged(key);
  return value->as_integer();
}

/// Of a counter that marks of earlier versions lack: 0.
std::int64_t later_integer(const Node& node, const char* key) {
  return node.find(key) != nullptr ? integer(node, key) : 0;
}

const Node& child(const Node& node, const char* key) {
  const Node* value = node.find(key);
  if (value == nullptr) throw_damaged(key);
  return *value;
}

Node node_of(const std::vector<std::vector<RecordPlace>>& rows) {
  Node node = Node::sequence();
  for (const std::vector<RecordPlace>& row : rows) node.items().push_back(Node::string(text_of(row)));
  return node;
}

/// Of node_of(); RunError as places_of().
std::vector<std::vector<RecordPlace>> rows_of(const Node& node, std::size_t files, const char* key) {
  if (!node.is_sequence()) throw_damaged(key);
  std::vector<std::vector<RecordPlace>> rows;
  for (const Node& row : node.items()) rows.push_back(places_of(row, files, key));
  return rows;
}

/// `BYTES KEY` of each file, in the order of the keys.
void check_files(const Node& node, const std::vector<TextFile>& files, const std::string& set) {
  const Node& saved = child(node, "files");
  if (!saved.is_sequence()) throw_damaged("files");
  for (const Node& item : saved.items()) {
    const std::string text = item.is_string() ? item.as_string() : "";
    const std::size_t space = text.find(' ');
    std::int64_t bytes = -1;
    std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (space == std::string::npos || bytes < 0) throw_damaged("files");
    const std::string key = text.substr(space + 1);
    const auto file = std::lower_bound(files.begin(), files.end(), key,
                                       [](const TextFile& one, const std::string& wanted) { return one.key < wanted; });
    if (file == files.end() || file->key != key) {
      throw RunError(set + " had the file " + key + " when the checkpoint was saved, and has it no more", kHint);
    }
    if (file->bytes == bytes) continue;
    throw RunError(file->path + " has changed since the checkpoint was saved: it had " +
                       counted_large(bytes, "byte", "bytes") + ", and has " + with_commas(file->bytes),
                   kHint);
  }
  if (saved.items().size() == files.size()) return;
  throw RunError(set + " has " + counted_large(static_cast<std::int64_t>(files.size()), "file", "files") +
                     ", and had " + with_commas(static_cast<std::int64_t>(saved.items().size())) +
                     " when the checkpoint was saved: the order of a stream depends on its files",
                 "remove the new ones, or start a new run with --new");
}

}  // namespace

StreamMark::StreamMark(std::int64_t sample, std::int64_t pass_of_it, std::int64_t used, RecordOrder::State state,
                       std::vector<std::vector<RecordPlace>> rows,
                       std::shared_ptr<const std::vector<TextFile>> of_files)
    : position(sample),
      pass(pass_of_it),
      samples_in_pass(used),
      order(std::move(state)),
      open_rows(std::move(rows)),
      files(std::move(of_files)) {}

Node StreamMark::to_node() const {
  Node node = Node::mapping();
  node.set("sample", Node::integer(position));
  node.set("pass", Node::integer(pass));
  node.set("samples_in_pass", Node::integer(samples_in_pass));
  node.set("records", Node::integer(counts.records));
  node.set("dropped", Node::integer(counts.dropped));
  node.set("skipped", Node::integer(counts.skipped));
  node.set("file", Node::integer(static_cast<std::int64_t>(order.file)));
  node.set("offset", Node::integer(order.line.offset));
  node.set("lines", Node::integer(order.line.lines));
  node.set("draws", Node::integer(static_cast<std::int64_t>(order.draws)));
  node.set("buffer", Node::string(text_of(order.buffer)));
  node.set("open_rows", node_of(open_rows));
  if (!ready_rows.empty()) {
    node.set("ready_rows", node_of(ready_rows));
    node.set("ready_pass", Node::integer(ready_pass));
  }
  Node sizes = Node::sequence();
  for (const TextFile& file : *files)
    sizes.items().push_back(Node::string(std::to_string(file.bytes) + ' ' + file.key));
  node.set("files", std::move(sizes));
  return node;
}

StreamMark StreamMark::of(const Node& node, std::shared_ptr<const std::vector<TextFile>> files,
                          const std::string& set) {
  check_files(node, *files, set);
  const std::int64_t pass = integer(node, "pass");
  RecordOrder::State order{pass,
                           static_cast<std::size_t>(integer(node, "file")),
                           {integer(node, "offset"), integer(node, "lines")},
                           static_cast<std::uint64_t>(integer(node, "draws")),
                           places_of(child(node, "buffer"), files->size(), "buffer")};
  if (order.file > files->size()) throw_damaged("file");
  std::vector<std::vector<RecordPlace>> ready;
  if (const Node* rows = node.find("ready_rows")) ready = rows_of(*rows, files->size(), "ready_rows");
  for (const std::vector<RecordPlace>& row : ready) {
    if (row.empty()) throw_damaged("ready_rows");
  }
  StreamMark mark{integer(node, "sample"),
                  pass,
                  integer(node, "samples_in_pass"),
                  std::move(order),
                  rows_of(child(node, "open_rows"), files->size(), "open_rows"),
                  std::move(files)};
  mark.ready_pass = later_integer(node, "ready_pass");
  mark.ready_rows = std::move(ready);
  mark.counts = {later_integer(node, "records"), later_integer(node, "dropped"), later_integer(node, "skipped")};
  return mark;
}

}  // namespace components::data
