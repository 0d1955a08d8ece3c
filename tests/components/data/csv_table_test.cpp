#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "tests/components/data/building.h"
#include "tests/support/folder.h"

using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

TEST_CASE("a table becomes numbers and one-hot categories", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("t.csv", "size,colour,price\n1,red,10\n2,blue,20\n3.5,red,-3e1\n");
  const auto data = good_data("{type: csv_table, path: t.csv, target: price}");
  CHECK(data->describe() == "3 rows of t.csv, 3 inputs from 2 columns, target price");
  CHECK(fetched(*data, {0, 1, 2}, "input") == Values{1, 0, 1, 2, 1, 0, 3.5, 0, 1});
  CHECK(fetched(*data, {2, 0}, "target") == Values{-30, 10});

  const auto chosen = good_data("{type: csv_table, path: t.csv, features: [price, size], target: colour}");
  CHECK(chosen->describe() == "3 rows of t.csv, 2 inputs from 2 columns, 2 classes of colour");
  CHECK(fetched(*chosen, {0}, "input") == Values{10, 1});
  CHECK(fetched(*chosen, {0, 1, 2}, "target") == Values{1, 0, 1});

  const auto two = good_data("{type: csv_table, path: t.csv, target: [price, size]}");
  CHECK(two->describe() == "3 rows of t.csv, 2 inputs from 1 column, targets price, size");
  CHECK(fetched(*two, {1}, "target") == Values{20, 2});
}

TEST_CASE("two shares of a table have every row once, and the same ones each time", "[data][csv_table]") {
  const tests::Folder folder;
  std::string table = "x,y\n";
  Values all;
  for (int i = 0; i < 40; ++i) {
    table += std::to_string(i) + "," + std::to_string(i) + "\n";
    all.push_back(i);
  }
  folder.write("t.csv", table);
  const auto rows = [](const std::string& keys) {
    const auto data = good_data("{type: csv_table, path: t.csv, target: y, " + keys + "}");
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < data->size(); ++i) indices.push_back(i);
    return fetched(*data, indices, "target");
  };
  const Values train = rows("split: ':90%'"), held_out = rows("split: '90%:'");
  CHECK(train.size() == 36);
  CHECK(held_out == rows("split: '90%:'"));
  CHECK(held_out != Values{36, 37, 38, 39});  // a sample of a table that is sorted
  Values both = train;
  both.insert(both.end(), held_out.begin(), held_out.end());
  std::sort(both.begin(), both.end());
  CHECK(both == all);
  CHECK(rows("split: '90%:', split_by: order") == Values{36, 37, 38, 39});
  CHECK(good_data("{type: csv_table, path: t.csv, target: y, split: ':90%'}")->describe() ==
        "36 rows of t.csv (split :90%), 1 input from 1 column, target y");
  CHECK(build_data("{type: csv_table, path: t.csv, target: y, split: '0%:1%'}").messages ==
        "data.yaml:1:50: error: split \"0%:1%\" of 40 rows has no rows\n  hint: use a larger fraction\n");
}

TEST_CASE("a column of free text is warned of", "[data][csv_table]") {
  const tests::Folder folder;
  std::string table = "size,comment,price\n";
  for (int i = 0; i < 24; ++i) table += std::to_string(i) + ",remark " + std::to_string(i % 22) + ",1\n";
  folder.write("t.csv", table);
  const std::string recipe = "{type: csv_table, path: t.csv, target: price";
  CHECK(
      build_data(recipe + "}").messages ==
      "data.yaml:1:25: warning: t.csv: column \"comment\" looks like free text: its 22 different values in 24 rows are "
      "22 inputs\n  hint: set ignore: [comment], or types: {comment: category}\n");
  CHECK(build_data(recipe + ", types: {comment: category}}").messages.empty());
  CHECK(build_data(recipe + ", features: size}").messages.empty());
  CHECK(build_data("{type: csv_table, path: t.csv, target: comment}").messages.empty());
  for (int i = 0; i < 24; ++i) table += std::to_string(i) + ",remark " + std::to_string(i % 22) + ",1\n";
  folder.write("t.csv", table);
  CHECK(build_data(recipe + "}").messages.empty());  // each value has two rows to learn from
}

