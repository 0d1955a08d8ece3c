#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include "runner/core/node.h"

namespace runner::cli {

/// What `roux env` shows: lines as soon as they are known, or one JSON mapping at the end.
class EnvPage {
 public:
  explicit EnvPage(bool json) : json_(json) {}

  void line(const std::string& name, const std::string& text) const {
    if (!json_) std::printf("%-16s %s\n", name.c_str(), text.c_str());
  }
  void set(const std::string& key, core::Node value) { root_.set(key, std::move(value)); }
  /// Text that is the same in both.
  void add(const std::string& name, const std::string& text, const std::string& key) {
    line(name, text);
    set(key, core::Node::string(text));
  }
  void finish() const {
    if (json_) std::printf("%s\n", core::to_json(root_).c_str());
  }

 private:
  bool json_;
  core::Node root_ = core::Node::mapping();
};

}  // namespace runner::cli
