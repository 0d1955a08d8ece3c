#include "runner/recipe/compose.h"

#include <cstdlib>
#include <set>

#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/document.h"
#include "runner/recipe/interpolate.h"
#include "runner/recipe/merge.h"
#include "runner/recipe/override.h"
#include "runner/recipe/renamed_keys.h"

namespace runner::recipe {
namespace {

using core::Location;
using core::Node;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return path.substr(0, slash + 1);
}

std::string relative_to(const std::string& file, const std::string& named) {
  if (!named.empty() && named[0] == '/') return named;
  return folder_of(file) + named;
}

// A canonical name for each file.
std::string identity_of(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  const std::string identity = real ? real : path;
  std::free(real);
  return identity;
}

void stamp(Node& node, const std::vector<core::HistoryStep>& steps) {
  node.add_history(steps);
  for (Node& item : node.items()) stamp(item, steps);
  for (auto& entry : node.entries()) stamp(entry.value, steps);
}

// `${recipe_dir}` becomes `replacement`, which is text of a recipe. `$${` stays: it is a literal.
void replace_recipe_dir(Node& node, const std::string& replacement) {
  static constexpr std::string_view kReference = "${recipe_dir}";
  if (node.is_string() && node.as_string().find(kReference) != std::string::npos) {
    const std::string text = node.as_string();
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view rest = std::string_view(text).substr(at);
      const bool is_reference = rest.starts_with(kReference);
      const std::size_t length = is_reference ? kReference.size() : rest.starts_with("$${") ? 3 : 1;
      out += is_reference ? std::string_view(replacement) : rest.substr(0, length);
      at += length;
    }
    Node placed = Node::string(std::move(out));
    placed.set_location(node.location());
    placed.set_history(node.history());
    node = std::move(placed);
  }
  for (Node& item : node.items()) replace_recipe_dir(item, replacement);
  for (auto& entry : node.entries()) replace_recipe_dir(entry.value, replacement);
}

// Text of a recipe that stands for `path` itself.
std::string escaped(const std::string& path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path.compare(i, 2, "${") == 0) out += '$';
    out += path[i];
  }
  return out;
}

Recording recording_of(const Node& recipe) {
  const auto size = [&recipe](const char* path) -> std::optional<std::int64_t> {
    const Node* value = recipe.at_path(path);
    if (value == nullptr || !value->is_integer()) return std::nullopt;
    return value->as_integer();
  };
  return {size("eval.counted_batch_size"), size("weight_averaging.bn_batch_size")};
}

