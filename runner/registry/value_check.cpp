#include "runner/registry/value_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "runner/core/scalar.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/url_password.h"
#include "runner/core/units.h"
#include "runner/registry/pattern.h"
#include "runner/registry/wording.h"

namespace runner::registry {
namespace {

using core::Hint;
using core::lower;
using core::Node;
using Type = Property::Type;

constexpr double kIntegerMax = 9.2e18;  // of 64 bits, with room for rounding

std::string number_text(double number) { return core::short_number(number, 12); }

/// The number that `text` was meant to be: `10` in quotes, `1,000`, `1_000`, `0,5`; "" when it is none.
std::string meant_number(std::string text) {
  const std::size_t comma = text.find(',');
  // One comma that cuts off no thousands is a decimal one.
  if (comma != std::string::npos && text.rfind(',') == comma && (text.size() - comma != 4 || text[0] == '0'))
    text[comma] = '.';
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ',' || c == '_' || c == ' '; }),
             text.end());
  if (text.empty()) return "";
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  double number = 0.0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number) ? text : "";
}

std::string meant_boolean(const Node& value) {
  const std::string text = lower(value.scalar_text());
  for (const char* yes : {"yes", "y", "on", "true", "1"})
    if (text == yes) return "true";
  for (const char* no : {"no", "n", "off", "false", "0"})
    if (text == no) return "false";
  return "";
}

/// The one of these words that other programs call `text`; "" for none.
std::string other_word(const std::string& text, const std::vector<std::string>& names) {
  static constexpr std::pair<const char*, const char*> kMeant[] = {
      {"gpu", "cuda"},         {"bf16", "bf16-mixed"},      {"bfloat16", "bf16-mixed"}, {"fp16", "16-mixed"},
      {"float16", "16-mixed"}, {"half", "16-mixed"},        {"fp32", "32-true"},        {"float32", "32-true"},
      {"minimize", "min"},     {"maximize", "max"},         {"lower", "min"},           {"higher", "max"},
      {"min", "minimize"},     {"max", "maximize"},         {"lower", "minimize"},      {"higher", "maximize"},
      {"rope", "rotary"},      {"absolute", "learned"},     {"swish", "silu"},          {"float", "number"},
      {"numeric", "number"},   {"categorical", "category"}, {"string", "category"},     {"batches", "micro_batches"}};
  // What FSDP and DeepSpeed call a way to shard and what goes with it, with `-`, `_` or nothing between its parts.
  static constexpr std::pair<const char*, const char*> kShards[] = {{"1", "optimizer"},
                                                                    {"zero1", "optimizer"},
                                                                    {"stage1", "optimizer"},
                                                                    {"zerostage1", "optimizer"},
                                                                    {"os", "optimizer"},
                                                                    {"2", "gradients"},
                                                                    {"zero2", "gradients"},
                                                                    {"stage2", "gradients"},
                                                                    {"zerostage2", "gradients"},
                                                                    {"shardgradop", "gradients"},
                                                                    {"hybridshardzero2", "gradients"},
                                                                    {"3", "parameters"},
                                                                    {"zero3", "parameters"},
                                                                    {"stage3", "parameters"},
                                                                    {"zerostage3", "parameters"},
                                                                    {"full", "parameters"},
                                                                    {"fullshard", "parameters"},
                                                                    {"hybridshard", "parameters"},
                                                                    {"fullyshard", "parameters"},
                                                                    {"fsdp", "parameters"},
                                                                    {"fsdp2", "parameters"},
                                                                    {"params", "parameters"},
                                                                    {"weights", "parameters"}};
  static constexpr std::pair<const char*, const char*> kPrefetches[] = {
      {"backwardpre", "before"}, {"backwardpost", "after"}, {"noprefetch", "none"}};
  static constexpr std::pair<const char*, const char*> kUnits[] = {{"transformerbasedwrap", "block"},
                                                                   {"nowrap", "model"}};
  const auto is_name = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::string bare = lower(text);
  std::erase_if(bare, [](char c) { return c == '-' || c == '_' || c == ' '; });
  const auto among = [&bare](std::span<const std::pair<const char*, const char*>> words) -> std::string {
    const auto found = std::find_if(words.begin(), words.end(), [&bare](const auto& one) { return bare == one.first; });
    return found == words.end() ? "" : found->second;
  };
  std::string theirs;
  if (is_name("optimizer") && is_name("gradients") && is_name("parameters")) theirs = among(kShards);
  if (is_name("before") && is_name("after") && is_name("none")) theirs = among(kPrefetches);
  if (is_name("block") && is_name("model")) theirs = among(kUnits);
  if (!theirs.empty()) return theirs;
  for (const auto& [word, ours] : kMeant) {
    if (lower(text) == word && std::find(names.begin(), names.end(), ours) != names.end()) return ours;
  }
  return "";
}

