#include "runner/chart/document.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/chart/chart.h"

using runner::chart::chart_svg;
using runner::chart::Document;
using runner::chart::html_document;
using runner::chart::markdown_document;

TEST_CASE("a page and a picture hold names as text, whatever is in them", "[chart][document]") {
  const std::string name = "<script>alert('1')</script> & \"x\" | `y` \x1b[31m \u202e \u05d0\u05d1";
  const std::string svg = chart_svg({{name, {{1, 2}, {2, 3}}}}, {.title = name});
  auto html = html_document(name);
  auto markdown = markdown_document(name);
  for (Document* document : {html.get(), markdown.get()}) {
    document->paragraph(name);
    document->table({{name, "b"}, {name, "2"}});
    document->list({name});
    document->verbatim(name, name + "\n" + name);
    document->picture(svg, name);
  }
  for (const std::string& text : {svg, html->text(), markdown->text()}) {
    CAPTURE(text);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("\u202e") == std::string::npos);
    CHECK(text.find("\u05d0\u05d1") != std::string::npos);
  }
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(html->text().find("<script") == std::string::npos);
  CHECK(markdown->text().find("| &lt;script&gt;alert(&#39;1&#39;)") != std::string::npos);
  CHECK(markdown->text().find("\\| \\`y\\`") != std::string::npos);
}
