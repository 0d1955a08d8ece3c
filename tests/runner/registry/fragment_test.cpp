#include "runner/registry/fragment.h"

#include <catch2/catch.hpp>

using runner::core::Diagnostics;
using runner::registry::Fragment;
using runner::registry::parse_fragment;
using runner::registry::Property;

namespace {

/// Everything that is said about a fragment, without excerpts, so that a table can hold it.
std::string complaints(const std::string& json, const std::string& kind = "optimizer") {
  Diagnostics diagnostics;
  const auto fragment = parse_fragment(kind, "thing", "thing.json", json, diagnostics);
  diagnostics.sort();
  std::string text = render(diagnostics, {.color = false, .excerpts = false});
  CHECK(fragment.has_value() == text.empty());
  return text;
}

/// A fragment with one key.
std::string with_key(const std::string& property) {
  return R"({"title": "T", "description": "D.", "properties": {"key": )" + property +
         R"(}, "examples": [{"type": "thing"}]})";
}

}  // namespace

TEST_CASE("a fragment tells everything about its keys", "[registry][fragment]") {
  Diagnostics diagnostics;
  const auto fragment = parse_fragment("optimizer", "thing", "thing.json", R"({
    "title": "Thing", "description": "Does it.", "x-source": "A paper", "x-short-form": "lr",
    "properties": {
      "lr": {"type": "number", "exclusiveMinimum": 0, "default": 1e-3, "x-aliases": ["rate"], "description": "Rate."},
      "total": {"type": "integer", "minimum": 1, "x-default-from": "training", "x-unit": "steps", "description": "T."},
      "mode": {"type": "string", "enum": ["min", "max"], "default": null, "x-exclusive": ["lr"], "description": "M."},
      "every": {"x-type": "interval", "default": "1ep", "description": "E."},
      "names": {"type": "array", "items": {"type": "string"}, "x-single": true, "x-resume": "harmless", "x-hash": false,
                "description": "N."},
      "groups": {"type": "array", "default": [], "description": "G.",
                 "items": {"type": "object", "properties": {"decay": {"type": "number", "description": "X."}}}},
      "sets": {"type": "object", "additionalProperties": {"x-kind": "data"}, "default": {}, "description": "S."}
    },
    "x-checks": [{"rule": "total > 1", "at": "total", "message": "total is {total}"}],
    "examples": ["thing", {"type": "thing", "names": "a"}]
  })",
                                       diagnostics);
  CHECK(render(diagnostics) == "");
  REQUIRE(fragment);
  CHECK(fragment->title == "Thing");
  CHECK(fragment->source == "A paper");
  CHECK(fragment->short_form == "lr");
  CHECK(fragment->examples.size() == 2);
  REQUIRE(fragment->checks.size() == 1);
  CHECK(fragment->checks[0].message == "total is {total}");
  CHECK(fragment->find("nothing") == nullptr);

  const Property& lr = *fragment->find("lr");
  CHECK(lr.type == Property::Type::kNumber);
  CHECK(lr.exclusive_minimum == 0.0);
  CHECK(lr.default_value->as_double() == 1e-3);
  CHECK(lr.aliases == std::vector<std::string>{"rate"});
  CHECK_FALSE(lr.required);
  const Property& total = *fragment->find("total");
  CHECK(total.default_from == "training");
  CHECK_FALSE(total.default_value.has_value());
  CHECK_FALSE(total.required);
  CHECK(total.unit == "steps");
  const Property& mode = *fragment->find("mode");
  CHECK(mode.enum_values == std::vector<std::string>{"min", "max"});
  CHECK(mode.default_value->is_null());
  CHECK(mode.exclusive_with == std::vector<std::string>{"lr"});
  CHECK(fragment->find("every")->type == Property::Type::kInterval);
  const Property& names = *fragment->find("names");
  CHECK(names.required);
  CHECK(names.single);
  CHECK(names.element->type == Property::Type::kString);
  CHECK(names.location.text() == "thing.json:8:7");
  CHECK(names.resume == Property::Resume::kHarmless);
  CHECK_FALSE(names.hashed);
  CHECK(mode.resume == Property::Resume::kAsAbove);
  CHECK(mode.hashed);
  CHECK(fragment->find("groups")->element->properties.at(0).name == "decay");
  const Property& sets = *fragment->find("sets");
  CHECK(sets.type == Property::Type::kMap);
  CHECK(sets.element->type == Property::Type::kComponent);
  CHECK(sets.element->kind == "data");
}

