#pragma once

#include <string>
#include <vector>

#include "components/data/data.h"
#include "runner/resolve/recipe.h"

namespace runner::train {

/// What the labels of the recipe's data are to its loss and its model's head.
components::data::LabelKind label_kind(const resolve::Recipe& recipe);
/// The same of the set with this block: ids of which its transforms make the labels.
components::data::LabelKind label_kind(const resolve::Recipe& recipe, const core::Node& block);

/// How the decoder of a model with one reads what it is to write.
components::data::DecoderIds decoder_ids(const resolve::Recipe& recipe);

/// Names of the classes that the model's head tells, where its configuration has any: `id2label`, in order.
std::vector<std::string> label_names(const resolve::Recipe& recipe);
/// The classes that the model's head tells before it is trained.
components::data::ModelClasses model_classes(const resolve::Recipe& recipe);

/// Names of the classes that the model's head tells of these texts; empty for another model, and where they are
/// numbers.
std::vector<std::string> names_of_classes(const resolve::Recipe& recipe, const components::data::Dataset& data);

/// Names of the classes of a set, one of which is a sample's or a position's; empty where it has none.
std::vector<std::string> class_names(const components::data::Dataset& data);
/// The same where a sample has several: their numbers where they have no names.
std::vector<std::string> names_of_several(const components::data::Dataset& data);

}  // namespace runner::train
