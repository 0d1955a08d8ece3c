#include "schemas/gen/cpp_names.h"
#include "schemas/gen/generator.h"

namespace schemas::gen {

using runner::registry::Fragment;
using runner::registry::Kind;

void write_make_table(const Kind& kind, const std::vector<Fragment>& fragments, Outputs& outputs) {
  std::string text = "// Written by schema_gen: every " + kind.name + " by its name.\n\n#include <string_view>\n\n";
  text += "#include \"" + kind.header + "\"\n";
  for (const Fragment& fragment : fragments)
    text += "#include \"generated/" + kind.name + "/" + fragment.name + ".h\"\n";
  text += "#include \"runner/registry/config_parse.h\"\n\nnamespace " + kind.namespace_ + " {\n";
  const std::string product = "std::shared_ptr<" + kind.product + ">";
  if (!fragments.empty()) {
    text += "namespace {\n\nusing runner::core::Node;\n\nstruct Row {\n  std::string_view name;\n  " + product +
            " (*make)(const Node&, const Inputs&);\n};\n\nconstexpr Row kRows[] = {\n";
    for (const Fragment& fragment : fragments)
      text += "    {" + cpp_string(fragment.name) + ", [](const Node& block, const Inputs& inputs) -> " + product +
              " { return " + fragment.name + "::make(" + fragment.name + "::parse_config(block), inputs); }},\n";
    text += "};\n\n}  // namespace\n";
  }
  text += "\n" + product + " build(const runner::core::Node& block, [[maybe_unused]] const Inputs& inputs) {\n";
  text += "  const std::string& type = runner::registry::type_of(block);\n";
  if (!fragments.empty())
    text += "  for (const Row& row : kRows)\n    if (row.name == type) return row.make(block, inputs);\n";
  text += "  runner::registry::no_such_component(" + cpp_string(kind.name) + ", type);\n}\n\n}  // namespace " +
          kind.namespace_ + "\n";
  outputs[kind.layer + "/make_" + kind.name + ".cpp"] = text;
}

void write_embedded(const Schemas& schemas, Outputs& outputs) {
  std::string text =
      "// Written by schema_gen: the fragments as they are in schemas/, parsed on demand.\n\n"
      "#include \"runner/registry/registry.h\"\n\nnamespace runner::registry {\n\n"
      "const Embedded& embedded_fragments() {\n  static const Embedded embedded = {\n      {\n";
  for (const auto& [kind, fragments] : schemas.fragments)
    for (const Fragment& fragment : fragments)
      text +=
          "{" + cpp_string(kind) + ", " + cpp_string(fragment.name) + ",\n" + cpp_raw_string(fragment.text) + "},\n";
  text += "      },\n" + cpp_raw_string(schemas.kinds_json) + ",\n" + cpp_raw_string(schemas.aliases_json) + ",\n" +
          cpp_raw_string(schemas.first_defaults_json) +
          ",\n  };\n  return embedded;\n}\n\n}  // namespace runner::registry\n";
  outputs["base/fragments.cpp"] = text;
}

}  // namespace schemas::gen
