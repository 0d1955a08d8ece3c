#include "components/template/machine/machine.h"

#include <algorithm>
#include <utility>

#include "components/template/machine/functions.h"

// Statements. Expressions are in expressions.cpp and operators.cpp.

namespace components::jinja {
namespace {

/// A macro, or the caller of a call block.
class Macro : public Callable {
 public:
  Macro(const Statement& statement, Scope* scope) : statement_(statement), scope_(scope) {}
  Value call(Machine& machine, Arguments& arguments) const override {
    return machine.call_macro(*statement_.signature, statement_.body, scope_, arguments);
  }

 private:
  const Statement& statement_;
  Scope* scope_;
};

std::size_t bytes_of(const Value& value) {
  std::size_t bytes = 16;
  if (value.is_text()) bytes += value.bytes().size();
  if (value.is_list()) {
    for (const Value& item : value.items()) bytes += bytes_of(item);
  }
  if (value.is_mapping()) {
    for (const auto& [key, item] : value.as_mapping().entries) bytes += bytes_of(key) + bytes_of(item);
  }
  return bytes;
}

template <typename Part>
class Restored {
 public:
  explicit Restored(Part& part) : part_(part), before_(part) {}
  ~Restored() { part_ = before_; }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  Part& part_;
  Part before_;
};

/// A scope within another, while this lives.
class Inner {
 public:
  Inner(Scope*& current, std::vector<std::unique_ptr<Scope>>& kept, Scope* outer)
      : current_(current), kept_(kept), before_(current), scope_(std::make_unique<Scope>()) {
    scope_->parent = outer;
    current_ = scope_.get();
  }
  ~Inner() {
    current_ = before_;
    if (scope_->is_kept) kept_.push_back(std::move(scope_));
  }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;

  /// Empty again, for the next pass.
  void renew() {
    if (scope_->is_kept) {
      Scope* outer = scope_->parent;
      kept_.push_back(std::move(scope_));
      scope_ = std::make_unique<Scope>();
      scope_->parent = outer;
      current_ = scope_.get();
    } else {
      scope_->names.clear();
    }
  }

 private:
  Scope*& current_;
  std::vector<std::unique_ptr<Scope>>& kept_;
  Scope* before_;
  std::unique_ptr<Scope> scope_;
};

}  // namespace

std::uint32_t depth_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kList: return value.as_list().depth;
    case Value::Kind::kMapping: return value.as_mapping().depth;
    case Value::Kind::kCallable: return value.as_callable().depth;
    case Value::Kind::kLoop: return value.as_loop().depth;
    default: return 0;
  }
}

Machine::Machine(const Tree& tree, const Mapping& variables, const RenderOptions& options)
    : tree_(tree),
      options_(options),
      root_(std::make_unique<Scope>()),
      scope_(root_.get()),
      steps_max_(options.limits.steps) {
  std::size_t input = 0;
  for (const auto& entry : variables.entries) input += bytes_of(entry.second);
  bytes_max_ = options.limits.made_bytes + input * options.limits.made_times_input;
  variables_.reserve(tree.symbols.size());
  globals_.reserve(tree.symbols.size());
  for (const std::string& symbol : tree.symbols) {
    variables_.push_back(variables.find(symbol));
    globals_.push_back(global(symbol));
  }
}

Machine::~Machine() {
  // A namespace may hold itself.
  for (const auto& one : namespaces_) one->entries.clear();
}

Text Machine::run() {
  Output output;
  output_ = &output;
  run(tree_.body);
  return output.take();
}

void Machine::fail(std::string message) const { throw Failed{std::move(message), place_}; }

void Machine::enter() {
  if (level_ >= options_.limits.depth) {
    fail("calls, blocks and expressions are nested more than " + std::to_string(options_.limits.depth) +
         " deep (limit depth)");
  }
  ++level_;
}

void Machine::fail_steps() const {
  fail("the template takes more than " + std::to_string(steps_max_) + " steps (limit steps)");
}

void Machine::fail_bytes() const {
  fail("the template makes more than " + std::to_string(bytes_max_) + " bytes of values (limit made_bytes)");
}

void Machine::write(const Text& text) {
  if (text.bytes.empty()) return;
  if (output_->size() + text.bytes.size() > options_.limits.output_bytes) {
    fail("the text is longer than " + std::to_string(options_.limits.output_bytes) + " bytes (limit output_bytes)");
  }
  charge(text.bytes.size());
  output_->add_owned(text, pass_.message, pass_.in_generation);
}

