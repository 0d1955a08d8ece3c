#include "runner/cli/parser/command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdint>
#include <optional>

namespace runner::cli {

Option Option::required() { return Option(option_->required()); }
Option Option::type_name(const std::string& name) { return Option(option_->type_name(name)); }
Option Option::group(const std::string& name) { return Option(option_->group(name)); }
Option Option::delimiter(char separator) { return Option(option_->delimiter(separator)); }
Option Option::allow_extra_args(bool allow) { return Option(option_->allow_extra_args(allow)); }
Option Option::expected(int least, int most) { return Option(option_->expected(least, most)); }
Option Option::take_last() { return Option(option_->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }
Option Option::positive() { return Option(option_->check(CLI::PositiveNumber)); }
std::size_t Option::count() const { return option_->count(); }
std::string Option::name() const { return option_->get_name(); }
std::vector<std::string> Option::long_names() const { return option_->get_lnames(); }
std::string Option::group_name() const { return option_->get_group(); }
std::vector<std::string> Option::values() const { return option_->results(); }

Option Option::check(const std::function<std::string(const std::string&)>& problem, const std::string& description) {
  return Option(option_->check(problem, description));
}

Option Option::transform(const std::function<std::string(const std::string&)>& change) {
  return Option(option_->transform(change));
}

template <typename Number>
Option Option::in_range(Number least, Number most) {
  return Option(option_->check(CLI::Range(least, most)));
}

template Option Option::in_range(int, int);
template Option Option::in_range(std::int64_t, std::int64_t);
template Option Option::in_range(double, double);

Command Command::add_subcommand(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}

template <typename Value>
Option Command::add_option(const std::string& names, Value& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::int64_t>&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::uint64_t>&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);

Option Command::add_option_function(const std::string& names, const std::function<void(const std::string&)>& read,
                                    const std::string& help) {
  return Option(app_->add_option_function<std::string>(names, read, help));
}

Option Command::add_list_function(const std::string& names,
                                  const std::function<void(const std::vector<std::string>&)>& read,
                                  const std::string& help) {
  return Option(app_->add_option_function<std::vector<std::string>>(names, read, help));
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}

Option Command::add_flag_callback(const std::string& names, const std::function<void()>& read,
                                  const std::string& help) {
  return Option(app_->add_flag_callback(names, read, help));
}

Command Command::footer(const std::string& text) {
  app_->footer(text);
  return *this;
}

Command Command::group(const std::string& name) {
  app_->group(name);
  return *this;
}

Command Command::fallthrough() {
  app_->fallthrough();
  return *this;
}

Command Command::callback(const std::function<void()>& function) {
  app_->callback(function);
  return *this;
}

std::vector<Option> Command::parse_order() const {
  std::vector<Option> options;
  for (CLI::Option* option : app_->parse_order()) options.emplace_back(option);
  return options;
}

}  // namespace runner::cli
