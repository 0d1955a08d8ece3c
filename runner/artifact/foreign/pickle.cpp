#include "runner/artifact/foreign/pickle.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact::pickle {
namespace {

using core::RunError;

constexpr std::size_t kHeldBytesMax = 24 << 20;  // of what the rows hold: some 28,000 tensors
constexpr std::size_t kPickleBytesMax = 64 << 20;
constexpr std::int64_t kOperationsMax = 20'000'000;  // a quarter of a second
constexpr std::size_t kAxesMax = 64;                 // LibTorch's own limit
constexpr int kProtocolMax = 5;

constexpr ElementType kTypes[] = {
    {"FloatStorage", "float32", "F32", 4},
    {"HalfStorage", "float16", "F16", 2},
    {"BFloat16Storage", "bfloat16", "BF16", 2},
    {"DoubleStorage", "float64", "F64", 8},
    {"LongStorage", "int64", "I64", 8},
    {"IntStorage", "int32", "I32", 4},
    {"ShortStorage", "int16", "I16", 2},
    {"CharStorage", "int8", "I8", 1},
    {"ByteStorage", "uint8", "U8", 1},
    {"BoolStorage", "bool", "BOOL", 1},
    {"", "uint16", "U16", 2},
    {"", "uint32", "U32", 4},
    {"", "uint64", "U64", 8},
    {"", "float8_e4m3fn", "F8_E4M3", 1},
    {"", "float8_e5m2", "F8_E5M2", 1},
};
constexpr ElementType kUntyped = {"UntypedStorage", "uint8", "U8", 1};

// What a name stands for: one of these, or a type of elements from kFirstType on (twice: as storage and as dtype).
enum Name : std::int64_t {
  kOrderedDict,
  kRebuildTensor,
  kRebuildTypedTensor,
  kRebuildParameter,
  kSize,
  kUntypedStorage,
  kFirstStorage = 100,
  kFirstDtype = 200,
};

struct Known {
  const char* module;
  const char* name;
  Name meaning;
};

constexpr Known kKnown[] = {
    {"collections", "OrderedDict", kOrderedDict},
    {"torch._utils", "_rebuild_tensor_v2", kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v3", kRebuildTypedTensor},
    {"torch._utils", "_rebuild_parameter", kRebuildParameter},
    {"torch", "Size", kSize},
    {"torch.storage", "UntypedStorage", kUntypedStorage},
};

const ElementType* type_from(std::int64_t name, std::int64_t first) {
  const std::int64_t at = name - first;
  return at >= 0 && at < static_cast<std::int64_t>(std::size(kTypes)) ? &kTypes[at] : nullptr;
}

std::string python_name(std::int64_t name) {
  for (const Known& known : kKnown) {
    if (known.meaning == name) return std::string(known.module) + "." + known.name;
  }
  if (const ElementType* type = type_from(name, kFirstStorage)) return std::string("torch.") + type->storage;
  const ElementType* type = type_from(name, kFirstDtype);
  return type != nullptr ? std::string("torch.") + type->dtype : "?";
}

}  // namespace

Machine::Machine(std::string_view data, std::string where)
    : data_(data.substr(0, kPickleBytesMax)), where_(std::move(where)) {}

void Machine::refuse(const std::string& what) const {
  throw RunError(core::escape_for_terminal(where_ + ": " + what) + " (byte " + std::to_string(began_) +
                 " of the pickle)");
}

void Machine::refuse_name(std::string_view module, std::string_view name) const {
  constexpr std::size_t kShown = 100;
  std::string whole = std::string(module.substr(0, kShown)) + "." + std::string(name.substr(0, kShown));
  throw RunError(
      core::escape_for_terminal(where_ + ": holds a Python object " + whole + ", which is not data; nothing of it ran"),
      "write the state dict alone: torch.save(model.state_dict(), FILE)");
}

std::string_view Machine::take(std::uint64_t bytes) {
  if (bytes > data_.size() - at_) {
    refuse("an entry of " + std::to_string(bytes) + " bytes, and " + std::to_string(data_.size() - at_) + " are left");
  }
  const std::string_view taken = data_.substr(at_, static_cast<std::size_t>(bytes));
  at_ += taken.size();
  return taken;
}

/// Little-endian.
std::uint64_t Machine::number(int bytes) {
  const std::string_view taken = take(static_cast<std::uint64_t>(bytes));
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(taken[static_cast<std::size_t>(i)]);
  }
  return value;
}

std::string_view Machine::line() {
  const std::size_t end = data_.find('\n', at_);
  if (end == std::string_view::npos) refuse("a name without an end");
  const std::string_view text = data_.substr(at_, end - at_);
  at_ = end + 1;
  return text;
}