void Machine::write(const Value& value) {
  if (value.is_text()) return write(value.as_text());
  if (value.is_undefined()) return;
  const std::int32_t message = value.is_number() || value.is_none() ? kNoMessage : message_of(value);
  Text text{str(value)};
  if (message != kNoMessage && !text.bytes.empty()) text.origins = {{0, text.bytes.size(), message, true}};
  write(text);
}

Text Machine::left(const Text& text) const {
  TextBuilder builder;
  builder.add_left(text, pass_.message);
  Text made = builder.take();
  made.is_markup = text.is_markup;
  return made;
}

void Machine::choose_message(const Expression& index, const Value& item) {
  if (pass_.index_symbol == kNoSymbol || index.op != Op::kName || index.symbol != pass_.index_symbol ||
      !item.is_mapping() || !item.as_mapping().is_message) {
    return;
  }
  pass_.message = item.as_mapping().message;
  pass_.index_symbol = kNoSymbol;
  if (pass_.output == output_) output_->own_from(pass_.begin, pass_.message, pass_.in_generation);
}

void Machine::keep_scopes() {
  for (Scope* scope = scope_; scope && !scope->is_kept; scope = scope->parent) {
    charge(sizeof(Scope) + scope->names.size() * sizeof(scope->names[0]));
    scope->is_kept = scope != root_.get();
  }
}

Machine::Flow Machine::run(const Body& body) {
  const Level level(*this);
  for (const Statement& one : body) {
    step();
    place_ = one.place;
    switch (one.act) {
      case Act::kText: write(one.text); break;
      case Act::kOutput: write(evaluate(one.expression)); break;
      case Act::kIf: {
        const Flow flow = run(evaluate(one.expression).is_true() ? one.body : one.otherwise);
        if (flow != Flow::kNext) return flow;
        break;
      }
      case Act::kFor: {
        const Flow flow = run_for(one, evaluate(one.expression), 0);
        if (flow != Flow::kNext) return flow;
        break;
      }
      case Act::kSet:
      case Act::kSetBlock: run_set(one); break;
      case Act::kMacro:
        keep_scopes();
        assign(one.symbol, Value::callable(std::make_shared<Macro>(one, scope_)));
        break;
      case Act::kCallBlock: {
        keep_scopes();
        Arguments given = arguments(one.expression);
        given.named.emplace_back("caller", Value::callable(std::make_shared<Macro>(one, scope_)));
        const Value callee = evaluate(one.expression.children[0]);
        place_ = one.place;
        write(call(callee, given));
        break;
      }
      case Act::kFilterBlock: write(block_text(one)); break;
      case Act::kWith: {
        std::vector<Value> values;
        for (const Expression& value : one.values) values.push_back(evaluate(value));
        const Inner inner(scope_, kept_, scope_);
        for (std::size_t i = 0; i < values.size(); ++i) assign(one.targets[i], values[i]);
        run(one.body);
        break;
      }
      case Act::kScope: {
        const Inner inner(scope_, kept_, scope_);
        run(one.body);
        break;
      }
      case Act::kGeneration: {
        const Inner inner(scope_, kept_, scope_);
        const Restored restored(pass_.in_generation);
        pass_.in_generation = true;
        run(one.body);
        break;
      }
      case Act::kBreak: return Flow::kBreak;
      case Act::kContinue: return Flow::kContinue;
    }
  }
  return Flow::kNext;
}