/// Spelling alone would take `gpu` for `cpu`.
std::vector<std::string> meant_words(const std::string& text, const std::vector<std::string>& names) {
  const std::string other = other_word(text, names);
  return other.empty() ? core::all_closest(text, names) : std::vector{other};
}

/// Of a word that turns something off, in place of one of the names of a key that is off unless it is written.
Hint off_word_hint(const Node& value, const Property& property) {
  static constexpr const char* kOff[] = {"no", "none", "off", "false", "null", "0", "no_shard"};
  const bool is_off_by_default = property.default_value && property.default_value->is_null();
  if (!is_off_by_default || property.enum_values.empty() || value.is_mapping() || value.is_sequence()) return "";
  const std::string text = lower(value.scalar_text());
  return std::any_of(std::begin(kOff), std::end(kOff), [&text](const char* off) { return text == off; })
             ? "write null, or leave it out"
             : "";
}

/// `max_steps: 20 epochs`: the limit of a training that counts in the unit that is there.
Hint limit_in_unit(const std::string& text, const std::string& path) {
  if (!path.starts_with("training.max_")) return "";
  static constexpr std::pair<const char*, const char*> kLimits[] = {
      {"step", "max_steps"}, {"ep", "max_epochs"}, {"tok", "max_tokens"}};
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return "";
  std::string unit = lower(std::string(end, text.data() + text.size()));
  unit.erase(0, unit.find_first_not_of(' '));
  for (const auto& [begin, key] : kLimits) {
    if (!unit.starts_with(begin)) continue;
    const std::string here = number_text(number);
    return path.ends_with(key) ? Hint("write " + here, here) : Hint("write " + std::string(key) + ": " + here);
  }
  return !unit.empty() && core::parse_duration_s(text).ok() ? Hint("write max_time: " + text) : Hint();
}

/// The text that a list of one entry was before YAML read it, such as `[10:20]` or `[20:]`; "" for another list.
std::string text_of_list(const Node& list) {
  if (list.items().size() != 1) return "";
  const Node& item = list.items()[0];
  if (item.is_sequence()) return "";
  if (!item.is_mapping()) return "[" + item.scalar_text() + "]";
  const bool is_key = item.entries().size() == 1 && item.entries()[0].value.is_null();
  return is_key ? "[" + item.entries()[0].key + ":]" : "";
}