class Composer {
 public:
  Composer(const ComposeOptions& options, core::Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {}

  std::optional<Composed> run(std::shared_ptr<const core::Source> source) {
    auto composed = run_open(std::move(source));
    if (composed) interpolate(composed->root, composed->recipe_dir, options_.limits, diagnostics_);
    return composed;
  }

  std::optional<Composed> run_open(std::shared_ptr<const core::Source> source) {
    auto root = with_bases(source, {});
    if (!root) return std::nullopt;
    if (!options_.below.empty()) lay_below(*root, options_.below);
    for (const Override& change : options_.overrides) apply(*root, change);
    rename_keys(*root, &diagnostics_);
    // Without an extended file, its keys would be reported as missing.
    if (broken_base_) return std::nullopt;
    return Composed{std::move(*root), std::move(sources_), without_slash(folder_of(source->name)), recording_,
                    options_.use};
  }

  std::shared_ptr<const core::Source> open(const std::string& path, const Location& named_at) {
    if (!has_recipe_ending(path)) {
      diagnostics_.error(named_at,
                         "a recipe is a .yaml, .yml, .json or .jsonnet file, got " + core::escape_for_terminal(path));
      return nullptr;
    }
    auto text = core::read_file(path, options_.limits.file_bytes_max);
    if (!text) {
      diagnostics_.error(named_at, text.failure().message, similar_file(path));
      return nullptr;
    }
    return std::make_shared<const core::Source>(core::Source{path, std::move(text).value(), core::Source::Kind::kFile});
  }

 private:
  struct Link {
    std::string path;
    std::string identity;
  };

  // A file in the folder with a similar name.
  static core::Hint similar_file(const std::string& path) {
    const std::string folder = folder_of(path);
    const auto stem_of = [](const std::string& name) { return name.substr(0, name.rfind('.')); };
    const std::string wanted = path.substr(folder.size());
    std::vector<std::string> names, stems;
    for (const std::string& file : core::glob(folder + "*.{yaml,yml,json,jsonnet,libsonnet}")) {
      names.push_back(file.substr(folder.size()));
      stems.push_back(stem_of(names.back()));
      if (names.back() == wanted) return {};  // it is there, so something else is wrong
    }
    // The endings are all alike: only what stands before them is compared.
    for (const std::string& stem : {wanted, core::closest(stem_of(wanted), stems)}) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (stems[i] == stem) return core::did_you_mean(folder + names[i]);
      }
    }
    return {};
  }

  static std::string without_slash(const std::string& folder) {
    if (folder.empty()) return ".";
    return folder.size() == 1 ? folder : folder.substr(0, folder.size() - 1);
  }

  // What `${recipe_dir}` is in a file beside the recipe: its own folder. Below the recipe's folder it is said by way of
  // that, so that a recorded recipe finds it again when it was moved with what it extends.
  std::string recipe_dir_in(const std::string& path) const {
    const std::string folder = folder_of(path);
    const std::string top = folder_of(sources_.front()->name);
    const bool is_within = folder.starts_with(top) && (!top.empty() || folder.empty() || folder[0] != '/');
    if (!is_within) return escaped(without_slash(folder));
    if (folder == top) return "${recipe_dir}";
    return "${recipe_dir}/" + escaped(without_slash(folder.substr(top.size())));
  }

  // The file with everything it extends below it.
  std::optional<Node> with_bases(std::shared_ptr<const core::Source> source, std::vector<Link> chain) {
    sources_.push_back(source);
    chain.push_back({source->name, identity_of(source->name)});
    auto own = read_document(source, options_, sources_, diagnostics_);
    if (!own) return std::nullopt;
    if (source != sources_.front()) replace_recipe_dir(*own, recipe_dir_in(source->name));
    // Before it is merged: the base may have the old word and the recipe the new one. A recorded recipe cannot be
    // edited.
    const bool is_recorded = source->name.ends_with("resolved.json");
    rename_keys(*own, is_recorded ? nullptr : &diagnostics_);
    if (is_recorded && source == sources_.front()) recording_ = recording_of(*own);
    if (chain.size() > 1) {
      std::vector<core::HistoryStep> steps;
      for (std::size_t i = 1; i < chain.size(); ++i) steps.push_back("extends " + chain[i].path);
      stamp(*own, steps);
    }
    const Node* extends = own->find("extends");
    if (!extends) return own;
    Node base = Node::mapping(own->location());
    bool good = true;
    for (const Node& name : names_of(*extends)) good = lay_base(base, name, chain) && good;
    own->erase("extends");
    merge_recipes(base, std::move(*own));
    if (!good) broken_base_ = true;
    return base;
  }

  std::vector<Node> names_of(const Node& extends) {
    std::vector<Node> names = extends.is_sequence() ? extends.items() : std::vector<Node>{extends};
    std::erase_if(names, [&](const Node& name) {
      const bool is_path =
          name.is_string() && !name.as_string().empty() && name.as_string().find("${") == std::string::npos;
      if (is_path) return false;
      if (name.is_string() && !name.as_string().empty()) {
        diagnostics_.error(name.location(), "extends is read before ${...} is replaced",
                           "write the full path, relative to this file");
      } else {
        diagnostics_.error(name.location(),
                           "extends must be a path or a list of paths, got " + (name.is_string()    ? core::quote("")
                                                                                : name.is_mapping() ? "a mapping"
                                                                                : name.is_null()    ? "nothing"
                                                                                                 : name.scalar_text()),
                           "paths are relative to the file that names them");
      }
      broken_base_ = true;
      return true;
    });
    return names;
  }

  bool lay_base(Node& base, const Node& name, const std::vector<Link>& chain) {
    const std::string path = relative_to(chain.back().path, name.as_string());
    const std::string identity = identity_of(path);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (chain[i].identity != identity) continue;
      std::string circle;
      for (std::size_t j = i; j < chain.size(); ++j) circle += chain[j].path + " -> ";
      diagnostics_.error(name.location(), "extends has a cycle: " + circle + chain[i].path,
                         "one of these files must not extend the next");
      return false;
    }
    if (static_cast<int>(chain.size()) > options_.limits.include_depth_max) {
      diagnostics_.error(name.location(),
                         "extends is more than " + std::to_string(options_.limits.include_depth_max) + " files deep");
      return false;
    }
    if (++includes_ > options_.limits.includes_max) {
      if (includes_ == options_.limits.includes_max + 1) {
        diagnostics_.error(name.location(),
                           "a recipe extends at most " + std::to_string(options_.limits.includes_max) + " files");
      }
      return false;
    }
    const auto source = open(path, name.location());
    if (!source) return false;
    auto node = with_bases(source, chain);
    if (!node) return false;
    merge_recipes(base, std::move(*node));
    return true;
  }

  void apply(Node& root, const Override& change) {
    if (change.kind == Override::Kind::kSetFile) return lay_file(root, change.text);
    const bool is_default = change.kind == Override::Kind::kDefault;
    if (is_default) {
      const Node* written = root.at_path(change.text.substr(0, change.text.find('=')));
      const bool has_value = written != nullptr && !written->is_null();
      if (has_value && !(written->is_string() && written->as_string() == "auto")) return;
    }
    const std::string shown_as = change.shown_as.empty() ? "--set " + change.text : change.shown_as;
    apply_set(root, change.text, shown_as, options_.limits, diagnostics_);
  }

  void lay_below(Node& root, const std::string& path) {
    const auto source = open(path, Location{});
    auto below = source ? with_bases(source, {}) : std::nullopt;
    if (!below) broken_base_ = true;
    if (!below) return;
    stamp(*below, {path});
    merge_recipes(*below, std::move(root));
    root = std::move(*below);
  }

  void lay_file(Node& root, const std::string& path) {
    const auto flag =
        std::make_shared<const core::Source>(core::Source{"--set-file " + path, "", core::Source::Kind::kFlag});
    const auto source = open(path, Location{flag, 0, 0, 1});
    auto node = source ? with_bases(source, {}) : std::nullopt;
    if (!node) broken_base_ = true;
    if (!node) return;
    stamp(*node, {{"--set-file " + path, core::Origin::kFlagFile}});
    merge_recipes(root, std::move(*node));
  }

  const ComposeOptions& options_;
  core::Diagnostics& diagnostics_;
  std::vector<std::shared_ptr<const core::Source>> sources_;
  std::optional<Recording> recording_;
  int includes_ = 0;
  bool broken_base_ = false;
};

}  // namespace

std::optional<Composed> compose(const std::string& path, const ComposeOptions& options,
                                core::Diagnostics& diagnostics) {
  Composer composer(options, diagnostics);
  const auto source = composer.open(path, Location{});
  return source ? composer.run(source) : std::nullopt;
}

std::optional<Composed> compose_uninterpolated(const std::string& path, const ComposeOptions& options,
                                               core::Diagnostics& diagnostics) {
  Composer composer(options, diagnostics);
  const auto source = composer.open(path, Location{});
  return source ? composer.run_open(source) : std::nullopt;
}

std::optional<Composed> compose_text(std::shared_ptr<const core::Source> source, const ComposeOptions& options,
                                     core::Diagnostics& diagnostics) {
  return Composer(options, diagnostics).run(std::move(source));
}

}  // namespace runner::recipe
