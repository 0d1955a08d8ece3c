#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runner/core/node.h"

namespace components::jinja {

class Callable;
class Loop;
struct List;
struct Mapping;

inline constexpr std::int32_t kNoMessage = -1;

/// What a message's text is of its answer: a thought, or a mark around one.
enum class Part : std::uint8_t { kAnswer, kThought, kThoughtMark };

/// Bytes [begin, end) of a text, and where they come from.
struct Origin {
  std::size_t begin = 0, end = 0;
  std::int32_t message = kNoMessage;  ///< index in `messages`
  bool by_text = false;               ///< taken from the message; else the template wrote it
  bool in_generation = false;         ///< inside `{% generation %}`
  std::int32_t pass = kNoMessage;     ///< the message in whose pass of a loop it was written
  bool is_left = false;               ///< not written yet: that pass only left it in a namespace
  Part part = Part::kAnswer;          ///< of what is taken from the message
};

struct Text {
  std::string bytes;                 ///< UTF-8
  std::vector<Origin> origins = {};  ///< in order, without overlap; what is in none is the template's own
  bool is_markup = false;            ///< made by `safe` or `escape`: escapes what is added to it, as MarkupSafe does
};

/// What Python tells apart among sequences.
enum class Sequence { kList, kTuple, kRange, kKeys, kValues, kItems, kIterator };

/// An absent value: what was looked for, for the message of whoever uses it.
struct Absence {
  std::string what;
};

/// A value of a template, as Python has it: numbers, texts, lists and mappings are those of JSON, integers have 64
/// bits.
///
/// A value type with shared contents: a copy costs no more than a counter, and what it holds does not change, with the
/// exception of namespaces, iterators and the states of loops. Values that were made before a rendering may be used by
/// several renderings at a time.
class Value {
 public:
  enum class Kind : std::uint8_t {
    kUndefined,
    kNone,
    kBool,
    kInteger,
    kFloat,
    kText,
    kList,
    kMapping,
    kNamespace,
    kCallable,
    kLoop
  };

  Value() = default;  ///< undefined
  static Value none();
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value floating(double value);
  static Value text(std::string bytes);
  static Value text(Text text);
  static Value list(std::vector<Value> items, Sequence sequence = Sequence::kList);
  static Value list(std::shared_ptr<List> list);
  static Value mapping(std::shared_ptr<Mapping> mapping);
  static Value name_space(std::shared_ptr<Mapping> attributes);
  static Value callable(std::shared_ptr<const Callable> callable);
  static Value loop(std::shared_ptr<Loop> loop);
  static Value undefined(std::string what);
  /// The tree of a recipe or of a record's JSON.
  static Value from(const runner::core::Node& node);
  /// The same of one message: everything in it knows its index.
  static Value from_message(const runner::core::Node& node, std::int32_t index);

  Kind kind() const { return kind_; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_text() const { return kind_ == Kind::kText; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_mapping() const { return kind_ == Kind::kMapping; }
  /// Python's bool is an int.
  bool is_integral() const { return kind_ == Kind::kInteger || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }

  std::int64_t as_integer() const { return number_.integer; }
  double as_double() const { return kind_ == Kind::kFloat ? number_.floating : static_cast<double>(number_.integer); }
  const Text& as_text() const { return *static_cast<const Text*>(object_.get()); }
  const std::string& bytes() const { return as_text().bytes; }
  List& as_list() const { return *static_cast<List*>(object_.get()); }
  const std::vector<Value>& items() const;  ///< of a list
  /// Of a mapping or a namespace.
  Mapping& as_mapping() const { return *static_cast<Mapping*>(object_.get()); }
  const Callable& as_callable() const { return *static_cast<const Callable*>(object_.get()); }
  Loop& as_loop() const { return *static_cast<Loop*>(object_.get()); }
  /// Of an undefined value: "'x' is undefined".
  std::string absence() const;
  const void* identity() const { return object_.get(); }

  bool is_true() const;
  /// Whether Python could use it as a key.
  bool hashable() const;
  /// Python's name of its type: "str", "dict".
  std::string_view type_name() const;

 private:
  Kind kind_ = Kind::kUndefined;
  union {
    std::int64_t integer = 0;
    double floating;
  } number_;
  std::shared_ptr<void> object_;
};

struct List {
  Sequence sequence = Sequence::kList;
  std::vector<Value> items = {};
  std::int32_t message = kNoMessage;  ///< the message that it is a part of
  std::int64_t range_end = 0;         ///< of a range: what it was given
  std::size_t taken = 0;              ///< of an iterator: what was read already
  std::uint32_t depth = 0;            ///< of the deepest value in it; what a machine makes
  std::uint64_t weight = 1;           ///< what comparing it costs, in steps
  std::int32_t source = kNoMessage;   ///< the message of the first of its values that has one
  bool is_group = false;              ///< a pair of `groupby`, which has the attributes `grouper` and `list`
};

struct Mapping {
  std::vector<std::pair<Value, Value>> entries = {};  ///< in the order of insertion
  std::int32_t message = kNoMessage;                  ///< the message that it is, or is a part of
  bool is_message = false;
  std::uint32_t depth = 0;
  std::uint64_t weight = 1;
  std::int32_t source = kNoMessage;

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;
  /// Adds or replaces; a replaced key keeps its position. `key` has to be hashable().
  void set(const Value& key, Value value);

 private:
  std::unordered_map<std::string_view, std::size_t> index_;  // of texts, once there are many entries
};

inline const std::vector<Value>& Value::items() const { return as_list().items; }

/// Python's `==`. Nothing that a template makes is nested deeply enough to end the stack: the machine bounds it. It may
/// take as long as the weights of both say, so what runs a template asks Machine::same().
bool equal(const Value& a, const Value& b);

/// How deeply values are nested in it.
std::uint32_t depth_of(const Value& value);

/// What it costs to compare a value, in steps. A list that holds another one twice weighs it twice: what is small in
/// memory may be long to walk through.
std::uint64_t weight_of(const Value& value);
inline constexpr std::uint64_t kWeightMax = std::uint64_t{1} << 40U;  ///< where it stops to grow

/// The message that a value is taken from, or kNoMessage.
std::int32_t message_of(const Value& value);

}  // namespace components::jinja