/// The hint for a wrong type, from the given value.
Hint type_hint(const Node& value, const Property& property, const std::string& path) {
  if (value.is_null()) {
    if (property.default_value && !property.default_value->is_null())
      return "leave the key out for the default, " + described(*property.default_value);
    return "";
  }
  if (value.is_sequence() && property.type == Type::kString && !property.pattern.empty()) {
    const std::string meant = text_of_list(value);
    if (!meant.empty() && matches_pattern(meant, property.pattern))
      return "put it in quotes: " + core::in_quotes(meant);
  }
  if (value.is_sequence() && value.items().size() == 1 && !value.items()[0].is_mapping())
    return "write " + value.items()[0].scalar_text() + " without the brackets";
  if (property.type == Type::kBoolean) {
    const std::string meant = value.is_mapping() || value.is_sequence() ? "" : meant_boolean(value);
    if (meant.empty()) return "";
    if (value.is_string() && lower(value.as_string()) == value.as_string() && value.as_string() == meant)
      return {"write it without quotes: " + meant, meant};
    return {"write " + meant, meant};
  }
  if ((property.type == Type::kInteger || property.type == Type::kNumber) && value.is_string()) {
    const std::string word = lower(value.as_string());
    if ((word == "inf" || word == "infinity" || word == "+inf") && property.takes_infinity)
      return {"write .inf", ".inf"};
    const bool is_share = property.maximum == 1.0 || property.exclusive_maximum == 1.0;
    if (is_share && word.size() > 1 && word.back() == '%') {
      const std::string percent = meant_number(word.substr(0, word.size() - 1));
      if (!percent.empty()) {
        const std::string share = number_text(std::stod(percent) / 100.0);
        return {"write it as a fraction: " + share, share};
      }
    }
    if (const auto read = core::resolve_scalar(value.as_string()); !read.ok()) return read.failure().message;
    const std::string meant = meant_number(value.as_string());
    if (meant.empty()) return limit_in_unit(value.as_string(), path);
    return {(meant == value.as_string() ? "write it without quotes: " : "write ") + meant, meant};
  }
  const std::string other = value.is_number() ? other_word(value.scalar_text(), property.enum_values) : "";
  if (!other.empty()) return core::did_you_mean(other);
  if (const Hint off = off_word_hint(value, property); !off.empty()) return off;
  const bool is_free_text = property.type == Type::kString && property.enum_values.empty();
  if (is_free_text && value.is_bool())
    return "put it in quotes: " + path.substr(path.rfind('.') + 1) + ": \"" + value.scalar_text() + "\"";
  return "";
}

/// `split: 0.8`, or `split: 80%`: of a set for training the first records, of another one the last.
Hint share_hint(const std::string& text, const std::string& path) {
  if (path != "split" && !path.ends_with(".split")) return "";
  std::string digits = text;
  const bool percent = digits.ends_with('%');
  if (percent) digits.pop_back();
  double share = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), share);
  if (error != std::errc() || end != digits.data() + digits.size()) return "";
  if (!percent && share > 0 && share < 1) share *= 100.0;
  if (!(share > 0 && share < 100)) return "";
  if (path == "data.train.split")
    return "write \":" + number_text(share) + "%\" for the first " + number_text(share) + "%";
  return "write \"" + number_text(100.0 - share) + "%:\" for the last " + number_text(share) + "%";
}

bool refuse(const Node& value, const std::string& message, const Hint& hint, core::Diagnostics& diagnostics) {
  diagnostics.error(value.location(), message, hint);
  return false;
}

bool refuse_type(const Node& value, const Property& property, const std::string& path, core::Diagnostics& diagnostics) {
  return refuse(value, path + " must be " + wanted(property) + ", got " + described(value),
                type_hint(value, property, path), diagnostics);
}

bool in_range(double number, const Property& property) {
  return !(property.minimum && number < *property.minimum) && !(property.maximum && number > *property.maximum) &&
         !(property.exclusive_minimum && number <= *property.exclusive_minimum) &&
         !(property.exclusive_maximum && number >= *property.exclusive_maximum);
}

/// 0 and -1 switch a limit or an interval off elsewhere; here the key is left out.
std::string off_hint(double number, const Property& property, const std::string& path) {
  if ((number != 0 && number != -1) || property.required) return "";
  if (property.hash_unset || (property.default_value && !property.default_value->is_null())) return "";
  for (const char* limit : {"max_steps", "max_epochs", "max_tokens", "max_time"}) {
    if (path != std::string("training.") + limit) continue;
    return "without a limit of this kind, leave the key out; max_steps, max_epochs, max_tokens or max_time ends the "
           "training";
  }
  return "for none, or what roux chooses, leave the key out";
}

