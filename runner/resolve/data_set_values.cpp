#include "runner/resolve/data_set_values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/data_files.h"
#include "runner/hub/name.h"
#include "runner/hub/settings.h"

namespace runner::resolve {
namespace {

using core::Diagnostics;
using core::Failure;
using core::HistoryStep;
using core::Node;
using core::Origin;
using core::Result;

/// `train[:5%]`: the name of a split, and the part of it as a set of files writes it. `:90%` has no name.
struct WrittenSplit {
  std::string name, part;
};

WrittenSplit split_of(const std::string& text) {
  const std::size_t bracket = text.find('[');
  if (bracket != std::string::npos) return {text.substr(0, bracket), text.substr(bracket)};
  return text.find(':') != std::string::npos ? WrittenSplit{"", text} : WrittenSplit{text, ""};
}

std::string text_of(const Node& block, std::string_view key) {
  const Node* value = block.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

bool names_repository(const Node& value) {
  if (!value.is_string() || !hub::is_name(value.as_string())) return false;
  const auto name = hub::parse_name(value.as_string());
  return name && name.value().is_dataset && name.value().file.empty();
}

/// `path`, or its only entry, where it names a repository.
const Node* repository_in(const Node& block) {
  const Node* path = block.find("path");
  if (path == nullptr) return nullptr;
  if (names_repository(*path)) return path;
  const auto& items = path->items();
  const auto found = std::find_if(items.begin(), items.end(), names_repository);
  return found != items.end() ? &*found : nullptr;
}

template <typename Visit>
void for_each_block(Node& block, const std::string& set, const Visit& visit) {
  for (Node& item : block.items()) for_each_block(item, set, visit);
  if (!block.is_mapping()) return;
  if (block.find("path") != nullptr && block.find("type") != nullptr) visit(block, set);
  for (Node::Entry& entry : block.entries()) {
    if (entry.key != "tokenizer") for_each_block(entry.value, set, visit);
  }
}

template <typename Visit>
void for_each_set(Node& recipe, const Visit& visit) {
  Node* data = recipe.is_mapping() ? recipe.find("data") : nullptr;
  if (data == nullptr || !data->is_mapping()) return;
  for (Node::Entry& entry : data->entries()) for_each_block(entry.value, entry.key, visit);
}

/// Files have no splits and subsets.
void refuse_names(Node& block, Diagnostics& diagnostics) {
  if (!hub::is_named_by_repository(text_of(block, "type"))) return;
  Node *subset = block.find("subset"), *split = block.find("split");
  if (subset != nullptr && subset->is_string()) {
    diagnostics.error(subset->location(), "subset is of a data set of the Hub, and path names files",
                      "remove subset, and name the files of the subset in path");
    *subset = Node::refused(subset->location());
  }
  const WrittenSplit written = split_of(text_of(block, "split"));
  // Another text is no split, as its validation says.
  const auto is_letter = [](unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (std::none_of(written.name.begin(), written.name.end(), is_letter)) return;
  diagnostics.error(
      split->location(),
      "split " + core::quote(split->as_string()) + " names a split of a data set of the Hub, and path " + "names files",
      written.part.empty() ? "remove split, and name the files of the split in path"
                           : "write split: \"" + written.part + "\", and the files of the split in path");
  *split = Node::refused(split->location());
}

std::vector<std::string> usual_splits(const std::string& set) {
  if (set == "val") return {"validation", "test"};
  return {set};
}

void put(Node& block, const char* key, Node value, const HistoryStep& step) {
  const Node* written = block.find(key);
  if (written != nullptr) {
    value.set_location(written->location());
    value.set_history(written->history());
    value.set_written(written->scalar_text());
  }
  value.add_history(step);
  block.set(key, std::move(value));
}

Node part_node(const std::string& part) { return part.empty() ? Node::null() : Node::string(part); }

/// A set that is not here keeps its names, and a rule about a part of the records reads the part. What is no split
/// stays as it is written, for its validation to say so.
void keep_name(Node& block) {
  const std::string written = text_of(block, "split");
  const WrittenSplit split = split_of(written);
  const bool is_name = std::all_of(split.name.begin(), split.name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
  const bool is_part = split.part.empty() || split.part.ends_with(']') || split.part.find('[') == std::string::npos;
  if (split.name.empty() || !is_name || !is_part) return;
  put(block, "split", part_node(split.part), {"of the split " + core::quote(split.name), Origin::kRemote, written});
}

void take_files(const DataSetValue& value, const hub::DataSet& found) {
  Node& block = *value.block;
  const Node written = *repository_in(block);
  const bool is_one = hub::reads_one_file(text_of(block, "type"));
  std::vector<Node> files;
  for (const hub::Located& file : found.files) {
    Node path = Node::string(file.path, written.location());
    path.set_history(written.history());
    path.add_history({file.pinned, Origin::kRemote, file.pinned});
    files.push_back(std::move(path));
  }
  const std::string of = core::joined(found.splits, ", ") + " of " + found.name;
  block.set("path", is_one ? std::move(files.front()) : Node::sequence(std::move(files), written.location()));
  put(block, "split", part_node(split_of(text_of(block, "split")).part), {"of the split " + of});
  if (block.find("subset") != nullptr)
    put(block, "subset", Node::null(), {"the subset " + found.subset + " of " + found.name});
}

void tell(const DataSetValue& value, const hub::DataSet& found, bool is_named, Diagnostics& diagnostics) {
  const core::Location& at = value.block->find("path")->location();
  const std::string split = core::joined(found.splits, ", ");
  const std::string files = core::counted_large(static_cast<std::int64_t>(found.files.size()), "file", "files");
  if (!is_named) {
    diagnostics.notice(
        at, "data." + value.set + " reads the split " + core::quote(split) + " of " + found.name + ", " + files,
        "name another one as split");
  }
  if (found.is_partial) {
    diagnostics.warning(
        at, "the Hub has converted only the beginning of the split " + core::quote(split) + " of " + found.name,
        "name the files of the repository in path, if roux reads them");
  }
}

void locate(const DataSetValue& value, const hub::Settings& settings, Diagnostics& diagnostics) {
  const auto refuse = [&](const Node& at, const std::string& message, const std::string& hint) {
    diagnostics.error(at.location(), message, hint);
    value.block->set("path", Node::refused(value.block->find("path")->location()));
  };
  const auto request = request_of(value);
  if (!request) return refuse(*repository_in(*value.block), request.failure().message, request.failure().hint);
  std::optional<hub::DataSet> found;
  try {
    found = hub::locate(request.value(), settings);
  } catch (const hub::DataError& error) {
    return refuse(place_of(value, error.about()), error.what(), error.hint());
  }
  if (!found) {
    diagnostics.notice(repository_in(*value.block)->location(),
                       request.value().name.text() + " is not in the cache of the Hugging Face Hub",
                       "`roux run` fetches it, or `roux fetch` before");
    return keep_name(*value.block);
  }
  take_files(value, *found);
  tell(value, *found, !request.value().split.empty(), diagnostics);
}

}  // namespace

std::vector<DataSetValue> data_set_values(Node& recipe) {
  std::vector<DataSetValue> values;
  for_each_set(recipe, [&values](Node& block, const std::string& set) {
    if (repository_in(block) != nullptr) values.push_back({&block, set});
  });
  return values;
}

std::string split_name(const std::string& split) { return split_of(split).name; }

Result<hub::DataRequest> request_of(const DataSetValue& value) {
  const Node& block = *value.block;
  const Node& repository = *repository_in(block);
  hub::DataRequest request{.name = hub::parse_name(repository.as_string()).value()};
  request.type = text_of(block, "type");
  const std::string name = request.name.text();
  if (!hub::is_named_by_repository(request.type)) {
    return Failure{name + " names a whole data set, and type " + request.type + " reads files",
                   "name a file of it: " + name + "/FILE"};
  }
  if (block.find("path")->items().size() > 1) {
    return Failure{name + " names a whole data set, and stands among other files in path",
                   "read each by a set of its own, in {type: concat, sets: [...]}"};
  }
  request.subset = text_of(block, "subset");
  request.split = split_of(text_of(block, "split")).name;
  request.usual = usual_splits(value.set);
  return request;
}

const Node& place_of(const DataSetValue& value, hub::DataError::About about) {
  const Node* at = about == hub::DataError::About::kSubset  ? value.block->find("subset")
                   : about == hub::DataError::About::kSplit ? value.block->find("split")
                                                            : repository_in(*value.block);
  return at != nullptr ? *at : *value.block;
}

void locate_data_sets(Node& recipe, Diagnostics& diagnostics) {
  for_each_set(recipe, [&diagnostics](Node& block, const std::string& /*set*/) {
    if (repository_in(block) == nullptr) refuse_names(block, diagnostics);
  });
  const std::vector<DataSetValue> values = data_set_values(recipe);
  if (values.empty()) return;
  const auto settings = hub::read_settings();
  if (!settings) {
    return diagnostics.error(values.front().block->location(), settings.failure().message, settings.failure().hint);
  }
  for (const DataSetValue& value : values) locate(value, settings.value(), diagnostics);
}

const Node* unlocated_data_set(Node& recipe) {
  const std::vector<DataSetValue> values = data_set_values(recipe);
  return values.empty() ? nullptr : repository_in(*values.front().block);
}

}  // namespace runner::resolve
