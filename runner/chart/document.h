#pragma once

#include <memory>
#include <string>
#include <vector>

namespace runner::chart {

/// A page in HTML or Markdown, written from top to bottom. All text is escaped.
class Document {
 public:
  virtual ~Document() = default;
  virtual void heading(int level, const std::string& text) = 0;  ///< 1 to 3
  virtual void paragraph(const std::string& text) = 0;
  virtual void list(const std::vector<std::string>& items) = 0;
  /// The first row has the titles.
  virtual void table(const std::vector<std::vector<std::string>>& rows) = 0;
  virtual void picture(const std::string& svg, const std::string& alt_text) = 0;
  /// The bytes of a PNG file.
  virtual void picture_file(const std::string& png, const std::string& alt_text) = 0;
  /// Preformatted text; collapsed in HTML.
  virtual void verbatim(const std::string& title, const std::string& text) = 0;
  virtual std::string text() const = 0;
};

/// A self-contained file with style and pictures, without external references.
std::unique_ptr<Document> html_document(const std::string& title);
/// GitHub's Markdown; pictures are data URIs.
std::unique_ptr<Document> markdown_document(const std::string& title);

}  // namespace runner::chart