bool check_range(const Node& value, double number, const Property& property, const std::string& path,
                 core::Diagnostics& diagnostics) {
  if (in_range(number, property)) return true;
  return refuse(value, path + " must be " + bounds_text(property) + ", got " + described(value),
                off_hint(number, property, path), diagnostics);
}

/// `node` of another kind in place of `written`: what was written and how it came here stay.
Node with_kind(Node node, const Node& written) {
  node.set_written(written.scalar_text());
  node.add_history(written.history());
  return node;
}

/// JSON has no infinity: `resolved.json` of a run with `.inf` has the text "inf", which is the number again here, with
/// the same hash.
void read_infinity(Node& value, const Property& property) {
  if (!value.is_string() || !property.takes_infinity) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double infinity : {kInfinity, -kInfinity}) {
    Node number = Node::floating(infinity, value.location());
    if (core::to_json(number, -1) != core::to_json(value, -1)) continue;
    number.set_history(value.history());
    value = std::move(number);
    return;
  }
}

bool check_number(Node& value, const Property& property, const std::string& path, core::Diagnostics& diagnostics) {
  read_infinity(value, property);
  if (!value.is_number()) return refuse_type(value, property, path, diagnostics);
  const double number = value.as_double();
  if (std::isnan(number) || (std::isinf(number) && !property.takes_infinity))
    return refuse(value, path + " must be a finite number, got " + described(value), "", diagnostics);
  if (!check_range(value, number, property, path, diagnostics)) return false;
  // 1 and 1.0 are one value for a number: they must give one hash.
  if (value.is_integer()) value = with_kind(Node::floating(number, value.location()), value);
  return true;
}

bool check_integer(Node& value, const Property& property, const std::string& path, core::Diagnostics& diagnostics) {
  if (property.or_auto && value.is_string() && value.as_string() == "auto") return true;
  if (!value.is_number()) return refuse_type(value, property, path, diagnostics);
  if (!value.is_integer()) {
    const double number = value.as_double();
    if (std::abs(number) > kIntegerMax || number != std::floor(number) || std::isnan(number))
      return refuse_type(value, property, path, diagnostics);
    value = with_kind(Node::integer(static_cast<std::int64_t>(number), value.location()), value);
  }
  return check_range(value, value.as_double(), property, path, diagnostics);
}

bool check_text(Node& value, const Property& property, const std::string& path, const Hint& word_hint,
                core::Diagnostics& diagnostics) {
  const auto& names = property.enum_values;
  if (!value.is_string()) {
    // `run_name: 007` or `mode: 32`: what was written is meant. A quoted number is the same value, for the hash too.
    const bool word = (value.is_number() || value.is_bool()) &&
                      std::find(names.begin(), names.end(), value.scalar_text()) != names.end();
    if (!word && !(names.empty() && value.is_number() && property.type == Type::kString))
      return refuse_type(value, property, path, diagnostics);
    value = with_kind(Node::string(value.scalar_text(), value.location()), value);
  }
  const std::string& text = value.as_string();
  if (!names.empty()) {
    if (std::find(names.begin(), names.end(), text) != names.end()) return true;
    Hint hint = word_hint.empty() ? off_word_hint(value, property) : word_hint;
    if (hint.empty()) hint = did_you_mean(meant_words(text, names));
    return refuse(value, path + " must be " + wanted(property) + ", got " + quoted(text), hint, diagnostics);
  }
  if (text.find('\0') != std::string::npos)
    return refuse(value, path + " must not contain a NUL byte", "", diagnostics);
  const int length_min = std::max(property.min_length.value_or(0), property.type == Type::kPath ? 1 : 0);
  if (static_cast<int>(text.size()) < length_min) {
    const std::string least =
        length_min == 1 ? "must not be empty"
                        : "must have at least " + std::to_string(length_min) + " characters, got " + quoted(text);
    return refuse(value, path + " " + least, "", diagnostics);
  }
  if (!property.pattern.empty() && !matches_pattern(text, property.pattern)) {
    std::vector<std::string> words;
    for (const Node& example : property.examples) {
      if (example.is_string()) words.push_back(example.as_string());
    }
    const std::string near = other_word(text, words);
    return refuse(value,
                  path + " must " +
                      (property.pattern_hint.empty() ? "match " + property.pattern : property.pattern_hint) + ", got " +
                      quoted(text),
                  near.empty() ? share_hint(text, path) : core::did_you_mean(near), diagnostics);
  }
  return true;
}

