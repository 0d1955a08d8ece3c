#pragma once

#include <memory>
#include <string>
#include <vector>

#include "components/data/data.h"

namespace tests {

/// A data set built from recipe text, and what was said about it, without excerpts.
struct BuiltData {
  std::shared_ptr<components::data::Dataset> data;
  std::string messages;
};

struct BuildData {
  std::string name = "train";
  const components::data::Dataset* train = nullptr;
  bool header_only = false;
  std::uint64_t seed = 1337;
  components::data::LabelKind labels = components::data::LabelKind::kNone;
  components::data::ModelClasses model_classes = {};
  bool new_rows = false;
  components::data::DecoderIds decoder = {};
};

BuiltData build_data(const std::string& text, const BuildData& options = {});

/// The same where nothing may be wrong.
std::shared_ptr<components::data::Dataset> good_data(const std::string& text, const BuildData& options = {});

/// Every value of `input` or `target` of these samples, row by row.
std::vector<double> fetched(const components::data::Dataset& data, const std::vector<std::int64_t>& indices,
                            const std::string& port);

}  // namespace tests