TEST_CASE("classes that are numbers are put in order by size", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("t.csv", "x,y\n1,10\n2,9\n3,100\n");
  const auto data = good_data("{type: csv_table, path: t.csv, target: y, task: classification}");
  CHECK(fetched(*data, {0, 1, 2}, "target") == Values{1, 0, 2});
}

TEST_CASE("a table is read in every form that CSV takes", "[data][csv_table]") {
  const tests::Folder folder;
  struct Case {
    const char* name;
    std::string content;
    const char* keys;
  };
  const Case cases[] = {
      {"LF", "a,b\n1,2\n3,4\n", ""},
      {"no line break at the end", "a,b\n1,2\n3,4", ""},
      {"CRLF", "a,b\r\n1,2\r\n3,4\r\n", ""},
      {"CR", "a,b\r1,2\r3,4\r", ""},
      {"byte-order mark",
       "\xEF\xBB\xBF"
       "a,b\n1,2\n3,4\n",
       ""},
      {"blank lines", "\na,b\n\n1,2\n\n3,4\n\n", ""},
      {"blanks around fields", "a , b\n 1, 2 \n3 ,4\n", ""},
      {"quoted numbers", "\"a\",\"b\"\n\"1\",\"2\"\n3,\"4\"\n", ""},
      {"signs and exponents", "a,b\n+1,20e-1\n3.,.4e1\n", ""},
      {"semicolons", "a;b\n1;2\n3;4\n", ", delimiter: ';'"},
      {"tabs", "a\tb\n1\t2\n3\t4\n", ", delimiter: \"\\t\""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      folder.write("t.csv", c.content);
      const auto data = good_data(std::string("{type: csv_table, path: t.csv, target: b") + c.keys + "}");
      CHECK(fetched(*data, {0, 1}, "input") == Values{1, 3});
      CHECK(fetched(*data, {0, 1}, "target") == Values{2, 4});
    }
  }
  folder.write("t.csv", "1,2\n3,4\n");
  const auto data = good_data("{type: csv_table, path: t.csv, header: false, target: '2'}");
  CHECK(fetched(*data, {0, 1}, "input") == Values{1, 3});
}

TEST_CASE("quoted fields hold delimiters, quotes and line breaks", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("t.csv", "name,x\n\"a,b\",1\n\"say \"\"hi\"\"\",2\n\"two\nlines\",3\n\"a,b\",4\n");
  const auto data = good_data("{type: csv_table, path: t.csv, target: name}");
  CHECK(data->signature().at(components::kTarget).num_classes == 3);
  CHECK(fetched(*data, {0, 1, 2, 3}, "target") == Values{0, 1, 2, 0});
}

TEST_CASE("normalisation uses the statistics of the training set", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("train.csv", "x,c,y\n1,7,0\n3,7,0\n5,7,0\n");
  folder.write("val.csv", "y,c,x\n1,8,3\n2,7,7\n");
  const auto train = good_data("{type: csv_table, path: train.csv, target: y, normalize: true}");
  const double deviation = std::sqrt(8.0 / 3.0);
  const Values got = fetched(*train, {0, 1, 2}, "input");
  const Values wanted{-2 / deviation, 0, 0, 0, 2 / deviation, 0};
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == Approx(wanted[i]).margin(1e-6));
  const auto val = good_data("{type: csv_table, path: val.csv, target: y, normalize: true}", {"val", train.get()});
  CHECK(fetched(*val, {0}, "input") == Values{0, 0});
  CHECK(fetched(*val, {1}, "input")[0] == Approx(4 / deviation));
}