Machine::Flow Machine::run_for(const Statement& statement, const Value& value, std::size_t depth0) {
  const Level level(*this);
  place_ = statement.expression.place;
  const auto loop = std::make_shared<Loop>();
  Scope* outer = scope_;
  // A list does not change while it is walked through; of other values one is made.
  const bool is_list = value.is_list() && value.as_list().sequence != Sequence::kIterator;
  loop->items = is_list ? value : list(items(value));
  if (statement.has_condition) {
    Inner inner(scope_, kept_, outer);
    std::vector<Value> chosen;
    for (const Value& item : loop->items.items()) {
      step();
      inner.renew();
      assign(statement.target, item, true);
      if (evaluate(statement.condition).is_true()) chosen.push_back(item);
    }
    loop->items = list(std::move(chosen));
  }
  if (loop->items.items().empty()) {
    const Inner inner(scope_, kept_, outer);
    return run(statement.otherwise);
  }
  loop->depth0 = depth0;
  loop->depth = loop->items.as_list().depth + 1;
  loop->recursive = statement.is_recursive ? &statement : nullptr;
  if (loop->recursive) keep_scopes();
  loop->scope = outer;
  const Value loop_value = Value::loop(loop);
  Inner inner(scope_, kept_, outer);
  const Restored restored(pass_);
  const Pass before = pass_;
  bool has_ended_a_pass = false;
  for (const Value& item : loop->items.items()) {
    step();
    inner.renew();
    pass_ = before;
    if (item.is_mapping() && item.as_mapping().message != kNoMessage) {
      pass_.message = item.as_mapping().message;
      pass_.index_symbol = kNoSymbol;
    } else if (item.kind() == Value::Kind::kInteger && statement.target.op == Op::kName) {
      pass_.index_symbol = statement.target.symbol;
      pass_.output = output_;
      pass_.begin = output_->size();
    }
    assign(tree_.loop, loop_value);
    assign(statement.target, item, true);
    const Flow flow = run(statement.body);
    if (flow == Flow::kBreak) break;
    has_ended_a_pass = has_ended_a_pass || flow == Flow::kNext;
    ++loop->index;
  }
  if (has_ended_a_pass || statement.otherwise.empty()) return Flow::kNext;
  // Where each pass was left by a break or a continue, Jinja2 runs the else as if there had been none.
  pass_ = before;
  inner.renew();
  return run(statement.otherwise);
}

Value Machine::recurse(const Loop& loop, const Value& items) {
  if (!loop.recursive) fail("only a loop that is marked recursive can be called");
  const Restored scope(scope_);
  const Restored output(output_);
  scope_ = loop.scope;
  Output made;
  output_ = &made;
  run_for(*loop.recursive, items, loop.depth0 + 1);
  return text(made.take());
}

void Machine::assign(int symbol, Value value) {
  for (auto& [name, old] : scope_->names) {
    if (name == symbol) {
      old = std::move(value);
      return;
    }
  }
  step(scope_->names.size() / 16);
  if (scope_->is_kept) charge(sizeof(scope_->names[0]));
  scope_->names.emplace_back(symbol, std::move(value));
}

void Machine::assign(const Expression& target, const Value& value, bool in_loop) {
  if (target.op == Op::kName) return assign(target.symbol, value);
  if (target.op == Op::kAttribute) {
    place_ = target.place;
    const Value& object = name(target.children[0].symbol);
    if (object.kind() != Value::Kind::kNamespace) {
      fail("only attributes of a namespace can be set, and \"" +
           tree_.symbols[static_cast<std::size_t>(target.children[0].symbol)] + "\" is of the type " +
           std::string(object.type_name()));
    }
    if (target.value.bytes().starts_with('_')) {
      fail("a namespace cannot have the attribute \"" + target.value.bytes() + "\": it begins with \"_\"");
    }
    limit_depth(depth_of(value));
    // What a pass leaves for the end of the loop is that pass's.
    const bool is_pass_text = value.is_text() && pass_.message != kNoMessage;
    set(object.as_mapping(), target.value, is_pass_text ? text(left(value.as_text())) : value);
    return;
  }
  const std::vector<Value> parts = items(value);
  if (parts.size() != target.children.size()) {
    place_ = target.place;
    fail("expected " + std::to_string(target.children.size()) + " values to unpack, got " +
         std::to_string(parts.size()));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) assign(target.children[i], parts[i], in_loop);
}

Text Machine::captured(const Body& body) {
  const Restored restored(output_);
  Output output;
  output_ = &output;
  run(body);
  return output.take();
}

Value Machine::block_text(const Statement& statement) {
  const Value captured_text = [&] {
    const Inner inner(scope_, kept_, scope_);
    return text(captured(statement.body));
  }();
  if (statement.act == Act::kSetBlock && !statement.has_condition) return captured_text;
  // The filters' innermost subject is the constant that stands for the block.
  std::vector<const Expression*> chain;
  for (const Expression* one = &statement.expression; one->op == Op::kFilter; one = &one->children[0]) {
    chain.push_back(one);
  }
  Value value = captured_text;
  for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
    Arguments given = arguments(**one);
    place_ = (*one)->place;
    value = filter((*one)->value.bytes(), value, given);
  }
  return value;
}

void Machine::run_set(const Statement& statement) {
  const Value value = statement.act == Act::kSet ? evaluate(statement.expression) : block_text(statement);
  assign(statement.target, value);
}

