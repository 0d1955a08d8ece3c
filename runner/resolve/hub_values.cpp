#include "runner/resolve/hub_values.h"

#include <algorithm>

#include "runner/hub/cache.h"
#include "runner/hub/web_file.h"
#include "runner/resolve/data_set_values.h"

namespace runner::resolve {
namespace {

using core::Diagnostics;
using core::Node;
using hub::Part;

bool is_remote(const std::string& text) { return hub::is_name(text) || hub::is_web_file(text); }
bool names_remote(const Node& value) { return value.is_string() && is_remote(value.as_string()); }
bool names_data_set(const Node& value) {
  const auto name = hub::parse_name(value.is_string() ? value.as_string() : "");
  return name && name.value().is_dataset && name.value().file.empty();
}
bool was_located(const Node& value) { return !hub_name(value).empty(); }

void add(Node* value, HubValue like, std::vector<HubValue>& values) {
  if (value == nullptr) return;
  for (Node& item : value->items()) add(&item, like, values);
  if (!names_remote(*value) && !was_located(*value)) return;
  if (like.is_data && names_data_set(*value)) return;  // of data_set_values()
  like.value = value;
  values.push_back(like);
}

void add_tokenizer(Node* tokenizer, std::vector<HubValue>& values) {
  if (tokenizer != nullptr && tokenizer->is_mapping()) {
    add(tokenizer->find("path"), {.value = nullptr, .part = Part::kTokenizer}, values);
  }
}

/// A data set may hold others, at any depth.
void add_data(Node& block, std::vector<HubValue>& values) {
  for (Node& item : block.items()) add_data(item, values);
  for (Node::Entry& entry : block.entries()) {
    if (entry.key == "path") {
      add(&entry.value, {.value = nullptr, .part = Part::kAll, .is_data = true}, values);
    } else if (entry.key == "tokenizer") {
      add_tokenizer(&entry.value, values);
    } else {
      add_data(entry.value, values);
    }
  }
}

/// What a name says that its place cannot mean; "" if nothing.
std::string misfit(const hub::Name& name, const HubValue& use) {
  if (use.is_data && name.file.empty()) return "a data set reads files, and " + name.text() + " names a model";
  if (!use.is_data && name.is_dataset) return name.text() + " is a data set of the Hub, not a model";
  return "";
}

void refuse(Node& value, const std::string& message, const std::string& hint, Diagnostics& diagnostics) {
  diagnostics.error(value.location(), message, hint);
  value = Node::refused(value.location());
}

void replace(Node& value, const hub::Located& located) {
  Node path = Node::string(located.path, value.location());
  path.set_history(value.history());
  path.add_history({located.pinned, core::Origin::kRemote, located.pinned});
  value = std::move(path);
}

void locate_on_hub(const HubValue& use, const hub::Settings& settings, bool gives_model, Diagnostics& diagnostics) {
  Node& value = *use.value;
  const auto name = hub::parse_name(value.as_string());
  if (!name) return refuse(value, name.failure().message, name.failure().hint, diagnostics);
  if (const std::string problem = misfit(name.value(), use); !problem.empty()) {
    return refuse(value, problem,
                  use.is_data ? "write hf://datasets/OWNER/NAME, or name a file of it: " + name.value().text() + "/FILE"
                              : "write hf://OWNER/NAME",
                  diagnostics);
  }
  const auto located = hub::locate(name.value(), settings);
  if (!located && use.is_weights && gives_model) return;  // an error of what takes the model from it
  if (!located) {
    return diagnostics.notice(value.location(), name.value().text() + " is not in the cache of the Hugging Face Hub",
                              "`roux run` fetches it, or `roux fetch` before");
  }
  replace(value, *located);
}

void locate_web_file(const HubValue& use, const hub::Settings& settings, Diagnostics& diagnostics) {
  Node& value = *use.value;
  const auto file = hub::parse_web_file(value.as_string());
  if (!file) return refuse(value, file.failure().message, file.failure().hint, diagnostics);
  if (use.is_weights && hub::is_index(file.value().file())) {
    return refuse(value, file.value().url + " is an index of shards, and says nothing of their checksums",
                  "name weights in one file, or a model of the Hub, hf://OWNER/NAME", diagnostics);
  }
  const auto located = hub::locate(file.value(), settings);
  if (!located) {
    return diagnostics.notice(value.location(), file.value().url + " is not in the cache",
                              "`roux run` fetches it, or `roux fetch` before");
  }
  replace(value, *located);
}

}  // namespace

std::vector<hub::Located> located_values(Node& recipe) {
  std::vector<hub::Located> located;
  for (const HubValue& use : hub_values(recipe)) {
    if (was_located(*use.value)) located.push_back({use.value->as_string(), hub_name(*use.value)});
  }
  return located;
}

std::vector<HubValue> hub_values(Node& recipe) {
  std::vector<HubValue> values;
  if (!recipe.is_mapping()) return values;
  if (Node* source = recipe.find("init_from")) {
    add(source->is_mapping() ? source->find("path") : source,
        {.value = nullptr, .part = Part::kAll, .is_weights = true}, values);
  }
  if (Node* teacher = recipe.find("teacher")) {
    add(teacher->is_mapping() ? teacher->find("init_from") : teacher,
        {.value = nullptr, .part = Part::kAll, .is_weights = true}, values);
  }
  if (Node* model = recipe.find("model"); model != nullptr && model->is_mapping()) {
    add(model->find("config"), {.value = nullptr, .part = Part::kSettings}, values);
  }
  add_tokenizer(recipe.find("tokenizer"), values);
  if (Node* data = recipe.find("data")) add_data(*data, values);
  return values;
}

void locate_hub_values(Node& recipe, Diagnostics& diagnostics) {
  locate_data_sets(recipe, diagnostics);
  const std::vector<HubValue> values = hub_values(recipe);
  if (values.empty()) return;
  const auto settings = hub::read_settings();
  if (!settings) {
    return diagnostics.error(values.front().value->location(), settings.failure().message, settings.failure().hint);
  }
  const Node* model = recipe.find("model");
  const bool gives_model = model == nullptr || model->is_null();
  for (const HubValue& use : values) {
    if (was_located(*use.value)) continue;
    if (hub::is_web_file(use.value->as_string())) {
      locate_web_file(use, settings.value(), diagnostics);
    } else {
      locate_on_hub(use, settings.value(), gives_model, diagnostics);
    }
  }
}

std::string hub_name(const Node& value) {
  const core::HistoryStep* step = value.find_step(core::Origin::kRemote);
  return step == nullptr || (!value.is_string() && !value.is_null()) ? "" : step->of;
}

}  // namespace runner::resolve