void Machine::charge(std::size_t bytes) {
  charged_ += bytes;
  if (charged_ > kHeldBytesMax) refuse("holds more values than a state dict has");
}

void Machine::push(Value value) {
  // The stack shrinks again, so its length counts, not what was pushed.
  if (stack_.size() * sizeof(Value) > kHeldBytesMax / 4) refuse("holds more values than a state dict has");
  stack_.push_back(value);
}

Value Machine::pop() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) refuse("takes a value that is not there");
  const Value value = stack_.back();
  stack_.pop_back();
  return value;
}

Value Machine::top(std::initializer_list<Kind> kinds, const char* what) const {
  if (stack_.empty() || std::find(kinds.begin(), kinds.end(), stack_.back().kind) == kinds.end()) {
    refuse(std::string("changes something that is not ") + what);
  }
  return stack_.back();
}

/// Where the values after the mark begin.
std::size_t Machine::pop_mark() {
  if (marks_.empty()) refuse("looks for a mark that is not there");
  const std::size_t begin = marks_.back();
  marks_.pop_back();
  return begin;
}

void Machine::push_text(Kind kind, std::string_view text) {
  charge(sizeof(std::string_view));
  texts_.push_back(text);
  push({kind, static_cast<std::int64_t>(texts_.size()) - 1});
}

/// Of the last `count` values.
void Machine::push_tuple(std::size_t count) {
  if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count) refuse("takes a value that is not there");
  charge(sizeof(Span) + count * sizeof(Value));
  spans_.push_back({static_cast<std::uint32_t>(items_.size()), static_cast<std::uint32_t>(count)});
  const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
  items_.insert(items_.end(), begin, stack_.end());
  stack_.erase(begin, stack_.end());
  push({Kind::kTuple, static_cast<std::int64_t>(spans_.size()) - 1});
}

/// Two's complement; one that is longer than 8 bytes stays a row of bytes.
void Machine::push_integer(std::uint64_t bytes) {
  if (bytes > 8) return push_text(Kind::kBytes, take(bytes));
  std::uint64_t value = number(static_cast<int>(bytes));
  if (bytes > 0 && bytes < 8 && (value >> (8 * bytes - 1)) != 0) value |= ~std::uint64_t{0} << (8 * bytes);
  push({Kind::kInt, static_cast<std::int64_t>(value)});
}

void Machine::push_chain(Kind kind) {
  charge(sizeof(Chain));
  chains_.emplace_back();
  push({kind, static_cast<std::int64_t>(chains_.size()) - 1});
}

void Machine::append(Value chain, Value key, Value value) {
  charge(sizeof(Link));
  const auto at = static_cast<std::uint32_t>(links_.size());
  links_.push_back({key, value, kNowhere});
  Chain& to = chains_[index(chain)];
  if (to.count++ == 0) {
    to.first = at;
  } else {
    links_[to.last].next = at;
  }
  to.last = at;
}

/// The values from `begin` on, to the container before them.
void Machine::append_from(std::size_t begin, bool pairs) {
  if (begin == 0) refuse("fills a container that is not there");
  const Value chain = stack_[begin - 1];
  if (chain.kind != (pairs ? Kind::kDict : Kind::kList)) {
    refuse(std::string("changes something that is not a ") + (pairs ? "dict" : "list"));
  }
  if (pairs && (stack_.size() - begin) % 2 != 0) refuse("a key without a value");
  for (std::size_t i = begin; i < stack_.size(); i += pairs ? 2 : 1) {
    append(chain, pairs ? stack_[i] : Value{}, stack_[pairs ? i + 1 : i]);
  }
  stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
}

void Machine::put(std::uint64_t slot) {
  if (stack_.empty()) refuse("remembers a value that is not there");
  // Python numbers them one after the other.
  if (slot > memo_.size() + 256) refuse("remembers a value as " + std::to_string(slot) + ", far from the last");
  while (memo_.size() <= slot) {
    charge(sizeof(Value));
    memo_.emplace_back();
  }
  memo_[static_cast<std::size_t>(slot)] = stack_.back();
}

void Machine::get(std::uint64_t slot) {
  if (slot >= memo_.size()) refuse("asks for value " + std::to_string(slot) + ", which was not remembered");
  push(memo_[static_cast<std::size_t>(slot)]);
}

std::size_t Machine::size(Value container) const {
  return container.kind == Kind::kTuple ? spans_[index(container)].count : chains_[index(container)].count;
}