TEST_CASE("a wrong fragment is refused line by line", "[registry][fragment]") {
  struct Case {
    const char* name;
    std::string json;
    const char* complaints;
  };
  const Case cases[] = {
      {"no JSON object", "[]", "thing.json:1:1: error: a schema fragment must be a JSON object, got a list\n"},
      {"nothing in it", "{}",
       "thing.json:1:1: error: the keyword title is missing\n"
       "thing.json:1:1: error: the keyword description is missing\n"
       "thing.json:1:1: error: a component needs at least one entry in examples\n"},
      {"unknown keyword of a fragment", R"({"title": "T", "description": "D.", "x-sorce": "", "examples": ["thing"]})",
       "thing.json:1:37: error: a fragment has no keyword \"x-sorce\"\n  hint: did you mean \"x-source\"?\n"},
      {"unknown keyword of a key", with_key(R"({"type": "integer", "min": 1, "description": "K."})"),
       "thing.json:1:79: error: a property has no keyword \"min\"\n  hint: known are description, x-short-form, type, "
       "properties, "
       "items, additionalProperties, minimum, maximum, enum, exclusiveMinimum, exclusiveMaximum, pattern, "
       "x-pattern-hint, minItems, default, maxItems, minLength, x-default-from, x-unit, x-type, x-kind, x-auto, "
       "x-count, "
       "x-single, "
       "x-words, "
       "x-aliases, x-exclusive, x-resume, x-hash, x-hash-unset, x-infinity, examples\n"},
      {"another effect on a resume", with_key(R"({"type": "integer", "x-resume": "harmful", "description": "K."})"),
       "thing.json:1:91: error: x-resume must be harmless or rule, got \"harmful\"\n"
       "  hint: a key without x-resume changes the results\n"},
      {"an effect on a resume that is no text",
       with_key(R"({"type": "integer", "x-resume": true, "description": "K."})"),
       "thing.json:1:91: error: x-resume must be text, got true\n"},
      {"a hash of some other kind", with_key(R"({"type": "integer", "x-hash": "no", "description": "K."})"),
       "thing.json:1:89: error: x-hash must be true or false, got \"no\"\n"},
      {"a former default of a key that has one",
       with_key(R"({"type": "integer", "default": 1, "x-hash-unset": 2, "description": "K."})"),
       "thing.json:1:109: error: x-hash-unset applies to keys that are counted and whose default is null only\n"
       "  hint: it is the default that the key had before\n"},
      {"a former default of another type",
       with_key(R"({"type": "integer", "default": null, "x-hash-unset": "two", "description": "K."})"),
       "thing.json:1:112: error: x-hash-unset does not fit the key's own type: it must be an integer, got \"two\"\n"},
      {"no type", with_key(R"({"description": "K."})"),
       "thing.json:1:59: error: the value has no type\n  hint: give type, x-type or x-kind\n"},
      {"a type that is not there", with_key(R"({"type": "float", "description": "K."})"),
       "thing.json:1:68: error: type must be one of boolean, integer, number, string, array, object, got \"float\"\n"},
      {"an x-type that is not there", with_key(R"({"x-type": "time", "description": "K."})"),
       "thing.json:1:70: error: x-type must be one of interval, duration, bytes, path, secret, any, got \"time\"\n"},
      {"a kind beside a type", with_key(R"({"type": "string", "x-kind": "loss", "description": "K."})"),
       "thing.json:1:59: error: x-kind stands alone: the kind says what the value is\n"},
      {"no description", with_key(R"({"type": "integer"})"),
       "thing.json:1:52: error: the key \"key\" has no description\n"},
      {"a list of nothing", with_key(R"({"type": "array", "description": "K."})"),
       "thing.json:1:59: error: the keyword items is missing, so the type of the values is unknown\n"},
      {"closed and open at once",
       with_key(
           R"({"type": "object", "properties": {}, "additionalProperties": {"x-type": "any"}, "description": "K."})"),
       "thing.json:1:120: error: properties and additionalProperties are mutually exclusive\n"
       "  hint: an object is either closed or a map of one type\n"},
      {"a bound on a text", with_key(R"({"type": "string", "minimum": 1, "description": "K."})"),
       "thing.json:1:89: error: minimum applies to numbers only\n"},
      {"words for a number", with_key(R"({"type": "number", "enum": ["a"], "description": "K."})"),
       "thing.json:1:86: error: enum applies to texts only\n"},
      {"a word twice", with_key(R"({"type": "string", "enum": ["a", "a"], "description": "K."})"),
       "thing.json:1:92: error: enum names \"a\" twice\n"},
      {"no regular expression",
       with_key(R"({"type": "string", "pattern": "[", "x-pattern-hint": "x", "description": "K."})"),
       "thing.json:1:89: error: pattern is not a regular expression: \"[\"\n"},
      {"a pattern without words", with_key(R"({"type": "string", "pattern": "a", "description": "K."})"),
       "thing.json:1:89: error: pattern needs an x-pattern-hint that describes it in words\n"},
      {"a list of lists as one scalar",
       with_key(R"({"type": "array", "x-single": true, "items": {"type": "array", "items": {"type": "number"}}, )"
                R"("description": "K."})"),
       "thing.json:1:89: error: x-single does not work for a list of lists: one scalar could mean either\n"},
      {"a default of another type", with_key(R"({"type": "integer", "default": 0.5, "description": "K."})"),
       "thing.json:1:90: error: the default does not fit its own type: it must be an integer, got 0.5\n"},
      {"a default out of range", with_key(R"({"type": "number", "minimum": 1, "default": 0.5, "description": "K."})"),
       "thing.json:1:103: error: the default does not fit its own type: 0.5 is outside of its own range\n"},
      {"a default that is no word",
       with_key(R"({"type": "string", "enum": ["a", "b"], "default": "c", "description": "K."})"),
       "thing.json:1:109: error: the default does not fit its own type: it must be one of a, b, got \"c\"\n"},
      {"a default with too few items",
       with_key(
           R"({"type": "array", "items": {"type": "number"}, "minItems": 2, "default": [1], "description": "K."})"),
       "thing.json:1:132: error: the default does not fit its own type: it has 1 items, which is outside of its own "
       "range\n"},
      {"a default interval", with_key(R"({"x-type": "interval", "default": "2 weeks", "description": "K."})"),
       "thing.json:1:93: error: the default does not fit its own type: it must be an interval, got \"2 weeks\"\n"},
      {"exclusive with nothing", with_key(R"({"type": "integer", "x-exclusive": ["other"], "description": "K."})"),
       "thing.json:1:52: error: x-exclusive of \"key\" names \"other\", which is not another key of the same block\n"},
      {"a name that is no key",
       R"({"title": "T", "description": "D.", "properties": {"Max-Norm": {"type": "number", "description": "K."}}, )"
       R"("examples": ["thing"]})",
       "thing.json:1:52: error: \"Max-Norm\" cannot be a key of a recipe\n"
       "  hint: use lower-case letters, digits and underscores, with a letter first\n"},
      {"an alias that is taken",
       R"({"title": "T", "description": "D.", "properties": {"a": {"type": "number", "description": "K."},
  "b": {"type": "number", "x-aliases": ["a"], "description": "K."}}, "examples": ["thing"]})",
       "thing.json:2:3: error: the alias \"a\" of \"b\" is taken by another key\n"},
      {"a key called type",
       R"({"title": "T", "description": "D.", "properties": {"type": {"type": "string", "description": "K."}}, )"
       R"("examples": ["thing"]})",
       "thing.json:1:1: error: the key type of a component is reserved for its name\n"},
      {"a short form of nothing", R"({"title": "T", "description": "D.", "x-short-form": "lr", "examples": ["thing"]})",
       "thing.json:1:53: error: x-short-form names \"lr\", which is not a property\n"},
      {"a short form of nothing in an object",
       R"({"title": "T", "description": "D.", "properties": {"a": {"type": "object", "x-short-form": "lr", )"
       R"("properties": {}, "description": "A."}}, "examples": ["thing"]})",
       "thing.json:1:92: error: x-short-form names \"lr\", which is not a property\n"},
      {"a short form of a number",
       R"({"title": "T", "description": "D.", "properties": {"a": {"type": "integer", "x-short-form": "a", )"
       R"("default": 1, "description": "A."}}, "examples": ["thing"]})",
       "thing.json:1:93: error: x-short-form applies to objects with properties only\n"},
      {"keeping, without tracking",
       R"({"title": "T", "description": "D.", "x-holds": ["texts"], "examples": ["thing"]})",
       "thing.json:1:1: error: x-holds applies to trackers only\n"},
      {"once more, without tracking", R"({"title": "T", "description": "D.", "x-resync": "a", "examples": ["thing"]})",
       "thing.json:1:49: error: x-resync applies to trackers only\n"},
      {"an optimizer that updates in a way of its own",
       R"({"title": "T", "description": "D.", "x-update": "rowwise", "examples": ["thing"]})",
       "thing.json:1:49: error: x-update is one of elementwise, blocks, whole-tensor, in-backward, got \"rowwise\"\n"},
      {"an example of another component", R"({"title": "T", "description": "D.", "examples": [{"type": "sgd"}]})",
       "thing.json:1:50: error: an example of this component must have type \"thing\"\n"},
      {"a rule that cannot be read",
       R"({"title": "T", "description": "D.", "properties": {"a": {"type": "number", "description": "K."}},
  "x-checks": [{"rule": "a <", "at": "a", "message": "m"}], "examples": ["thing"]})",
       "thing.json:2:25: error: expected a value at column 4, got the end\n  hint: the rule is `a <`\n"},
      {"a rule about other keys",
       R"({"title": "T", "description": "D.", "properties": {"a": {"type": "number", "description": "K."}},
  "x-checks": [{"rule": "a < b", "at": "c", "message": "a is {d}"}], "examples": ["thing"]})",
       "thing.json:2:25: error: the rule uses \"b\", which is no key\n"
       "thing.json:2:40: error: at names \"c\", which is not a property\n"
       "thing.json:2:56: error: message uses {d}, which is not a property\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(complaints(c.json) == c.complaints); }
  }
}

