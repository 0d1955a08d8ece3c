#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/template/machine/render_options.h"
#include "components/template/syntax/syntax.h"
#include "components/template/value/text.h"
#include "components/template/value/value.h"

namespace components::jinja {

class Machine;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// What a template can call.
class Callable {
 public:
  virtual ~Callable() = default;
  virtual Value call(Machine& machine, Arguments& arguments) const = 0;
  std::uint32_t depth = 0;  ///< of the values that it holds
};

/// The names of a block. Lives as long as the machine once a macro has seen it.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<int, Value>> names = {};
  bool is_kept = false;
};

/// One pass of a `for`, as the template sees it.
class Loop {
 public:
  Value items;
  std::size_t index = 0;
  std::size_t depth0 = 0;
  std::uint32_t depth = 0;
  const Statement* recursive = nullptr;
  Scope* scope = nullptr;        ///< of the statement, for recursion
  std::vector<Value> seen = {};  ///< by loop.changed()
  bool has_seen = false;
};

/// Writes go to the innermost of these: the rendering, or the text of a macro or a block.
using Output = TextBuilder;

/// Runs one rendering. What a template does wrong is thrown as Failed, with the place that is being run.
class Machine {
 public:
  Machine(const Tree& tree, const Mapping& variables, const RenderOptions& options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Text run();

  // For what a template calls.

  [[noreturn]] void fail(std::string message) const;
  /// Counts work; fails at the limit.
  void step(std::size_t steps = 1) {
    if (steps > steps_max_ - steps_) fail_steps();
    steps_ += steps;
  }
  /// Of looking for `what` in `text`, which a search may compare at each place.
  void step_search(std::string_view text, std::string_view what) { step(text.size() / 64 * (1 + what.size() / 64)); }
  /// Counts bytes before they are made, `bytes` for each of `times` parts.
  void charge(std::size_t bytes, std::size_t times = 1) {
    std::size_t all = 0;
    if (__builtin_mul_overflow(bytes, times, &all) || all > bytes_max_ - bytes_) fail_bytes();
    bytes_ += all;
  }
  Value text(std::string bytes);
  Value text(Text text);
  Value list(std::vector<Value> items, Sequence sequence = Sequence::kList);
  /// Fails for a key that Python could not use.
  void set(Mapping& mapping, const Value& key, Value value);
  Value mapping(std::shared_ptr<Mapping> mapping);
  Value name_space(std::shared_ptr<Mapping> attributes);
  void limit_depth(std::uint32_t depth) const;

  /// What a `for` over the value would see; an iterator has nothing left afterwards.
  std::vector<Value> items(const Value& value);
  std::string str(const Value& value);
  std::string repr(const Value& value);
  Text as_text(const Value& value);  ///< str(), with the origins of a text
  /// Jinja's `a.b` and `a[b]`.
  Value attribute(const Value& object, const Value& name);
  Value item(const Value& object, const Value& key);
  Value call(const Value& callee, Arguments& arguments);
  Value filter(const std::string& name, const Value& subject, Arguments& arguments);
  bool test(const std::string& name, const Value& subject, Arguments& arguments);
  bool same(const Value& a, const Value& b);  ///< Python's `==`
  bool less(const Value& a, const Value& b);
  /// Whether a value can be a key, and what a mapping has under one that can.
  bool is_key(const Value& value);
  const Value* find(const Mapping& mapping, const Value& key);
  bool less_or_equal(const Value& a, const Value& b);
  bool contains(const Value& container, const Value& value);
  Value add(const Value& a, const Value& b);
  Value arithmetic(Op op, const Value& a, const Value& b);
  Value slice(const Value& subject, const Value& begin, const Value& end, const Value& step);
  const std::tm& now() const { return options_.now; }
  std::int64_t integer(const Value& value, std::string_view what) const;

  Value call_macro(const Signature& signature, const Body& body, Scope* scope, Arguments& arguments);
  Value recurse(const Loop& loop, const Value& items);

  /// Counts a level of nesting while it lives; fails at the limit.
  class Level {
   public:
    explicit Level(Machine& machine) : machine_(machine) { machine.enter(); }
    ~Level() { --machine_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Machine& machine_;
  };

 private:
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };
  /// Whose pass is being run.
  struct Pass {
    std::int32_t message = kNoMessage;
    bool in_generation = false;
    int index_symbol = kNoSymbol;  ///< the variable of a loop over numbers, which may choose the message
    Output* output = nullptr;      ///< where that loop's pass began
    std::size_t begin = 0;
  };

  void enter();
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_bytes() const;

  Value evaluate(const Expression& expression);
  Value evaluate_call(const Expression& expression);
  Value evaluate_compare(const Expression& expression);
  Arguments arguments(const Expression& expression);
  Value name(int symbol);

  Flow run(const Body& body);
  Flow run_for(const Statement& statement, const Value& value, std::size_t depth0);
  Flow run_pass(const Statement& statement, const Value& item, const Value& loop, Scope* outer);
  void run_set(const Statement& statement);
  void assign(const Expression& target, const Value& value, bool in_loop = false);
  void assign(int symbol, Value value);
  Text captured(const Body& body);
  Value block_text(const Statement& statement);
  void write(const Value& value);
  void write(const Text& text);
  /// The loop's variable has chosen a message: what its pass wrote so far is that message's.
  void choose_message(const Expression& index, const Value& item);
  Text left(const Text& text) const;
  void keep_scopes();

  const Tree& tree_;
  const RenderOptions& options_;
  std::vector<const Value*> variables_;  // by symbol
  std::vector<Value> globals_;           // by symbol
  std::vector<std::unique_ptr<Scope>> kept_;
  std::vector<std::shared_ptr<Mapping>> namespaces_;
  std::unique_ptr<Scope> root_;
  Scope* scope_ = nullptr;
  Output* output_ = nullptr;
  Pass pass_;
  Place place_;
  std::size_t steps_ = 0, steps_max_ = 0, bytes_ = 0, bytes_max_ = 0, level_ = 0;
};

/// Of repr(), of tojson.
std::string float_text(double value);

}  // namespace components::jinja