TEST_CASE("missing values are refused, filled or dropped", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("t.csv", "x,c,y\n1,a,1\n,b,2\n3,NA,3\nnan,b,4\n5,a,5\n");
  const std::string recipe = "{type: csv_table, path: t.csv, target: y, missing: ";
  const auto filled = good_data(recipe + "mean}");
  CHECK(fetched(*filled, {0, 1, 2, 3}, "input") == Values{1, 1, 0, 3, 0, 1, 3, 0, 0, 3, 0, 1});
  const auto dropped = good_data(recipe + "drop}");
  CHECK(dropped->describe() == "2 rows of t.csv (3 dropped), 3 inputs from 2 columns, target y");
  CHECK(fetched(*dropped, {0, 1}, "target") == Values{1, 5});
  const std::string hint = "  hint: set missing: mean or missing: drop, or fix the row\n";
  CHECK(build_data(recipe + "error}").messages ==
        "data.yaml:1:25: error: t.csv:3: column \"x\" is empty\n" + hint +
            "data.yaml:1:25: error: t.csv:4: column \"c\" is \"NA\"\n" + hint +
            "data.yaml:1:25: error: t.csv:5: column \"x\" is \"nan\"\n" + hint);
  folder.write("t.csv", "x,y\n1,\n2,3\n");
  CHECK(build_data(recipe + "mean}").messages ==
        "data.yaml:1:25: error: t.csv:2: target \"y\" is empty\n"
        "  hint: a target is never imputed: set missing: drop, or fix the row\n");
}

TEST_CASE("what is wrong with a table names the file and the line", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("homes.csv", "rooms,area,price\n3,70,200\n");
  struct Case {
    const char* name;
    std::string content;
    std::string keys;
    std::string messages;
  };
  const std::string at = "data.yaml:1:25: error: ";
  const Case cases[] = {
      {"empty", "", "", at + "t.csv: the file is empty\n"},
      {"blank", "\n \n", "", at + "t.csv: the file has only blank lines\n"},
      {"only a header", "x,y\n", "", at + "t.csv: the file has a header and no row\n"},
      {"binary", std::string("x,y\n1,\0\n", 8), "",
       at + "t.csv:2: not a text file: it contains a NUL byte\n  hint: save the table as CSV in UTF-8\n"},
      {"a short row", "x,z,y\n1,2,3\n1,2\n", "",
       at + "t.csv:3: the row has 2 fields, the header has 3: column \"y\" has no value\n"
            "  hint: leave an empty field between two delimiters\n"},
      {"a long row", "x,y\n\n1,2,3\n", "",
       at + "t.csv:3: the row has 3 fields, the header has 2\n  hint: quote a field that contains the delimiter\n"},
      {"a row behind a line break in a field", "x,y\n\"a\nb\",1\n\"c\"\n", "",
       at + "t.csv:4: the row has 1 field, the header has 2: column \"y\" has no value\n"
            "  hint: leave an empty field between two delimiters\n"},
      {"an open quote", "x,y\n1,2\n\"3,4\n5,6\n", "",
       at + "t.csv:3: a quoted field that begins in this row is never closed\n  hint: add the closing quote\n"},
      {"a stray quote", "x,y\n1,2\n3\",4\n", "",
       at + "t.csv:3: a quote inside of a field\n"
            "  hint: quote the whole field and double the quotes inside: \"say \"\"hello\"\"\"\n"},
      {"a column twice", "x,x,y\n1,2,3\n", "",
       at + "t.csv:1: columns 1 and 2 are both called \"x\"\n  hint: give every column a unique name\n"},
      {"a word among numbers", "x,y\n1,2\n2,3\nabc,4\n", "",
       at + "t.csv:4: column \"x\" has \"abc\" among numbers\n  hint: fix the file, or set types: {x: category}\n"},
      {"infinity", "x,y\n1,2\ninf,3\n", "", at + "t.csv:3: column \"x\" must be a finite number, got \"inf\"\n"},
      {"too large for a float", "x,y\n1,2\n2,1e39\n", "",
       at + "t.csv:3: column \"y\" must be a finite number, got \"1e39\"\n"},
      {"NaN", "x,y\nNaN,2\n1,3\n", "",
       at + "t.csv:2: column \"x\" is \"NaN\"\n  hint: set missing: mean or missing: drop, or fix the row\n"},
      {"text in a number column", "x,y\na,2\nb,3\n", ", types: {x: number}",
       at + "t.csv:2: column \"x\" must be a number, got \"a\"\n  hint: fix the file, or set types: {x: category}\n" +
           at +
           "t.csv:3: column \"x\" must be a number, got \"b\"\n  hint: fix the file, or set types: {x: category}\n"},
      {"nothing in a column", "x,z,y\n,1,2\n,3,3\n", ", missing: mean",
       at + "t.csv: column \"x\" is missing in every row\n  hint: remove it from features\n"},
      {"nothing left", "x,y\n,2\n1,\n", ", missing: drop",
       at + "t.csv: every row has a missing value, so no rows are left\n"},
      {"one class", "x,y\n1,a\n2,a\n", "",
       at + "t.csv: target \"y\" is \"a\" in every row\n  hint: classification needs at least two classes\n"},
      {"the same mistake many times", "x,y\n1\n2\n3\n4\n5\n6\n7\n", "",
       at +
           "t.csv:2: the row has 1 field, the header has 2: column \"y\" has no value\n"
           "  hint: leave an empty field between two delimiters\n" +
           at + "t.csv: 6 more records are wrong: lines 3, 4, 5, 6, 7, 8\n"},
      {"many mistakes", "x,y\na,1\nb,1\nc,1\nd,1\ne,1\nf,2\nf,2\ng,1\nh,1\ni,1\nj,1\nk,1\n", ", types: {x: number}",
       [&] {
         std::string text;
         for (int i = 0; i < 9; ++i) {
           text += at + "t.csv:" + std::to_string(i < 6 ? i + 2 : i + 3) + ": column \"x\" must be a number, got \"" +
                   std::string(1, static_cast<char>('a' + i)) +
                   "\"\n  hint: fix the file, or set types: {x: category}\n";
         }
         return text + at + "t.csv: 3 more records are wrong: line 8, ...\n";
       }()},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      folder.write("t.csv", c.content);
      CHECK(build_data("{type: csv_table, path: t.csv, target: y" + c.keys + "}").messages == c.messages);
    }
  }
}