bool check_interval(const Node& value, const Property& property, const std::string& path,
                    core::Diagnostics& diagnostics) {
  if (!value.is_number() && !value.is_string()) return refuse_type(value, property, path, diagnostics);
  if (value.is_number() && value.as_double() <= 0)
    return refuse(value, path + " must be greater than 0, got " + described(value),
                  off_hint(value.as_double(), property, path), diagnostics);
  const core::Result<core::Interval> interval = core::parse_interval(value.scalar_text());
  if (!interval.ok())
    return refuse(value, path + " must be " + wanted(property) + ", got " + described(value),
                  Hint(interval.failure().hint, interval.failure().word), diagnostics);
  return true;
}

bool check_duration(const Node& value, const Property& property, const std::string& path,
                    core::Diagnostics& diagnostics) {
  if (!value.is_number() && !value.is_string()) return refuse_type(value, property, path, diagnostics);
  if (value.is_number() && (value.as_double() < 0 || (value.as_double() == 0 && !property.minimum)))
    return refuse(value, path + " must be greater than 0, got " + described(value),
                  off_hint(value.as_double(), property, path), diagnostics);
  const core::Result<double> seconds = core::parse_duration_s(value.scalar_text());
  if (!seconds.ok() || !std::isfinite(seconds.value()))
    return refuse(value, path + " must be " + wanted(property) + ", got " + described(value),
                  seconds.ok() ? Hint() : Hint(seconds.failure().hint, seconds.failure().word), diagnostics);
  if (seconds.value() < 0 || (seconds.value() == 0 && !property.minimum))
    return refuse(value, path + " must be greater than 0, got " + described(value), "", diagnostics);
  return check_range(value, seconds.value(), property, path, diagnostics);
}

bool check_bytes(const Node& value, const Property& property, const std::string& path, core::Diagnostics& diagnostics) {
  if (!value.is_number() && !value.is_string()) return refuse_type(value, property, path, diagnostics);
  const core::Result<std::int64_t> bytes = core::parse_bytes(value.scalar_text());
  if (!bytes.ok())
    return refuse(value, path + " must be " + wanted(property) + ", got " + described(value),
                  "write bytes or an amount with its unit: 1024, 500MB, 10GB, 5GiB", diagnostics);
  return check_range(value, static_cast<double>(bytes.value()), property, path, diagnostics);
}

bool check_secret(const Node& value, const std::string& path, core::Diagnostics& diagnostics) {
  if (came_from_environment(value)) return true;
  if (value.is_mapping() && value.entries().size() == 1 && value.find("file") && value.find("file")->is_string())
    return true;
  diagnostics.error(without_text(value.location()), path + " is a secret and is not allowed in a recipe in plain text",
                    "write \"${env:NAME}\", or {file: PATH} for a file that holds it");
  return false;
}

bool has_key_shape(const std::string& text) {
  struct Shape {
    const char* prefix;
    std::size_t length_min;
  };
  static constexpr Shape kShapes[] = {{"hf_", 30},    {"sk-", 30},   {"ghp_", 36},  {"gho_", 36}, {"github_pat_", 40},
                                      {"glpat-", 20}, {"xoxb-", 30}, {"xoxp-", 30}, {"AKIA", 20}, {"AIza", 35}};
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  for (const Shape& shape : kShapes) {
    if (text.rfind(shape.prefix, 0) == 0 && text.size() >= shape.length_min && text.size() <= 200 &&
        std::all_of(text.begin(), text.end(), plain))
      return true;
  }
  return false;
}

