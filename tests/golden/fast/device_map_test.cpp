// Where modules of a model go, topic device_map, exact: recorded with Accelerate.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/units.h"
#include "runner/resolve/placement/device_map.h"
#include "tests/support/golden.h"

namespace {

namespace placement = runner::resolve::placement;

using placement::Device;
using tests::golden::OrderedCase;
using tests::golden::OrderedJson;

std::int64_t element_bytes(const std::string& type) {
  if (type == "float64" || type == "int64") return 8;
  if (type == "float32" || type == "int32") return 4;
  if (type == "float16" || type == "bfloat16") return 2;
  return 1;
}

std::int64_t elements_of(const OrderedJson& shape) {
  std::int64_t elements = 1;
  for (const OrderedJson& size : shape) elements *= size.get<std::int64_t>();
  return elements;
}

placement::Module read_module(const std::string& name, const OrderedJson& json) {
  placement::Module module{name, json.at("class")};
  if (json.contains("params")) {
    for (const auto& [tensor, shape] : json.at("params").items()) {
      module.parameters.push_back({tensor, elements_of(shape)});
    }
  }
  if (json.contains("buffers")) {
    for (const auto& [tensor, buffer] : json.at("buffers").items()) {
      const std::string type = buffer.at(1);
      module.buffers.push_back(
          {tensor, elements_of(buffer.at(0)), element_bytes(type), type.find("float") != std::string::npos});
    }
  }
  if (json.contains("children")) {
    for (const auto& [inner, child] : json.at("children").items()) {
      module.children.push_back(read_module(inner, child));
    }
  }
  return module;
}

placement::ModuleTree read_tree(const OrderedCase& c) {
  const OrderedJson& model = c.fields->at("models").at(c.input.at("model").get<std::string>());
  placement::ModuleTree tree{read_module("", model.at("tree")), {}};
  for (const auto& [alias, owner] : model.at("tied").items()) tree.ties.emplace(alias, owner);
  return tree;
}

placement::MapOptions read_options(const OrderedJson& input) {
  placement::MapOptions options;
  if (input.contains("no_split")) options.whole = input.at("no_split").get<std::set<std::string>>();
  if (input.contains("dtype") && !input.at("dtype").is_null()) options.element_bytes = element_bytes(input.at("dtype"));
  options.falls_back = input.value("fallback_allocation", false);
  return options;
}

placement::DeviceBytes read_memory(const OrderedJson& json) {
  placement::DeviceBytes memory;
  for (const auto& [name, bytes] : json.items()) {
    const std::int64_t size =
        bytes.is_string() ? runner::core::parse_bytes(bytes.get<std::string>()).value() : bytes.get<std::int64_t>();
    memory.emplace_back(placement::device_of_text(name).value(), size);
  }
  return memory;
}

placement::DeviceMap read_map(const OrderedJson& json) {
  placement::DeviceMap map;
  for (const auto& [name, device] : json.items()) {
    map.emplace_back(name,
                     placement::device_of_text(device.is_string() ? device.get<std::string>() : device.dump()).value());
  }
  return map;
}

std::string told(const placement::DeviceMap& map) {
  std::string text;
  for (const auto& [name, device] : map) text += name + " " + to_text(device) + "\n";
  return text;
}

std::string told(const placement::DeviceBytes& memory) {
  std::string text;
  for (const auto& [device, bytes] : memory) text += to_text(device) + " " + std::to_string(bytes) + "\n";
  return text;
}

/// False for a kind that is not known.
bool check(const OrderedCase& c) {
  const placement::ModuleTree tree = read_tree(c);
  const placement::MapOptions options = read_options(c.input);
  if (c.kind == "module_sizes") {
    const placement::ModuleBytes sizes(tree, options.element_bytes);
    OrderedJson all;
    for (const std::string& name : sizes.names()) all[name] = sizes.of(name);
    CHECK(all.dump() == c.expected.at("sizes").dump());
  } else if (c.kind == "max_layer_size") {
    const auto largest = placement::largest_layer(tree, placement::ModuleBytes(tree), options.whole);
    CHECK(largest.bytes == c.expected.at("size").get<std::int64_t>());
    CHECK(largest.names == c.expected.at("names").get<std::vector<std::string>>());
  } else if (c.kind == "infer") {
    CHECK(told(placement::infer_device_map(tree, read_memory(c.input.at("max_memory")), options)) ==
          told(read_map(c.expected.at("device_map"))));
  } else if (c.kind == "balanced") {
    const auto memory = placement::balanced_memory(tree, read_memory(c.input.at("max_memory")), options,
                                                   c.input.at("low_zero").get<bool>());
    CHECK(told(memory) == told(read_memory(c.expected.at("max_memory"))));
    CHECK(told(placement::infer_device_map(tree, memory, options)) == told(read_map(c.expected.at("device_map"))));
  } else if (c.kind == "check_device_map") {
    const auto uncovered = placement::uncovered_tensors(tree, read_map(c.input.at("device_map")));
    CHECK(uncovered == c.expected.value("uncovered", std::vector<std::string>{}));
  } else if (c.kind == "tied_groups") {
    CHECK(placement::tied_groups(tree) == c.expected.at("groups").get<std::vector<std::vector<std::string>>>());
  } else {
    return false;
  }
  return true;
}

TEST_CASE("device maps are those of Accelerate", "[golden][device_map]") {
  tests::golden::Coverage coverage("device_map");
  for (const OrderedCase& c : tests::golden::read_ordered_topic("device_map")) {
    CAPTURE(c.kind, c.name);
    check(c) ? coverage.checked(c.kind) : coverage.not_covered(c.kind);
  }
  coverage.finish();
}

}  // namespace