Value Machine::call_macro(const Signature& signature, const Body& body, Scope* scope, Arguments& given) {
  const Place place = place_;
  const std::size_t count = signature.parameters.size();
  std::vector<Value> values(count);
  std::vector<bool> is_given(count, false);
  std::vector<Value> rest;
  for (std::size_t i = 0; i < given.positional.size(); ++i) {
    if (i < count) {
      values[i] = given.positional[i];
      is_given[i] = true;
    } else {
      rest.push_back(given.positional[i]);
    }
  }
  if (!rest.empty() && !signature.uses_varargs) {
    fail("macro \"" + signature.name + "\" accepts " + std::to_string(count) + " arguments, got " +
         std::to_string(given.positional.size()));
  }
  Value caller = Value::undefined("no caller is defined");
  auto others = std::make_shared<Mapping>();
  for (auto& [name, value] : given.named) {
    const auto found = std::find(signature.names.begin(), signature.names.end(), name);
    if (found != signature.names.end()) {
      const auto i = static_cast<std::size_t>(found - signature.names.begin());
      if (is_given[i]) fail("macro \"" + signature.name + "\" got \"" + name + "\" twice");
      values[i] = value;
      is_given[i] = true;
    } else if (name == "caller" && signature.uses_caller) {
      caller = value;
    } else if (signature.uses_kwargs) {
      set(*others, Value::text(name), value);
    } else if (name == "caller") {
      fail("macro \"" + signature.name + "\" does not use the caller that {% call %} gives it");
    } else {
      fail("macro \"" + signature.name + "\" has no parameter \"" + name + "\"");
    }
  }
  const Restored restored(scope_);
  const Inner inner(scope_, kept_, scope);
  const std::size_t without_default = count - signature.defaults.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_given[i] && i >= without_default) values[i] = evaluate(signature.defaults[i - without_default]);
    if (!is_given[i] && i < without_default) {
      values[i] = Value::undefined("parameter '" + signature.names[i] + "' was not provided");
    }
    assign(signature.parameters[i], values[i]);
  }
  if (signature.uses_caller) assign(tree_.caller, caller);
  if (signature.uses_varargs) assign(tree_.varargs, list(std::move(rest), Sequence::kTuple));
  if (signature.uses_kwargs) assign(tree_.kwargs, mapping(std::move(others)));
  Text made = captured(body);
  place_ = place;
  return text(std::move(made));
}

Value Machine::text(std::string bytes) { return text(Text{std::move(bytes)}); }

Value Machine::text(Text text) {
  charge(text.bytes.size() + text.origins.size() * sizeof(Origin) + sizeof(Text));
  return Value::text(std::move(text));
}

void Machine::limit_depth(std::uint32_t depth) const {
  if (depth > options_.limits.depth) {
    fail("values are nested more than " + std::to_string(options_.limits.depth) + " deep (limit depth)");
  }
}

Value Machine::list(std::vector<Value> items, Sequence sequence) {
  charge(items.size() * sizeof(Value) + sizeof(List));
  auto made = std::make_shared<List>();
  made->sequence = sequence;
  for (const Value& item : items) {
    made->depth = std::max(made->depth, depth_of(item) + 1);
    made->weight = std::min(made->weight + weight_of(item), kWeightMax);
    if (made->source == kNoMessage) made->source = message_of(item);
  }
  limit_depth(made->depth);
  made->items = std::move(items);
  return Value::list(std::move(made));
}

void Machine::set(Mapping& mapping, const Value& key, Value value) {
  if (!is_key(key)) fail("a " + std::string(key.type_name()) + " cannot be a key");
  charge(4 * sizeof(Value));
  find(mapping, key);  // counts what set() does
  mapping.set(key, std::move(value));
}

Value Machine::mapping(std::shared_ptr<Mapping> mapping) {
  charge(sizeof(Mapping));
  mapping->weight = 1;
  for (const auto& [key, value] : mapping->entries) {
    mapping->depth = std::max({mapping->depth, depth_of(key) + 1, depth_of(value) + 1});
    mapping->weight = std::min(mapping->weight + weight_of(key) + weight_of(value), kWeightMax);
    if (mapping->source == kNoMessage) mapping->source = message_of(value);
  }
  limit_depth(mapping->depth);
  return Value::mapping(std::move(mapping));
}

Value Machine::name_space(std::shared_ptr<Mapping> attributes) {
  charge(sizeof(Mapping));
  for (const auto& entry : attributes->entries) limit_depth(depth_of(entry.second));
  namespaces_.push_back(attributes);
  return Value::name_space(std::move(attributes));
}

}  // namespace components::jinja
