#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace runner::artifact::pickle {

enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kBytes,
  kTuple,
  kList,
  kDict,
  kName,
  kStorage,
  kTensor
};

/// One value. Text, containers and tensors are numbers of what a Machine holds.
struct Value {
  Kind kind = Kind::kNone;
  std::int64_t number = 0;  ///< kBool, kInt: the value; kFloat: nothing; others: where the Machine has it
};

/// A type of elements: PyTorch's words for it, safetensors' word, bytes of an element.
struct ElementType {
  const char* storage;  ///< `FloatStorage`, "" where PyTorch has none
  const char* dtype;    ///< `float32`
  const char* word;     ///< `F32`
  std::int64_t bytes;
};

/// Where a tensor's elements are, by the name of the record that holds them.
struct Storage {
  std::string_view key;
  const ElementType* type;
  std::int64_t elements;
};

struct Tensor {
  const Storage* storage;
  const ElementType* type;                   ///< the storage's, except where that is untyped
  std::int64_t offset;                       ///< elements before the first
  std::vector<std::int64_t> shape, strides;  ///< strides in elements, none negative
};

/// Reads one pickle as data: numbers, text, containers, and tensors as a description of themselves. It calls nothing,
/// and of Python's names it knows those that a state dict has. What it holds is bounded, whatever the pickle says.
///
/// data    the pickle and, perhaps, more after it; texts are views into it
/// where   for messages: the file, or the file and the record
/// Errors  RunError that names `where` and the byte: damaged, a name or an operation that is not data, too large
class Machine {
 public:
  Machine(std::string_view data, std::string where);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Value run();
  /// Bytes of `data` that the pickle took.
  std::size_t end() const { return at_; }

  std::string_view text(Value value) const { return texts_[index(value)]; }
  const Tensor& tensor(Value value) const { return tensors_[index(value)]; }
  const std::deque<Storage>& storages() const { return storages_; }
  /// Visits (key, value) of a dict, (None, value) of a list or tuple, in order.
  template <typename Visit>
  void each(Value container, Visit&& visit) const {
    if (container.kind == Kind::kTuple) {
      const Span& span = spans_[index(container)];
      for (std::uint32_t i = 0; i < span.count; ++i) visit(Value{}, items_[span.begin + i]);
      return;
    }
    for (std::uint32_t i = chains_[index(container)].first; i != kNowhere; i = links_[i].next) {
      visit(links_[i].key, links_[i].value);
    }
  }
  std::size_t size(Value container) const;

 private:
  // Everything is kept in a few long rows, and what refers to it does so by number: nothing to follow into the depth,
  // neither while reading nor when it is released.
  struct Span {
    std::uint32_t begin, count;
  };
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;
  struct Link {
    Value key, value;
    std::uint32_t next = kNowhere;
  };
  struct Chain {
    std::uint32_t first = kNowhere, last = kNowhere, count = 0;
  };

  static std::size_t index(Value value) { return static_cast<std::size_t>(value.number); }

  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void refuse_name(std::string_view module, std::string_view name) const;

  std::uint64_t number(int bytes);
  std::string_view take(std::uint64_t bytes);
  std::string_view line();
  void charge(std::size_t bytes);

  void push(Value value);
  Value pop();
  Value top(std::initializer_list<Kind> kinds, const char* what) const;
  std::size_t pop_mark();
  void push_text(Kind kind, std::string_view text);
  void push_tuple(std::size_t count);
  void push_integer(std::uint64_t bytes);
  void push_chain(Kind kind);
  void append(Value chain, Value key, Value value);
  void append_from(std::size_t begin, bool pairs);
  void put(std::uint64_t slot);
  void get(std::uint64_t slot);

  bool step(unsigned char opcode);
  bool step_text(unsigned char opcode);
  bool step_container(unsigned char opcode);
  bool step_memo(unsigned char opcode);
  bool step_object(unsigned char opcode);

  void push_name(std::string_view module, std::string_view name);
  void load_storage();
  void reduce();
  void build();
  Value rebuild_tensor(Value arguments, bool typed);
  Value argument(Value tuple, std::size_t at) const;
  std::vector<std::int64_t> sizes(Value tuple, const char* what) const;

  std::string_view data_;
  const std::string where_;
  std::size_t at_ = 0, began_ = 0;
  std::size_t charged_ = 0;
  std::deque<Value> stack_;
  std::deque<std::uint32_t> marks_;
  std::deque<Value> memo_;
  std::deque<std::string_view> texts_;
  std::deque<Value> items_;
  std::deque<Span> spans_;
  std::deque<Link> links_;
  std::deque<Chain> chains_;
  std::deque<Storage> storages_;
  std::deque<Tensor> tensors_;
};

}  // namespace runner::artifact::pickle