bool is_secret_name(const std::string& key) {
  static const std::vector<std::string> kNames = {"api_key",       "apikey",        "password",    "passwd",
                                                  "secret",        "secret_key",    "access_key",  "access_token",
                                                  "auth_token",    "api_token",     "private_key", "credentials",
                                                  "client_secret", "wandb_api_key", "hf_token"};
  const std::string word = lower(key);
  return std::any_of(kNames.begin(), kNames.end(), [&](const std::string& name) {
    return word == name || (word.size() > name.size() && word.ends_with("_" + name));
  });
}

/// In a URL, and of the recipe's own: one that stands in the environment is written as a reference to it.
bool has_plain_url_password(const Node& node) {
  const std::string text = came_from_environment(node) ? with_environment_references(node) : node.as_string();
  const auto found = core::find_url_passwords(text);
  return std::any_of(found.begin(), found.end(),
                     [&text](const core::TextSpan& password) { return text.compare(password.begin, 2, "${") != 0; });
}

/// `by_name`: whether the name of a key alone makes its text suspicious; `named`: it has such a name, or lies below
/// one.
bool search_secrets(const Node& node, const std::string& path, bool by_name, bool named,
                    core::Diagnostics& diagnostics) {
  bool found = false;
  const bool told_by_name = named && path.starts_with("vars");
  if (!by_name && !told_by_name && node.is_string() && has_plain_url_password(node)) {
    found = true;
    diagnostics.error(without_text(node.location()), path + " has a password in plain text",
                      "write \"${env:NAME}\" in its place and set it in the environment: a recipe is copied into every "
                      "run");
  } else if (node.is_string() && !came_from_environment(node)) {
    found = by_name ? named && !node.as_string().empty() : !named && has_key_shape(node.as_string());
    if (found)
      diagnostics.error(without_text(node.location()), path + " looks like a secret in plain text",
                        "write \"${env:NAME}\" and set it in the environment: a recipe is copied into every run");
  }
  for (std::size_t i = 0; i < node.items().size(); ++i)
    found |= search_secrets(node.items()[i], path + "[" + std::to_string(i) + "]", by_name, named, diagnostics);
  for (const Node::Entry& entry : node.entries())
    found |= search_secrets(entry.value, joined_path(path, entry.key), by_name, named || is_secret_name(entry.key),
                            diagnostics);
  return found;
}

}  // namespace

core::Location without_text(const core::Location& location) {
  if (!location.known()) return location;
  core::Location bare = location;
  std::string name = location.source->name;
  if (location.source->kind == core::Source::Kind::kFlag) name = name.substr(0, name.find('='));
  bare.source = std::make_shared<core::Source>(core::Source{std::move(name), "", location.source->kind});
  return bare;
}

bool came_from_environment(const Node& value, std::string* reference) {
  const core::HistoryStep* step = value.find_step(core::Origin::kEnvironment);
  if (step != nullptr && reference != nullptr) *reference = step->of;
  return step != nullptr;
}

