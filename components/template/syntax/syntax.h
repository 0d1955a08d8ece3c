#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "components/template/value/value.h"

// The tree of a template, as its parser makes it and the machine runs it.

namespace components::jinja {

struct Place {
  std::uint32_t line = 1, column = 1;  ///< columns count code points
};

/// What a template does wrong, on its way to the caller of parse() or render().
struct Failed {
  std::string message;
  Place place;
};

inline constexpr int kNoSymbol = -1;

enum class Op : std::uint8_t {
  kConstant,  ///< `value`
  kName,      ///< `symbol`
  kList,
  kTuple,
  kMapping,    ///< keys and values in turn
  kAttribute,  ///< children[0].`value`
  kItem,       ///< children[0][children[1]]
  kSlice,      ///< children[0][children[1]:children[2]:children[3]]; an absent bound is the constant none
  kCall,       ///< children[0](arguments)
  kFilter,     ///< children[0] | `value`(arguments)
  kTest,       ///< children[0] is `value`(arguments)
  kNot,
  kNegative,
  kPositive,
  kAnd,
  kOr,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcat,   ///< `~` of all children
  kCompare,  ///< children[0] comparisons[0] children[1] comparisons[1] ...
  kIf        ///< children: condition, then, else
};

enum class Comparison : std::uint8_t { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kIn, kNotIn };

struct Expression {
  Op op = Op::kConstant;
  Place place;
  int symbol = kNoSymbol;
  Value value;  ///< a constant, or the text that names an attribute, a filter or a test
  std::vector<Expression> children;
  std::vector<Comparison> comparisons;
  // Of calls, filters and tests: children behind the first are `positional` values, one for each keyword, then the
  // list behind `*` and the mapping behind `**`.
  std::size_t positional = 0;
  std::vector<std::string> keywords;
  bool has_star = false, has_double_star = false;
  std::uint32_t depth = 1;  ///< of the expressions in it
};

struct Statement;
using Body = std::vector<Statement>;

enum class Act : std::uint8_t {
  kText,         ///< `text`
  kOutput,       ///< `expression`
  kIf,           ///< `expression`, `body`, `otherwise`
  kFor,          ///< `target` in `expression`, `condition` where has_condition, `body`, `otherwise`
  kSet,          ///< `target` = `expression`
  kSetBlock,     ///< `target` = `body`, through `expression` where has_condition (filters of the constant "")
  kMacro,        ///< `symbol`, `macro`, `body`
  kCallBlock,    ///< `expression` with a caller of `macro`, `body`
  kFilterBlock,  ///< `body` through `expression`
  kWith,         ///< `targets` = `values`, `body`
  kScope,        ///< `body` with names of its own
  kGeneration,   ///< `body`, which an assistant wrote
  kBreak,
  kContinue
};

/// The parameters of a macro or a caller, and which names of its surroundings it uses.
struct Signature {
  std::string name;
  std::vector<int> parameters;
  std::vector<std::string> names;
  std::vector<Expression> defaults;  ///< of the last parameters
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct Statement {
  Act act = Act::kText;
  Place place;
  int symbol = kNoSymbol;
  bool is_recursive = false, has_condition = false;
  Text text;
  Expression expression, target, condition;
  std::vector<Expression> targets, values;
  std::shared_ptr<const Signature> signature;
  Body body, otherwise;
};

/// A parsed template. The numbers of symbols are places in `symbols`.
struct Tree {
  Body body;
  std::vector<std::string> symbols;
  std::vector<Value> absent;  ///< by symbol: its undefined value
  int loop = kNoSymbol, caller = kNoSymbol, varargs = kNoSymbol, kwargs = kNoSymbol;
  bool has_generation = false;
  std::set<std::string, std::less<>> words;  ///< names and texts inside of tags
};

}  // namespace components::jinja