Value Machine::run() {
  for (std::int64_t operations = 0;; ++operations) {
    began_ = at_;
    if (operations == kOperationsMax) refuse("takes more operations than a state dict does");
    if (at_ == data_.size()) {
      refuse(at_ == kPickleBytesMax ? "longer than " + std::to_string(kPickleBytesMax) + " bytes" : "ends too early");
    }
    const auto opcode = static_cast<unsigned char>(data_[at_++]);
    if (opcode == '.') {
      const Value result = pop();
      if (!stack_.empty()) refuse("leaves values behind");
      return result;
    }
    if (step(opcode) || step_text(opcode) || step_container(opcode) || step_memo(opcode) || step_object(opcode)) {
      continue;
    }
    char name[64];
    std::snprintf(name, sizeof name, "the pickle operation 0x%02x, which a state dict does not need", opcode);
    refuse(name);
  }
}

bool Machine::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:
      if (const std::uint64_t protocol = number(1); protocol > kProtocolMax) {
        refuse("pickle protocol " + std::to_string(protocol));
      }
      return true;
    case 0x95:  // a frame: its length
      if (number(8) > data_.size() - at_) refuse("a frame that is longer than the file");
      return true;
    case 'N': return push({Kind::kNone, 0}), true;
    case 0x88: return push({Kind::kBool, 1}), true;
    case 0x89: return push({Kind::kBool, 0}), true;
    case 'J': return push({Kind::kInt, static_cast<std::int32_t>(number(4))}), true;
    case 'K': return push({Kind::kInt, static_cast<std::int64_t>(number(1))}), true;
    case 'M': return push({Kind::kInt, static_cast<std::int64_t>(number(2))}), true;
    case 'G': return take(8), push({Kind::kFloat, 0}), true;
    case 0x8a: return push_integer(number(1)), true;
    case 0x8b: return push_integer(number(4)), true;
    case '0': return pop(), true;
    default: return false;
  }
}

bool Machine::step_text(unsigned char opcode) {
  switch (opcode) {
    case 0x8c: return push_text(Kind::kText, take(number(1))), true;
    case 'X': return push_text(Kind::kText, take(number(4))), true;
    case 0x8d: return push_text(Kind::kText, take(number(8))), true;
    case 'U': return push_text(Kind::kText, take(number(1))), true;  // Python 2's
    case 'T': return push_text(Kind::kText, take(number(4))), true;
    case 'C': return push_text(Kind::kBytes, take(number(1))), true;
    case 'B': return push_text(Kind::kBytes, take(number(4))), true;
    case 0x8e: return push_text(Kind::kBytes, take(number(8))), true;
    default: return false;
  }
}

bool Machine::step_container(unsigned char opcode) {
  switch (opcode) {
    case '(':
      if (marks_.size() > kHeldBytesMax / 64) refuse("nests deeper than a state dict does");
      return marks_.push_back(static_cast<std::uint32_t>(stack_.size())), true;
    case '1': {
      const std::size_t begin = pop_mark();
      return stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end()), true;
    }
    case '}': return push_chain(Kind::kDict), true;
    case ']': return push_chain(Kind::kList), true;
    case ')': return push_tuple(0), true;
    case 0x85: return push_tuple(1), true;
    case 0x86: return push_tuple(2), true;
    case 0x87: return push_tuple(3), true;
    case 't': {
      const std::size_t begin = pop_mark();
      return push_tuple(stack_.size() - begin), true;
    }
    case 'a': {
      const Value value = pop();
      return append(top({Kind::kList}, "a list"), {}, value), true;
    }
    case 's': {
      const Value value = pop();
      const Value key = pop();
      return append(top({Kind::kDict}, "a dict"), key, value), true;
    }
    case 'e': return append_from(pop_mark(), false), true;
    case 'u': return append_from(pop_mark(), true), true;
    default: return false;
  }
}

bool Machine::step_memo(unsigned char opcode) {
  switch (opcode) {
    case 'q': return put(number(1)), true;
    case 'r': return put(number(4)), true;
    case 0x94: return put(memo_.size()), true;
    case 'h': return get(number(1)), true;
    case 'j': return get(number(4)), true;
    default: return false;
  }
}

bool Machine::step_object(unsigned char opcode) {
  switch (opcode) {
    case 'c':
    case 'i': {  // 'i' makes an instance too, of what is refused anyway
      const std::string_view module = line();
      const std::string_view name = line();
      if (opcode == 'i') refuse_name(module, name);
      return push_name(module, name), true;
    }
    case 0x93: {
      const Value name = pop();
      const Value module = pop();
      if (name.kind != Kind::kText || module.kind != Kind::kText) refuse("a Python name that is not text");
      return push_name(text(module), text(name)), true;
    }
    case 'Q': return load_storage(), true;
    case 'R': return reduce(), true;
    case 'b': return build(), true;
    default: return false;
  }
}

void Machine::push_name(std::string_view module, std::string_view name) {
  for (const Known& known : kKnown) {
    if (module == known.module && name == known.name) return push({Kind::kName, known.meaning});
  }
  if (module == "torch") {
    for (std::size_t i = 0; i < std::size(kTypes); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      if (*kTypes[i].storage != '\0' && name == kTypes[i].storage) return push({Kind::kName, kFirstStorage + at});
      if (name == kTypes[i].dtype) return push({Kind::kName, kFirstDtype + at});
    }
  }
  refuse_name(module, name);
}

