#include "runner/chart/document.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string_view>

#include "runner/chart/chart.h"
#include "runner/core/picture/base64.h"
#include "runner/core/text/utf8.h"

namespace runner::chart {
namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.5 sans-serif; color: #222; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1, h2, h3 { line-height: 1.2; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid #ddd; padding: 4px 10px; text-align: left; max-width: 30em; overflow-wrap: anywhere; }
th { background: #f4f4f4; }
svg, img { max-width: 100%; height: auto; }
pre { background: #f7f7f7; padding: 1em; overflow-x: auto; font-size: 13px; }
p, li { overflow-wrap: anywhere; }
)";

/// Names from right to left turn nothing round them round.
std::string isolated(const std::string& text) { return "<bdi>" + escape_html(text) + "</bdi>"; }

class Html final : public Document {
 public:
  explicit Html(const std::string& title) : title_(title) {}

  void heading(int level, const std::string& text) override {
    const std::string tag = "h" + std::to_string(level);
    body_ += "<" + tag + ">" + isolated(text) + "</" + tag + ">\n";
  }
  void paragraph(const std::string& text) override { body_ += "<p>" + isolated(text) + "</p>\n"; }
  void list(const std::vector<std::string>& items) override {
    body_ += "<ul>\n";
    for (const std::string& item : items) body_ += "<li>" + isolated(item) + "</li>\n";
    body_ += "</ul>\n";
  }
  void table(const std::vector<std::vector<std::string>>& rows) override {
    body_ += "<div class=\"wide\"><table>\n";
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string tag = i == 0 ? "th" : "td";
      body_ += "<tr>";
      for (const std::string& cell : rows[i]) body_ += "<" + tag + ">" + isolated(cell) + "</" + tag + ">";
      body_ += "</tr>\n";
    }
    body_ += "</table></div>\n";
  }
  void picture(const std::string& svg, const std::string& alt_text) override {
    body_ += "<figure role=\"img\" aria-label=\"" + escape_html(alt_text) + "\">\n" + svg + "</figure>\n";
  }
  void picture_file(const std::string& png, const std::string& alt_text) override {
    body_ += "<figure><img alt=\"" + escape_html(alt_text) + "\" src=\"data:image/png;base64," + core::base64(png) +
             "\"><figcaption>" + isolated(alt_text) + "</figcaption></figure>\n";
  }
  void verbatim(const std::string& title, const std::string& text) override {
    body_ += "<details><summary>" + isolated(title) + "</summary>\n<pre>";
    std::istringstream lines(core::printable(text));
    for (std::string line; std::getline(lines, line);) body_ += escape_html(line) + "\n";
    body_ += "</pre></details>\n";
  }
  std::string text() const override {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
           escape_html(title_) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n" + body_ +
           "</body>\n</html>\n";
  }

 private:
  std::string title_, body_;
};

/// Plain text between Markdown's signs.
std::string escape_markdown(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (std::string_view("\\`*_[]|#~$!").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return escape_html(safe);  // afterwards: the # of an entity is no heading
}

class Markdown final : public Document {
 public:
  void heading(int level, const std::string& text) override {
    body_ += std::string(static_cast<std::size_t>(level), '#') + " " + escape_markdown(text) + "\n\n";
  }
  void paragraph(const std::string& text) override { body_ += escape_markdown(text) + "\n\n"; }
  void list(const std::vector<std::string>& items) override {
    for (const std::string& item : items) body_ += "- " + escape_markdown(item) + "\n";
    body_ += "\n";
  }
  void table(const std::vector<std::vector<std::string>>& rows) override {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      body_ += "|";
      for (const std::string& cell : rows[i]) body_ += " " + escape_markdown(cell) + " |";
      body_ += "\n";
      if (i > 0) continue;
      body_ += "|";
      for (std::size_t k = 0; k < rows[i].size(); ++k) body_ += " --- |";
      body_ += "\n";
    }
    body_ += "\n";
  }
  void picture(const std::string& svg, const std::string& alt_text) override {
    body_ += "![" + escape_markdown(alt_text) + "](data:image/svg+xml;base64," + core::base64(svg) + ")\n\n";
  }
  void picture_file(const std::string& png, const std::string& alt_text) override {
    body_ += "![" + escape_markdown(alt_text) + "](data:image/png;base64," + core::base64(png) + ")\n\n";
  }
  void verbatim(const std::string& title, const std::string& text) override {
    paragraph(title);
    std::size_t begin = 0;
    const std::string safe = core::printable(text);
    while (begin < safe.size()) {  // indented: no sign in the text can end it
      const std::size_t end = std::min(safe.find('\n', begin), safe.size());
      body_ += "    " + safe.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    body_ += "\n";
  }
  std::string text() const override { return body_; }

 private:
  std::string body_;
};

}  // namespace

std::unique_ptr<Document> html_document(const std::string& title) {
  auto document = std::make_unique<Html>(title);
  document->heading(1, title);
  return document;
}

std::unique_ptr<Document> markdown_document(const std::string& title) {
  auto document = std::make_unique<Markdown>();
  document->heading(1, title);
  return document;
}

}  // namespace runner::chart
