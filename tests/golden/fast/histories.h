#pragma once

#include <limits>
#include <string>
#include <vector>

#include "components/sampler/math/space.h"
#include "tests/support/golden.h"

namespace tests::golden {

/// What is varied in a history of trials, as fanova.py and regret.py write it.
inline components::sampler::Dimension dimension_of(const Json& json) {
  using components::sampler::Dimension;
  Dimension dimension;
  dimension.name = json.at("name");
  const std::string kind = json.at("kind");
  if (kind == "choice") {
    dimension.kind = Dimension::Kind::kChoice;
    dimension.choices = json.at("choices");
    return dimension;
  }
  dimension.kind = kind == "integer" ? Dimension::Kind::kInteger : Dimension::Kind::kReal;
  dimension.min = json.at("min");
  dimension.max = json.at("max");
  dimension.step = json.at("step");
  dimension.log = json.at("log");
  return dimension;
}

inline std::vector<components::sampler::Dimension> dimensions_of(const Json& json) {
  std::vector<components::sampler::Dimension> dimensions;
  for (const Json& one : json) dimensions.push_back(dimension_of(one));
  return dimensions;
}

inline components::sampler::Point point_of(const Json& json) {
  components::sampler::Point point;
  for (const Json& one : json)
    point.push_back(one.is_null() ? std::numeric_limits<double>::quiet_NaN() : one.get<double>());
  return point;
}

}  // namespace tests::golden