Value Machine::argument(Value tuple, std::size_t at) const { return items_[spans_[index(tuple)].begin + at]; }

/// ('storage', its type, its record, the device it was on, elements).
void Machine::load_storage() {
  const Value id = pop();
  if (id.kind != Kind::kTuple || size(id) < 5 || size(id) > 6) refuse("a storage that is not described by 5 values");
  const Value word = argument(id, 0), name = argument(id, 1), key = argument(id, 2), count = argument(id, 4);
  if (word.kind != Kind::kText || text(word) != "storage") refuse("a reference to something that is no storage");
  const bool named = name.kind == Kind::kName;
  const ElementType* type = named && name.number == kUntypedStorage ? &kUntyped
                            : named                                 ? type_from(name.number, kFirstStorage)
                                                                    : nullptr;
  if (type == nullptr) refuse("a storage of an unknown type");
  if (key.kind != Kind::kText) refuse("a storage whose key is not text");
  if (count.kind != Kind::kInt || count.number < 0) refuse("a storage whose length is not a count");
  if (size(id) == 6 && argument(id, 5).kind != Kind::kNone)
    refuse("a view of a storage, as PyTorch before 0.4 wrote it");
  charge(sizeof(Storage));
  storages_.push_back({text(key), type, count.number});
  push({Kind::kStorage, static_cast<std::int64_t>(storages_.size()) - 1});
}

void Machine::reduce() {
  const Value arguments = pop();
  const Value called = pop();
  if (arguments.kind != Kind::kTuple || called.kind != Kind::kName) refuse("calls something that has no name");
  const std::size_t count = size(arguments);
  switch (called.number) {
    case kOrderedDict:
      if (count == 0) return push_chain(Kind::kDict);
      break;
    case kSize:
      if (count == 1 && argument(arguments, 0).kind == Kind::kTuple) return push(argument(arguments, 0));
      break;
    case kRebuildTensor:
      if (count == 6 || count == 7) return push(rebuild_tensor(arguments, false));
      break;
    case kRebuildTypedTensor:
      if (count == 7 || count == 8) return push(rebuild_tensor(arguments, true));
      break;
    case kRebuildParameter:
      if (count == 3 && argument(arguments, 0).kind == Kind::kTensor) return push(argument(arguments, 0));
      break;
    default: break;
  }
  refuse(python_name(called.number) + " with arguments that a state dict does not give it");
}

/// An OrderedDict's attributes: `_metadata`, the versions of modules.
void Machine::build() {
  pop();
  top({Kind::kDict}, "a dict");
}

std::vector<std::int64_t> Machine::sizes(Value tuple, const char* what) const {
  if (tuple.kind != Kind::kTuple || size(tuple) > kAxesMax) {
    refuse(std::string("a tensor whose ") + what + " is not a tuple of at most " + std::to_string(kAxesMax));
  }
  std::vector<std::int64_t> values;
  values.reserve(size(tuple));
  each(tuple, [&](Value, Value value) {
    if (value.kind != Kind::kInt || value.number < 0) {
      refuse(std::string("a tensor whose ") + what + " holds what is not a count");
    }
    values.push_back(value.number);
  });
  return values;
}

/// (storage, offset, shape, strides, requires_grad, hooks[, dtype][, metadata])
Value Machine::rebuild_tensor(Value arguments, bool typed) {
  const Value storage = argument(arguments, 0), offset = argument(arguments, 1);
  if (storage.kind != Kind::kStorage) refuse("a tensor without a storage");
  if (offset.kind != Kind::kInt || offset.number < 0) refuse("a tensor whose offset is not a count");
  const Storage& in = storages_[index(storage)];
  const ElementType* type = in.type;
  if (typed) {
    const Value dtype = argument(arguments, 6);
    type = dtype.kind == Kind::kName ? type_from(dtype.number, kFirstDtype) : nullptr;
    if (type == nullptr) refuse("a tensor of an unknown type");
  }
  Tensor tensor{&in, type, offset.number, sizes(argument(arguments, 2), "shape"),
                sizes(argument(arguments, 3), "strides")};
  if (tensor.shape.size() != tensor.strides.size()) refuse("a tensor with other than one stride an axis");
  charge(sizeof(Tensor) + 2 * tensor.shape.size() * sizeof(std::int64_t) + 32);  // 32: of two allocations
  tensors_.push_back(std::move(tensor));
  return {Kind::kTensor, static_cast<std::int64_t>(tensors_.size()) - 1};
}

}  // namespace runner::artifact::pickle
