#pragma once

#include <memory>
#include <string>
#include <vector>

namespace runner::chart {

/// A page that is written from the top to the bottom, in one of two languages. All text is taken as it is: whatever a
/// name holds, it stays text.
class Document {
 public:
  virtual ~Document() = default;
  virtual void heading(int level, const std::string& text) = 0;  ///< 1 to 3
  virtual void paragraph(const std::string& text) = 0;
  virtual void list(const std::vector<std::string>& items) = 0;
  /// The first row is the titles.
  virtual void table(const std::vector<std::vector<std::string>>& rows) = 0;
  virtual void picture(const std::string& svg, const std::string& said) = 0;
  /// The bytes of a PNG file.
  virtual void picture_file(const std::string& png, const std::string& said) = 0;
  /// Text whose lines stay; folded away where the language can do that.
  virtual void verbatim(const std::string& title, const std::string& text) = 0;
  virtual std::string text() const = 0;
};

/// One file that needs no other: style and pictures are in it, and nothing is fetched.
std::unique_ptr<Document> html_document(const std::string& title);
/// Markdown with tables (GitHub's); pictures are data URIs.
std::unique_ptr<Document> markdown_document(const std::string& title);

}  // namespace runner::chart