std::string with_environment_references(const Node& value) {
  std::vector<std::pair<std::string, std::string>> known;  // what a variable holds, and its reference
  for (const core::HistoryStep& step : value.history()) {
    if (step.origin != core::Origin::kEnvironment) continue;
    constexpr std::size_t kBegin = std::string_view("${env:").size();
    const std::string name = step.of.substr(kBegin, step.of.size() - kBegin - 1);
    const char* held = std::getenv(name.c_str());
    if (held != nullptr && *held != '\0') known.emplace_back(held, step.of);
  }
  // The longest first: one may be a part of another.
  std::stable_sort(known.begin(), known.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  const std::string& text = value.as_string();
  std::string written;
  for (std::size_t at = 0; at < text.size();) {
    const auto here = std::find_if(known.begin(), known.end(),
                                   [&](const auto& one) { return text.compare(at, one.first.size(), one.first) == 0; });
    if (here != known.end()) {
      written += here->second;
      at += here->first.size();
      continue;
    }
    if (text.compare(at, 2, "${") == 0) written += '$';  // the user's own
    written += text[at++];
  }
  return written;
}

std::string wanted(const Property& property) {
  switch (property.type) {
    case Type::kBoolean: return property.count_key.empty() ? "true or false" : "true, false or a number";
    case Type::kInteger: return property.or_auto ? "an integer or auto" : "an integer";
    case Type::kNumber: return "a number";
    case Type::kString:
      if (property.enum_values.size() == 1) return property.enum_values[0];
      return property.enum_values.empty() ? "text" : enumerated(property.enum_values, "or", 16);
    case Type::kArray: {
      const Type item = property.element->type;
      const std::string list = item == Type::kInteger  ? "a list of integers"
                               : item == Type::kNumber ? "a list of numbers"
                                                       : "a list";
      return property.single ? wanted(*property.element) + " or " + list : list;
    }
    case Type::kObject: return property.short_form.empty() ? "a mapping" : "a " + property.short_form + " or a mapping";
    case Type::kMap:
    case Type::kSection: return "a mapping";
    case Type::kComponent: return "the name of " + a_kind(property.kind) + " or a mapping with its type";
    case Type::kInterval: return "an interval";
    case Type::kDuration: return "a duration";
    case Type::kBytes: return "a size in bytes";
    case Type::kPath: return "a path";
    case Type::kSecret: return "a secret";
    case Type::kAny: return "a value";
  }
  return "a value";
}

std::string bounds_text(const Property& property) {
  const bool closed =
      property.minimum && property.maximum && !property.exclusive_minimum && !property.exclusive_maximum;
  if (closed && *property.minimum == *property.maximum) return number_text(*property.minimum);
  if (closed) return "between " + number_text(*property.minimum) + " and " + number_text(*property.maximum);
  std::string text;
  const auto add = [&](const char* words, const std::optional<double>& bound) {
    if (bound) text += (text.empty() ? "" : " and ") + std::string(words) + number_text(*bound);
  };
  add("at least ", property.minimum);
  add("greater than ", property.exclusive_minimum);
  add("at most ", property.maximum);
  add("less than ", property.exclusive_maximum);
  return text;
}

/// The environment holds text only: `${env:SEED}` is a number where a number is wanted.
void read_environment_text(Node& value, const Property& property) {
  const bool typed =
      property.type == Type::kBoolean || property.type == Type::kInteger || property.type == Type::kNumber;
  if (!typed || !value.is_string() || !came_from_environment(value)) return;
  auto read = core::resolve_scalar(value.as_string());
  if (!read.ok()) return;
  Node scalar = std::move(read).value();
  scalar.set_location(value.location());
  scalar.set_history(value.history());
  value = std::move(scalar);
}

bool check_scalar(Node& value, const Property& property, const std::string& path, const Hint& word_hint,
                  core::Diagnostics& diagnostics) {
  read_environment_text(value, property);
  switch (property.type) {
    case Type::kBoolean: return value.is_bool() || refuse_type(value, property, path, diagnostics);
    case Type::kInteger: return check_integer(value, property, path, diagnostics);
    case Type::kNumber: return check_number(value, property, path, diagnostics);
    case Type::kString:
    case Type::kPath: return check_text(value, property, path, word_hint, diagnostics);
    case Type::kInterval: return check_interval(value, property, path, diagnostics);
    case Type::kDuration: return check_duration(value, property, path, diagnostics);
    case Type::kBytes: return check_bytes(value, property, path, diagnostics);
    case Type::kSecret: return check_secret(value, path, diagnostics);
    default: return true;
  }
}

void check_plain_secrets(const Node& root, core::Diagnostics& diagnostics) {
  search_secrets(root, "", false, false, diagnostics);
  if (const Node* vars = root.find("vars")) search_secrets(*vars, "vars", true, false, diagnostics);
}

bool check_plain_secrets(const Node::Entry& entry, const std::string& path, core::Diagnostics& diagnostics) {
  return search_secrets(entry.value, path, true, is_secret_name(entry.key), diagnostics);
}

}  // namespace runner::registry