TEST_CASE("a section may have a key called type and no examples", "[registry][fragment]") {
  CHECK(complaints(
            R"({"title": "T", "description": "D.", "properties": {"type": {"type": "string", "description": "K."}}})",
            "section") == "");
}

TEST_CASE("only an optimizer says how it updates", "[registry][fragment]") {
  CHECK(complaints(R"({"title": "T", "description": "D.", "x-update": "elementwise", "examples": ["thing"]})",
                   "loss") == "thing.json:1:49: error: x-update applies to optimizers only\n");
}

TEST_CASE("a tracker says what it keeps, in known words", "[registry][fragment]") {
  CHECK(complaints(R"({"title": "T", "description": "D.", "x-resync": "a", "examples": ["thing"]})", "tracker") ==
        "thing.json:1:1: error: a tracker lists in x-holds what it keeps\n");
  CHECK(
      complaints(
          R"({"title": "T", "description": "D.", "x-holds": ["scalars", "smells"], "x-resync": "a", "examples": ["thing"]})",
          "tracker") ==
      "thing.json:1:48: error: x-holds must name some of scalars, texts, histograms, images, tables, artifacts, "
      "console, hyperparameters, got \"smells\"\n");
}

TEST_CASE("what shows that a tool is in use is a variable or a file", "[registry][fragment]") {
  const auto signs = [](const std::string& list) {
    return complaints(R"({"title": "T", "description": "D.", "x-holds": [], "x-resync": "a",
  "x-configured-by": )" + list +
                          R"(, "examples": ["thing"]})",
                      "tracker");
  };
  CHECK(signs("[]") == "");
  CHECK(signs(R"([{"variable": "A", "pattern": "^b"}, {"file": "~/.c", "holds": "d"}])") == "");
  CHECK(signs(R"([{"variable": "A", "file": "b"}])") == "thing.json:2:23: error: a sign is a variable or a file\n");
  CHECK(signs("3") == "thing.json:2:22: error: x-configured-by must be a list, got 3\n");
}
