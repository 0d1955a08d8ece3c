#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::registry {

/// What one key of a recipe may hold. Read from a schema fragment; the only description of the key there is:
/// validation, `explain`, the reference pages, the editors' schema and the generated Config all come from it.
struct Property {
  enum class Type {
    kBoolean,
    kInteger,
    kNumber,
    kString,
    kArray,      ///< `items`
    kObject,     ///< `properties`, closed
    kMap,        ///< `additionalProperties`: any key, one value type
    kComponent,  ///< `x-kind`: {type: name, ...} or the name alone
    kSection,    ///< "x-kind": "section": the block that schemas/section/<the key>.json describes
    kInterval,   ///< "x-type": "interval" - core::Interval; an integer or text with a unit
    kDuration,   ///< "x-type": "duration" - seconds or text with a unit
    kBytes,      ///< "x-type": "bytes" - integer or `10GB`
    kPath,       ///< "x-type": "path" - text; relative to the current folder
    kSecret,     ///< "x-type": "secret" - only by ${env:...} or {file: path}
    kAny,        ///< "x-type": "any" - free form, checked by what reads it (sweep parameters, vars)
  };

  /// What another value does to a run that is resumed (x-resume).
  enum class Resume {
    kAsAbove,   ///< as the key above; at the top level it changes the results
    kHarmless,  ///< the weights of all later steps are unchanged
    kRule,      ///< depends on both recipes: a row of the table in train/save/resume_contract.cpp
  };

  std::string name;
  Type type = Type::kString;
  std::string description;
  std::string unit;                         ///< x-unit
  std::optional<core::Node> default_value;  ///< null node: optional, absent by default (and `null` may be written)
  std::string default_from;                 ///< x-default-from: another section settles it; "" if none
  bool required = false;                    ///< no default and no default_from
  std::optional<double> minimum, maximum, exclusive_minimum, exclusive_maximum;
  std::vector<std::string> enum_values;
  std::string pattern, pattern_hint;  ///< registry/pattern.h; how the message goes on after "must"
  std::optional<int> min_items, max_items, min_length;
  std::vector<std::string> aliases;         ///< x-aliases: names inside the same section, accepted with a notice
  std::vector<std::string> exclusive_with;  ///< x-exclusive: sibling keys that must not be given together with this one
  bool or_auto = false;                     ///< x-auto: the word `auto` may stand for the number until it is settled
  std::string count_key;                    ///< x-count: a number in place of true is `true`, and this sibling's value
  std::string short_form;                   ///< x-short-form: of an object, the key that a bare value sets
  bool single = false;                      ///< x-single: an array may be written as one scalar
  std::vector<std::string> words;           ///< x-words: that stand for items of a list of components
  Resume resume = Resume::kAsAbove;         ///< x-resume
  bool hashed = true;                       ///< x-hash: whether the recipe hash counts the key
  bool takes_infinity = false;              ///< x-infinity: `.inf` is a number of the key
  std::optional<core::Node> hash_unset;     ///< x-hash-unset: what null counts as; resolve/former_values.h
  std::optional<core::Node> first_default;  ///< of a key that the first release lacks; resolve/hashed_values.h
  std::vector<core::Node> examples;         ///< values worth showing
  std::string kind;                         ///< x-kind of a component
  std::shared_ptr<Property> element;        ///< of an array or a map
  std::vector<Property> properties;         ///< of an object
  core::Location location;                  ///< where the fragment defines it
};

/// A rule between keys of one component (x-checks), in the small expression language of registry/expression.h.
struct Check {
  std::string rule, at, message, hint;  ///< message and hint may use {key}
};

/// A sign that a tool is in use here (x-configured-by).
struct ToolSign {
  std::string variable, pattern;  ///< environment variable: set, and matching the pattern if there is one
  std::string file, holds;        ///< `~/...`, or in the working folder or one above it; with this text in it
};

/// One schema fragment: a component of a kind, or a fixed section of the recipe (kind "section").
struct Fragment {
  std::string kind, name;
  std::string title, description, source;
  std::vector<Property> properties;
  std::vector<Check> checks;
  std::vector<core::Node> examples;
  std::vector<std::string> holds;  ///< x-holds: the kinds of run data that a tracker keeps
  /// x-update of an optimizer: each element by its own gradient and state alone (`elementwise`), or together with
  /// others of its block of 256 (`blocks`), a tensor by all of it (`whole-tensor`), or as soon as the backward pass has
  /// the gradient (`in-backward`).
  std::string update = "elementwise";
  std::vector<std::string>
      measures;        ///< x-measures: what a loss measures beside itself, and a metric in place of its name
  std::string target;  ///< x-target: `classes`, `values`, of a loss also `labels`, of a metric `texts`; "": none
  /// x-by-class of a metric: the key and its value with which it has a value for each class; empty: it has one.
  std::pair<std::string, std::string> by_class;
  std::string records;  ///< x-records of a loss: `labelled`, single records with a label; `pairs`, whatever
                        ///< the head tells; `scores`, pairs of texts and how alike they are; "": any data
  std::string resync;   ///< x-resync: the effect of sending everything to a tracker again
  /// Of a tracker: one of them suffices; an empty list needs none; no list: it must be named explicitly.
  std::optional<std::vector<ToolSign>> configured_by;
  std::string short_form;  ///< x-short-form: key that a bare scalar sets (`loss: cross_entropy` sets `type`)
  std::string text;        ///< The JSON as written.

  const Property* find(const std::string& key) const;
  std::string path() const { return kind + "/" + name; }  ///< `section/loader`
};

/// Visits each key of a fragment, those below it too, with its dotted name: `scaler.init_scale`, `param_groups.lr`.
void for_each_key(Fragment& fragment, const std::function<void(const std::string& name, Property& key)>& visit);

/// Reads a fragment from JSON with locations; unknown keywords, bad defaults and rules are errors at their line.
/// `kind`/`name` come from the path `<kind>/<name>.json`.
std::optional<Fragment> parse_fragment(const std::string& kind, const std::string& name, const std::string& file_name,
                                       const std::string& json_text, core::Diagnostics& diagnostics);

/// All values of x-holds, in display order.
const std::vector<std::string>& holdable();

/// A kind of component, from schemas/kinds.json.
struct Kind {
  std::string name;        ///< `lr_scheduler`
  std::string title;       ///< `Learning-rate schedulers`
  std::string namespace_;  ///< `components::lr_scheduler`
  std::string header;      ///< `components/lr_scheduler/lr_scheduler.h`
  std::string product;     ///< `Scheduler`
  std::string layer;       ///< "engine" or "roux": which binary holds its make() table
};

}  // namespace runner::registry