TEST_CASE("a missing column or file is reported with those that exist", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("homes.csv", "rooms,area,price\n3,70,200\n");
  folder.write("semi.csv", "rooms;area;price\n3;70;200\n");
  folder.write("kind.csv", "x,kind\n1,a\n2,b\n");
  folder.write("kinds.csv", "x,z,kind\n1,3,a\n2,3,b\n");
  struct Case {
    const char* name;
    std::string recipe;
    std::string messages;
  };
  const Case cases[] = {
      {"a misspelt target", "{type: csv_table, path: homes.csv, target: prise}",
       "data.yaml:1:44: error: homes.csv has no column \"prise\"\n  hint: did you mean \"price\"?\n"},
      {"an unknown target", "{type: csv_table, path: homes.csv, target: tax}",
       "data.yaml:1:44: error: homes.csv has no column \"tax\"\n  hint: its columns are \"rooms\", \"area\", "
       "\"price\"\n"},
      {"an unknown feature", "{type: csv_table, path: homes.csv, target: price, features: [rooms, aera]}",
       "data.yaml:1:69: error: homes.csv has no column \"aera\"\n  hint: did you mean \"area\"?\n"},
      {"an unknown type", "{type: csv_table, path: homes.csv, target: price, types: {room: number}}",
       "data.yaml:1:59: error: homes.csv has no column \"room\"\n  hint: did you mean \"rooms\"?\n"},
      {"the target as a feature", "{type: csv_table, path: homes.csv, target: price, features: [rooms, price]}",
       "data.yaml:1:69: error: feature \"price\" is the target, too\n"
       "  hint: a feature that equals the target makes training pointless\n"},
      {"a feature twice", "{type: csv_table, path: homes.csv, target: price, features: [rooms, rooms]}",
       "data.yaml:1:69: error: feature \"rooms\" is named twice\n"},
      {"another delimiter", "{type: csv_table, path: semi.csv, target: price}",
       "data.yaml:1:43: error: semi.csv has no column \"price\"\n"
       "  hint: its header is one column, \"rooms;area;price\": set delimiter: \";\"\n"},
      {"a misspelt file", "{type: csv_table, path: home.csv, target: price}",
       "data.yaml:1:25: error: home.csv: file not found\n  hint: did you mean \"homes.csv\"? a path is relative to the "
       "current folder, " +
           std::filesystem::current_path().string() + "; ${recipe_dir} is the folder of the recipe\n"},
      {"regression of a category", "{type: csv_table, path: kind.csv, target: kind, task: regression}",
       "data.yaml:1:55: error: task is regression, but target \"kind\" is a category column\n"
       "  hint: set task: classification, or name a number column\n"},
      {"two classes at once", "{type: csv_table, path: kinds.csv, target: [kind, x]}",
       "data.yaml:1:45: error: classification has one target, got 2\n"
       "  hint: name one column, or use several number columns with task: regression\n"},
      {"nothing but targets", "{type: csv_table, path: kind.csv, target: [kind, x]}",
       "data.yaml:1:44: error: kind.csv has no column besides the target\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(build_data(c.recipe).messages == c.messages); }
  }
}

TEST_CASE("a validation table is held to the training table", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("train.csv", "x,kind,y\n1,a,p\n2,b,q\n");
  const auto train = good_data("{type: csv_table, path: train.csv, target: y}");
  const auto messages = [&](const std::string& content, const std::string& keys = "target: y") {
    folder.write("val.csv", content);
    return build_data("{type: csv_table, path: val.csv, " + keys + "}", {"val", train.get()}).messages;
  };
  const std::string at = "data.yaml:1:25: error: ";
  CHECK(messages("more,y,kind,x\n0,q,a,7\n") == "");
  CHECK(messages("x,kind,y\n1,a,p\n1,a,r\n") ==
        at + "val.csv:3: column \"y\" has \"r\", which is not in the training set\n"
             "  hint: the training set has \"p\", \"q\"\n");
  CHECK(messages("x,kind,y\n1,c,p\n") ==
        at + "val.csv:2: column \"kind\" has \"c\", which is not in the training set\n"
             "  hint: the training set has \"a\", \"b\"; set unknown: zeros to take others "
             "as all zeros\n");
  CHECK(messages("x,kind,y\n1,c,p\n2,b,p\n3,d,p\n", "target: y, unknown: zeros") ==
        "data.yaml:1:25: warning: val.csv: 2 categories are not in the training set and all zeros (column \"kind\" has "
        "\"c\")\n");
  CHECK(messages("x,kind,y\n1,a,r\n", "target: y, unknown: zeros") ==
        at + "val.csv:2: column \"y\" has \"r\", which is not in the training set\n"
             "  hint: the training set has \"p\", \"q\"\n");
  CHECK(messages("x,kind,y\none,a,p\n") == at + "val.csv:2: column \"x\" must be a number, got \"one\"\n");
  CHECK(messages("x,y\n1,p\n") == at + "val.csv has no column \"kind\"\n  hint: its columns are \"x\", \"y\"\n");
  CHECK(messages("x,kind,y\n1,a,p\n", "target: y, features: [kind, x]") ==
        "data.yaml:1:56: error: the features of data.val are not those of data.train\n"
        "  hint: data.train has \"x\", \"kind\"\n");
}

TEST_CASE("numbers with a decimal comma are read where the recipe says so, and hinted at where not",
          "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("t.csv", "x;price\n1,5;1.234,50\n-2;12,5\n0,25;1.000.000\n");
  const auto data = good_data("{type: csv_table, path: t.csv, target: price, delimiter: ';', decimal: ','}");
  CHECK(fetched(*data, {0, 1, 2}, "input") == Values{1.5, -2, 0.25});
  CHECK(fetched(*data, {0, 1, 2}, "target") == Values{1234.5, 12.5, 1000000});
  CHECK(build_data("{type: csv_table, path: t.csv, target: x, features: price, delimiter: ';'}")
            .messages.find("t.csv:2: column \"x\" has \"1,5\", a number with a decimal comma\n"
                           "  hint: set decimal: \",\"\n") != std::string::npos);
  // 0.25 and 1.2 are no thousands.
  folder.write("point.csv", "x;y\n0.25;1\n0.5;2\n");
  CHECK(build_data("{type: csv_table, path: point.csv, target: y, delimiter: ';', decimal: ','}").messages ==
        "data.yaml:1:25: error: point.csv:2: column \"x\" has \"0.25\", a number with a decimal point\n"
        "  hint: set decimal: \".\"\n");
}

TEST_CASE("a table in another encoding is converted, and its bytes are refused as UTF-8", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("t.csv",
               "size,gr\xF6\xDF"
               "e\n1,\x80\n2,b\n");
  const auto data = good_data(
      "{type: csv_table, path: t.csv, target: \"gr\xC3\xB6\xC3\x9F"
      "e\", encoding: windows-1252}");
  CHECK(data->class_name(1) == "\xE2\x82\xAC");
  CHECK(build_data("{type: csv_table, path: t.csv, target: size}").messages ==
        "data.yaml:1:25: error: t.csv:1: the line is not UTF-8\n"
        "  hint: set encoding: windows-1252 or latin-1, or save the table as UTF-8\n");
}

TEST_CASE("what spreadsheets and people write above a table", "[data][csv_table]") {
  const tests::Folder folder;
  folder.write("sep.csv", "sep=;\r\nx;y\r\n1;2\r\n3;4\r\n");
  CHECK(good_data("{type: csv_table, path: sep.csv, target: y, delimiter: ';'}")->size() == 2);
  CHECK(build_data("{type: csv_table, path: sep.csv, target: y}").messages ==
        "data.yaml:1:25: error: sep.csv:1: the file says that its fields are delimited by \";\"\n"
        "  hint: set delimiter: \";\"\n");
  folder.write("title.csv", "# prices\nx,y\n1,2\n");
  CHECK(build_data("{type: csv_table, path: title.csv, target: y}").messages ==
        "data.yaml:1:25: error: title.csv:1: the first line is \"# prices\", which is not a header for the rows below\n"
        "  hint: remove the lines above the table\n");
  folder.write("end.csv", "x,y,\n1,2\n3,4\n");
  CHECK(good_data("{type: csv_table, path: end.csv, target: y}")->size() == 2);
  folder.write("ends.csv", "x,y,\n1,2,\n3,4,\n");
  CHECK(build_data("{type: csv_table, path: ends.csv, target: y}").messages ==
        "data.yaml:1:25: error: ends.csv:1: the header ends with a delimiter, so the last column has no name\n"
        "  hint: name it, or leave it out with ignore: [\"\"]\n");
  CHECK(fetched(*good_data("{type: csv_table, path: ends.csv, target: y, ignore: ''}"), {1}, "input") == Values{3});
}

TEST_CASE("a column that numbers the rows is told and can be ignored", "[data][csv_table]") {
  const tests::Folder folder;
  std::string table = "id,x,year,y\n";
  for (int i = 0; i < 30; ++i)
    table += std::to_string(i * 37 % 101) + "," + std::to_string(i % 7) + "," + std::to_string(1990 + i) + ",1\n";
  folder.write("t.csv", table);
  CHECK(
      build_data("{type: csv_table, path: t.csv, target: y}").messages ==
      "data.yaml:1:25: warning: t.csv: column \"id\" has another whole number in each row, as the number of a row has, "
      "and is an input\n  hint: leave it out with ignore: [id], or name the inputs in features\n");
  CHECK(good_data("{type: csv_table, path: t.csv, target: y, ignore: [id, x]}")->describe() ==
        "30 rows of t.csv, 1 input from 1 column, target y");
  CHECK(build_data("{type: csv_table, path: t.csv, target: y, ignore: [idx]}").messages ==
        "data.yaml:1:52: error: t.csv has no column \"idx\"\n  hint: did you mean \"id\"?\n");
}
